"""A call in the browser: it changes while one looks, and nothing that one does is lost by it."""

import pytest
from playwright.sync_api import Page, expect

from ledger import ids
from tests import builders, cast
from tests.browser import pages

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_call_is_found_followed_and_cancelled(signed_in: Page, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", arguments={"lines": [{"note": {"deep": 1}}]})
    page = signed_in
    page.get_by_label("Search or paste an id").fill(call.id.hex[-8:])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/calls/{ids.shown('call', call.id)}")

    # What one has opened and typed survives a refresh, which shows what has happened meanwhile.
    assert page.locator("#arguments details[open]").count() == 2
    page.locator("#arguments details:not([open]) > summary").first.click()
    page.get_by_label("Grounds").fill("The customer called it off.")
    page.locator("h1").click()
    builders.cross(call)
    expect(page.locator("#question-2 .answer")).to_have_text("Not proved")
    expect(page.get_by_label("Grounds")).to_have_value("The customer called it off.")
    assert page.locator("#arguments details[open]").count() == 3

    page.get_by_role("button", name="Cancel this call").click()
    expect(page.locator("#said")).to_contain_text("Its end is asked for")
    expect(page.locator(".labels")).to_contain_text("cancel requested")
    assert pages.violations(page) == []


def test_new_calls_wait_behind_their_number_and_rows_stay_where_they_are(
    signed_in: Page, acme: cast.Acme
) -> None:
    first = builders.a_call(acme)
    page = signed_in
    page.goto("/calls")
    builders.a_call(acme)
    page.keyboard.press("r")
    expect(page.locator("#newer a")).to_have_text("1 new: show")
    assert len(pages.rows(page)) == 1
    page.locator("#newer a").click()
    expect(page.locator("#calls tbody tr")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/calls/{ids.shown('call', first.id)}")


def test_the_table_of_the_timeline_opens_and_closes_with_a_key(
    signed_in: Page, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "interrupted")
    page = signed_in
    page.goto(f"/calls/{ids.shown('call', call.id)}")
    expect(page.locator("#timeline-table")).to_have_attribute("open", "")
    page.keyboard.press("t")
    expect(page.locator("#timeline-table")).not_to_have_attribute("open", "")
    name = page.get_by_role("img").get_attribute("aria-label") or ""
    assert "the window is open" in name
