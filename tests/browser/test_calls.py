"""A call in the browser: it changes while one looks, and nothing that one does is lost by it."""

import json

import pytest
from playwright.sync_api import Page, expect

from ledger import ids
from tests import builders, cast
from tests.browser import pages
from tests.recovery import deciding

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_call_is_found_followed_and_cancelled(signed_in: Page, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", arguments={"lines": [{"note": {"deep": 1}}]})
    page = signed_in
    page.get_by_label("Search or paste an id").fill(call.id.hex[-8:])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/calls/{ids.shown('call', call.id)}")

    # What one has opened and typed survives a refresh, which shows what has happened meanwhile.
    assert page.locator("#arguments details[open]").count() == 2
    page.locator("#arguments .tree details:not([open]) > summary").first.click()
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


def test_the_list_is_copied_as_a_call_of_the_api(signed_in: Page, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "ambiguous")
    page = signed_in
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/calls?state=ambiguous")
    page.get_by_text("Copy as API call").click()
    page.get_by_role("button", name="Copy the API call that lists calls").click()

    expect(page.get_by_text("Copied the API call")).to_be_attached()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith("/api/v1/calls?state=ambiguous'")
    assert page.locator(".curls code").inner_text() == copied
    assert pages.findings(page) == pages.violations(page) == []
    page.get_by_role("link", name="Open calls with your login").click()
    assert ids.shown("call", call.id) in page.content()


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


def test_the_trace_of_a_call_is_copied_with_a_press(signed_in: Page, acme: cast.Acme) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    call = builders.a_call(acme, "ambiguous", traceparent=f"00-{trace}-00f067aa0ba902b7-01")
    page = signed_in
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    incident = deciding.incident_of(call)
    for at in (f"/calls/{ids.shown('call', call.id)}", f"/incidents/inc_{incident.id.hex}"):
        page.goto(at)
        page.get_by_role("button", name="Copy trace id").click()
        expect(page.get_by_text("Copied the trace id")).to_be_attached()
        assert page.evaluate("navigator.clipboard.readText()") == trace
        assert pages.findings(page) == []
        page.set_viewport_size({"width": 320, "height": 844})
        assert pages.overhang_px(page) == 0
        page.set_viewport_size({"width": 1440, "height": 900})


def test_a_value_its_path_and_all_of_a_payload_are_copied(signed_in: Page, acme: cast.Acme) -> None:
    to = {"name": "Ada", "a/b": "x" * 3_000}
    call = builders.a_call(acme, "running", arguments={"to": to, "password": "hunter2"})
    page = signed_in
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/calls/{ids.shown('call', call.id)}")
    frame = page.locator("#arguments")
    frame.get_by_text("Copy", exact=True).click()

    def copied(button: str, what: str) -> str:
        frame.get_by_role("button", name=button).click()
        expect(page.locator("#polite")).to_have_text(f"Copied the {what}")
        return str(page.evaluate("navigator.clipboard.readText()"))

    frame.get_by_text("Ada").click()
    assert copied("Copy value", "value") == "Ada"
    assert copied("Copy path", "path") == "/to/name"
    frame.get_by_role("combobox", name="Path of the value").select_option("/to/a~1b")
    assert copied("Copy value", "value") == "x" * 3_000
    assert copied("Copy path", "path") == "/to/a~1b"
    whole = json.loads(copied("Copy all", "text"))
    assert whole["to"] == to
    assert whole["password"].startswith("•••• masked")
    assert pages.violations(page) == []


def test_long_lines_are_scrolled_where_they_are_not_to_be_wrapped(
    signed_in: Page, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "running", arguments={"note": "word " * 300})
    page = signed_in
    page.goto(f"/calls/{ids.shown('call', call.id)}")
    box = page.locator("#arguments .scroll")
    overhangs = "each => each.scrollWidth > each.clientWidth"
    assert box.evaluate(overhangs) is False
    page.locator("#arguments").get_by_label("Wrap").uncheck()
    assert box.evaluate(overhangs) is True
    assert pages.overhang_px(page) == 0
