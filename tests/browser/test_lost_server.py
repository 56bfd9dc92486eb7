"""The server goes away under an open page and comes back: a banner, and no word is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ledger import ids
from recovery.models import Resolution
from tests import builders, cast
from tests.browser import pages
from tests.browser.conftest import OpenPage, Web
from tests.recovery.deciding import ambiguous, found, incident_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def web(acme: cast.Acme, tmp_path: Path) -> Iterator[Web]:
    """A web process of this test alone."""
    found = Web(tmp_path)
    found.start()
    yield found
    found.stop()


@pytest.fixture
def page(web: Web, open_page: OpenPage) -> Page:
    """Olga at a browser that talks to this web process."""
    page = open_page(base_url=web.address, viewport={"width": 1440, "height": 900})
    pages.sign_in(page)
    return page


def miss(page: Page) -> None:
    """Ask for the live parts and get no answer."""
    with page.expect_event("requestfailed"):
        page.keyboard.press("r")


def test_a_list_says_since_when_it_is_not_updating_and_goes_on_by_itself(
    page: Page, web: Web, acme: cast.Acme
) -> None:
    ambiguous(acme)
    page.goto("/inbox")
    banner = page.locator("#not-updating")
    web.stop()
    miss(page)
    expect(banner).to_be_hidden()
    miss(page)
    expect(banner).to_contain_text("Not updating since")
    expect(page.locator("[data-row]")).to_have_count(1)
    builders.a_call(acme, "ambiguous")

    web.start()
    page.get_by_role("button", name="Retry now").click()
    expect(banner).to_be_hidden()
    expect(page.locator("#inbox-new")).to_contain_text("1 new")


def test_a_decision_typed_before_a_restart_is_recorded_after_it(
    page: Page, web: Web, acme: cast.Acme
) -> None:
    call = ambiguous(acme)
    found(call, "happened", cast.as_decider(acme.olga))
    page.goto(f"/incidents/{ids.shown('incident', incident_of(call).id)}")
    page.get_by_label("Yes, it happened").check()
    page.get_by_label("Grounds: why").fill("It is in the outbox.")
    web.stop()
    web.start()
    page.get_by_role("button", name="Preview", exact=True).last.click()
    page.get_by_role("button", name="Record: happened").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert Resolution.objects.get(call=call).grounds == "It is in the outbox."


def test_a_press_while_the_server_is_away_is_one_decision_when_it_is_pressed_again(
    page: Page, web: Web, acme: cast.Acme
) -> None:
    call = ambiguous(acme)
    found(call, "happened", cast.as_decider(acme.olga))
    page.goto(f"/incidents/{ids.shown('incident', incident_of(call).id)}")
    page.get_by_label("Yes, it happened").check()
    page.get_by_label("Grounds: why").fill("It is in the outbox.")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    record = page.get_by_role("button", name="Record: happened")
    expect(record).to_be_visible()
    web.stop()
    with page.expect_event("requestfailed"):
        record.click()
    web.start()
    page.reload()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert Resolution.objects.filter(call=call).count() == 1
