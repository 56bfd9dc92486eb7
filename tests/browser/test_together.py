"""Two operators at one incident, and the agent that finishes while somebody looks at a preview.

console.md 9: one decision wins, the other person is told by whom and loses no word.
"""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from ledger import ids
from ledger.errors import FenceLost
from ledger.models import ToolCall
from recovery.models import Resolution
from tests import builders, cast
from tests.browser import pages
from tests.browser.conftest import OpenPage
from tests.recovery.deciding import ambiguous, found, incident_of

pytestmark = pytest.mark.django_db(transaction=True)

Desk = Callable[[str], Page]
YES, NO = "Yes, it happened", "No, it did not happen: close the call"


@pytest.fixture
def call(acme: cast.Acme) -> ToolCall:
    """An ambiguous side effect with a finding of each kind on its file."""
    call = ambiguous(acme, delivery_delay_s=60)
    for finding in ("happened", "did_not_happen"):
        found(call, finding, cast.as_decider(acme.olga))
    cast.a_person("omar", acme.workspace, "operator")
    return call


@pytest.fixture
def desk(open_page: OpenPage, call: ToolCall) -> Desk:
    """Let a person sign in at a browser of their own and open the incident."""

    def at(person: str) -> Page:
        page = open_page(viewport={"width": 1440, "height": 900})
        pages.sign_in(page, person)
        page.goto(f"/incidents/{ids.shown('incident', incident_of(call).id)}")
        return page

    return at


def previewed(page: Page, answer: str, grounds: str) -> None:
    page.get_by_label(answer).check()
    page.get_by_label("Grounds: why").fill(grounds)
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.get_by_role("heading", name="Afterwards")).to_be_visible()


def record(page: Page) -> None:
    page.get_by_role("button", name="Record: ").click()


def test_of_two_answers_one_is_recorded_and_the_other_stands_beside_it(
    desk: Desk, call: ToolCall
) -> None:
    olga, omar = desk("olga"), desk("omar")
    previewed(olga, YES, "It is in the outbox.")
    previewed(omar, NO, "I see no such mail.")
    record(olga)
    expect(olga.get_by_role("button", name="Undo")).to_be_visible()
    record(omar)
    expect(omar.get_by_role("heading", name="Not saved")).to_be_visible()
    expect(omar.get_by_role("main")).to_contain_text("It is in the outbox.")
    expect(omar.get_by_label("Your text")).to_have_value("I see no such mail.")
    assert [each.by_name for each in Resolution.objects.filter(call=call)] == ["olga"]
    assert pages.findings(omar) == []


def test_the_same_answer_twice_is_one_and_both_read_success(desk: Desk, call: ToolCall) -> None:
    olga, omar = desk("olga"), desk("omar")
    previewed(olga, YES, "It is in the outbox.")
    previewed(omar, YES, "The customer answered it.")
    record(olga)
    expect(olga.get_by_role("button", name="Undo")).to_be_visible()
    record(omar)
    expect(omar.locator("#said")).to_contain_text("Already recorded by olga")
    assert Resolution.objects.filter(call=call).count() == 1


def test_evidence_of_the_other_comes_into_the_form_and_touches_no_word(
    desk: Desk, call: ToolCall, acme: cast.Acme
) -> None:
    omar = desk("omar")
    grounds = omar.get_by_label("Grounds: why")
    grounds.fill("Half a sentence")
    found(call, "happened", cast.as_decider(acme.olga))
    grounds.press("Escape")
    omar.keyboard.press("r")
    expect(omar.locator(".news")).to_contain_text("This file moved since it was shown to you.")
    expect(omar.locator(".news")).to_contain_text("olga")
    expect(grounds).to_have_value("Half a sentence")


def test_who_works_on_it_is_said_and_locks_nothing(desk: Desk, call: ToolCall) -> None:
    olga = desk("olga")
    olga.get_by_role("button", name="Take", exact=True).click()
    expect(olga.get_by_role("button", name="Release")).to_be_visible()
    omar = desk("omar")
    expect(omar.get_by_text("olga has been working on this")).to_be_visible()
    previewed(omar, YES, "It is in the outbox.")


def test_a_decision_is_refused_when_the_agent_finished_while_its_preview_was_read(
    desk: Desk, call: ToolCall
) -> None:
    olga = desk("olga")
    previewed(olga, NO, "I see no such mail.")
    with pytest.raises(FenceLost):
        builders.settle(call, {"sent": True})
    record(olga)
    expect(olga.get_by_role("alert").first).to_contain_text("Nothing was recorded.")
    expect(olga.get_by_role("main")).to_contain_text("I see no such mail.")
    assert not Resolution.objects.filter(call=call).exists()
