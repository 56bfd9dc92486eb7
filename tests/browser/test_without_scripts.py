"""Every decision works without JavaScript: forms post and redirect (console.md 1)."""

import json

import pytest
from playwright.sync_api import Page, expect

from ledger import ids
from ledger.models import Import, Membership, Session, Switch, ToolCall
from ledger.vocabulary import ResolutionAnswer
from recovery import bulk
from recovery.models import BulkRun, Grant, Resolution
from recovery.rulings import Wish
from tests import builders, cast
from tests.browser import pages
from tests.browser.conftest import OpenPage
from tests.dashboard.conversations import a_story
from tests.dashboard.test_imports import BROKEN
from tests.recovery.deciding import ambiguous, decide, delay_over, found, incident_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(open_page: OpenPage, acme: cast.Acme) -> Page:
    """A browser without scripts."""
    cast.a_person("anna", acme.workspace, "admin")
    cast.a_person("omar", acme.workspace, "operator", "approver")
    return open_page(java_script_enabled=False, viewport={"width": 1440, "height": 900})


def incident(call: ToolCall, word: str = "") -> str:
    return f"/incidents/{ids.shown('incident', incident_of(call).id)}{word}"


def answered(page: Page, call: ToolCall, label: str, *, word: str = "") -> None:
    """Choose, give grounds, preview, type what is asked for, record."""
    page.goto(incident(call, word))
    page.get_by_label(label).check()
    page.get_by_label("Grounds: why").fill("I looked at the provider's list.")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.get_by_role("heading", name="Afterwards")).to_be_visible()
    confirm = page.get_by_label("This cannot be undone outside.")
    if confirm.count():
        confirm.fill(f"{call.tool} 1")
    page.locator(".deeds").last.get_by_role("button").last.click()
    expect(page.locator("#said")).to_contain_text("Recorded")


def side_effect(acme: cast.Acme) -> ToolCall:
    call = ambiguous(acme)
    for finding in ("happened", "did_not_happen"):
        found(call, finding, cast.as_decider(acme.olga))
    return call


def keyed(acme: cast.Acme) -> ToolCall:
    return ambiguous(acme, "idempotent_write")


ANSWERS = {
    "happened": ("Yes, it happened", side_effect),
    "did_not_happen:close": ("No, it did not happen: close the call", side_effect),
    "did_not_happen:repeat": ("No, it did not happen: run it once more", side_effect),
    "retry_same_key:": ("Cannot tell: repeat under the same key", keyed),
    "abandon:": ("Nobody can know: give it up", side_effect),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_each_answer_is_recorded(page: Page, acme: cast.Acme, answer: str) -> None:
    label, a_call = ANSWERS[answer]
    call = a_call(acme)
    pages.sign_in(page)
    answered(page, call, label)
    made = Resolution.objects.get(call=call)
    assert f"{made.answer}:{made.then}".removesuffix(":") == answer.removesuffix(":")


def test_a_handle_is_pasted_and_followed(page: Page, acme: cast.Acme) -> None:
    call = builders.a_job_whose_handle_was_lost(acme)
    pages.let_in(page)
    page.goto(incident(call))
    page.get_by_text("A result that was found, an error, or a handle").click()
    page.get_by_label("Handle found outside").fill("job-4711")
    answered_at(page, "Still going: follow its handle")
    assert Resolution.objects.get(call=call).answer == "attach_handle"


def answered_at(page: Page, label: str) -> None:
    page.get_by_label(label).check()
    page.get_by_label("Grounds: why").fill("The provider's list shows it.")
    page.get_by_role("button", name="Preview", exact=True).last.click()
    page.get_by_role("button", name="Attach the handle").click()
    expect(page.locator("#said")).to_contain_text("Recorded")


def test_a_decision_is_taken_back(page: Page, acme: cast.Acme) -> None:
    call = side_effect(acme)
    decide(acme, call, "happened")
    pages.let_in(page)
    page.goto(incident(call))
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#said")).to_contain_text("Taken back")


def test_a_settled_call_is_corrected(page: Page, acme: cast.Acme) -> None:
    call = side_effect(acme)
    decide(acme, call, "happened")
    delay_over(call)
    pages.sign_in(page)
    answered(page, call, "It did not happen", word="/correction")
    assert Resolution.objects.filter(call=call, is_correction=True).count() == 1


def test_a_second_person_approves(page: Page, acme: cast.Acme) -> None:
    call = ambiguous(acme, second_person="always")
    asked = decide(acme, call, "happened")
    pages.let_in(page, "omar")
    page.goto(f"/approvals/{ids.shown('resolution', asked.id)}")
    page.get_by_label("grounds", exact=False).last.fill("I see it too.")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#said")).to_contain_text("You approved it.")


def test_many_are_decided_together(page: Page, acme: cast.Acme) -> None:
    for _ in range(2):
        side_effect(acme)
    pages.let_in(page)
    page.goto("/inbox")
    for box in page.locator("[data-row] input[type=checkbox]").all():
        box.check()
    page.get_by_role("button", name="Decide about them together").click()
    page.get_by_label("No, it did not happen: close the call").check()
    page.get_by_label("Grounds, kept with every row").fill("The export has neither.")
    page.get_by_role("button", name="Freeze the list").click()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("region", name="Progress")).to_be_visible()
    assert BulkRun.objects.get().started_at is not None


