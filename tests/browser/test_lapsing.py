"""What lapses is announced two minutes before, once, and shown where its time stands."""

import pytest
from playwright.sync_api import Page, expect

from ledger import ids
from tests import cast
from tests.browser import pages
from tests.recovery.deciding import ambiguous, decide, found, incident_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def amy(page: Page, acme: cast.Acme) -> Page:
    """Amy may approve, and her browser's clock can be moved."""
    cast.a_person("amy", acme.workspace, "operator", "approver")
    page.clock.install()
    pages.sign_in(page, "amy")
    return page


def is_said_near_its_end(page: Page, minutes: int, said: str) -> None:
    """Nothing is said three minutes before the end, and once in the last two."""
    polite, line = page.locator("#polite"), page.locator("[data-lapses]")
    page.clock.fast_forward((minutes - 3) * 60_000)
    page.clock.run_for(2_000)
    expect(polite).to_be_empty()
    page.clock.fast_forward(60_000)
    page.clock.run_for(2_000)
    expect(polite).to_have_text(said)
    assert line.get_attribute("data-ui-soon") == ""
    page.locator("#polite").evaluate("each => each.textContent = ''")
    page.clock.run_for(20_000)
    expect(polite).to_be_empty()


def test_a_request_for_a_second_person_says_that_it_lapses(amy: Page, acme: cast.Acme) -> None:
    call = ambiguous(acme, second_person="always")
    resolution = decide(acme, call, "happened")
    amy.goto(f"/approvals/{ids.shown('resolution', resolution.id)}")
    is_said_near_its_end(amy, 30, "This request lapses within 2 minutes")
    assert pages.findings(amy) == []


def test_a_frozen_list_says_that_it_lapses(amy: Page, acme: cast.Acme) -> None:
    calls = [ambiguous(acme) for _ in range(2)]
    for call in calls:
        found(call, "happened", cast.as_decider(acme.olga))
    named = "&".join(f"incident={ids.shown('incident', incident_of(each).id)}" for each in calls)
    amy.goto(f"/bulk-runs/new?{named}")
    amy.get_by_label("Yes, it happened").first.check()
    amy.get_by_label("Grounds, kept with every row").fill("The export has them.")
    amy.get_by_role("button", name="Freeze the list").click()
    expect(amy.get_by_role("button", name="Start")).to_be_visible()
    is_said_near_its_end(amy, 15, "This list lapses within 2 minutes")