def test_what_failed_of_many_is_taken_along_and_tried_again(page: Page, acme: cast.Acme) -> None:
    run = a_run_that_failed(acme)
    pages.let_in(page)
    page.goto(f"/bulk-runs/{ids.shown('bulk_run', run.id)}")
    with page.expect_download() as taken:
        page.get_by_role("button", name="Export as CSV").click()
    assert taken.value.suggested_filename == f"{ids.shown('bulk_run', run.id)}.csv"
    page.get_by_role("button", name="Try the failed rows again").click()
    expect(page.locator("#said")).to_contain_text("Frozen anew")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("region", name="Progress")).to_be_visible()
    assert BulkRun.objects.filter(started_at__isnull=False).count() == 2


def a_run_that_failed(acme: cast.Acme) -> BulkRun:
    """A bulk run of one row, whose starter could decide no more when its turn came."""
    by = cast.as_decider(acme.olga)
    run = bulk.freeze(
        selection=bulk.Selection(incidents=[incident_of(side_effect(acme)).id]),
        wish=Wish(answer=ResolutionAnswer.DID_NOT_HAPPEN, then="close", grounds="It has neither."),
        evidence={},
        by=by,
    )
    bulk.start(run_id=run.id, confirm="", by=by)
    Membership.objects.filter(person=acme.olga).update(role="viewer")
    bulk.run_due()
    Membership.objects.filter(person=acme.olga).update(role="operator")
    return run


def test_a_tool_is_switched_off_and_its_policy_saved(page: Page, acme: cast.Acme) -> None:
    builders.a_tool(acme, "send_invoice", "side_effect")
    pages.let_in(page, "anna")
    page.goto("/tools/send_invoice")
    page.get_by_role("region", name="Switch").get_by_label("Grounds").fill("It sends twice.")
    page.get_by_role("button", name="Switch off").click()
    assert Switch.objects.get().on is False
    page.goto("/tools/send_invoice/policy")
    page.get_by_label("Attempts, the first").first.fill("2")
    page.get_by_label("Grounds").first.fill("So that the night shift knows.")
    page.get_by_role("button", name="Save as a new version").first.click()
    expect(page.locator("#said")).to_contain_text("Saved as version")


def test_more_attempts_are_granted(page: Page, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "backing_off")
    pages.let_in(page, "anna")
    page.goto(f"/budgets?scope=call&id={ids.shown('call', call.id)}#grant")
    page.get_by_label("Grounds").first.fill("The provider was down.")
    page.get_by_role("button", name="Grant", exact=True).click()
    expect(page.locator("#said")).to_be_visible()
    assert Grant.objects.count() == 1


def test_a_session_is_bound_anew_stopped_and_let_go_on(page: Page, acme: cast.Acme) -> None:
    story = a_story(acme)
    pages.sign_in(page)
    at = f"/sessions/{ids.shown('session', story.session.id)}"
    page.goto(f"{at}/binding")
    page.get_by_label("Host").fill("box-2")
    page.get_by_label("Grounds").fill("The machine was replaced.")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Bind anew").click()
    expect(page.locator("#said")).to_contain_text("epoch 2 holds")
    page.goto(f"{at}/stop")
    page.get_by_label("Grounds").fill("It goes in circles.")
    page.get_by_role("button", name="Stop").last.click()
    expect(page.locator("#said")).to_be_visible()
    assert Session.objects.get(id=story.session.id).stopped_at is not None


def test_the_call_of_the_api_is_there_to_be_selected(page: Page, acme: cast.Acme) -> None:
    ambiguous(acme)
    pages.let_in(page, "omar")
    page.goto("/inbox?state=ambiguous")
    page.get_by_text("Copy as API call").click()
    lines = page.locator(".curls code")
    expect(lines.first).to_contain_text("/api/v1/incidents?needs_answer=true&call_state=ambiguous")
    expect(lines.last).to_contain_text("/api/v1/holds?needs_answer=true&state=ambiguous")
    expect(page.get_by_role("button", name="Copy the API call")).to_have_count(0)


def test_a_broken_conversation_is_imported(page: Page, acme: cast.Acme) -> None:
    pages.let_in(page)
    page.goto("/imports/new")
    page.get_by_label("Transcript").fill(json.dumps(BROKEN))
    page.get_by_label("Agent whose session").select_option("ada")
    page.get_by_role("button", name="Import it as a session").click()
    expect(page.get_by_role("heading", name="Difference, entry by entry")).to_be_visible()
    assert Import.objects.count() == 1


def test_copying_is_not_offered_where_it_would_not_work(page: Page, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", arguments={"note": "word " * 300})
    pages.let_in(page)
    page.goto(f"/calls/{ids.shown('call', call.id)}")
    frame = page.locator("#arguments")
    expect(frame.locator(".copying")).to_be_hidden()
    frame.get_by_role("link", name="Raw").click()
    expect(page.get_by_role("heading", name="Arguments, raw")).to_be_visible()
