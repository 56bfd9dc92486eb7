"""What is typed into a form outlives an expired login, and nothing else (console.md 9)."""

import pytest
from playwright.sync_api import Page, expect

from ledger import ids
from ledger.models import Session
from tests import builders, cast
from tests.browser import pages
from tests.recovery.deciding import ambiguous, found, incident_of

pytestmark = pytest.mark.django_db(transaction=True)

TYPED = "Half an hour of work."


def kept(page: Page) -> list[str]:
    """The values of what this tab keeps."""
    found: list[str] = page.evaluate("Object.values(sessionStorage)")
    return [each for each in found if TYPED in each]


def stopping(session: Session) -> str:
    return f"/sessions/{ids.shown('session', session.id)}/stop"


@pytest.fixture
def file(acme: cast.Acme) -> str:
    """The address of the file on an ambiguous call with evidence."""
    call = ambiguous(acme)
    found(call, "happened", cast.as_decider(acme.olga))
    return f"/incidents/{ids.shown('incident', incident_of(call).id)}"


def type_grounds(page: Page, where: str) -> None:
    page.goto(where)
    page.get_by_label("Grounds").last.fill(TYPED)
    assert kept(page)


def preview(page: Page) -> None:
    page.get_by_role("button", name="Preview", exact=True).last.click()


def test_it_is_removed_when_the_decision_is_recorded(signed_in: Page, file: str) -> None:
    type_grounds(signed_in, file)
    signed_in.get_by_label("Yes, it happened").check()
    preview(signed_in)
    assert kept(signed_in), "nothing is recorded yet"
    signed_in.get_by_role("button", name="Record: happened").click()
    expect(signed_in.get_by_role("button", name="Undo")).to_be_visible()
    assert not kept(signed_in)


def test_it_stays_when_the_decision_is_refused_and_when_another_form_is_done(
    signed_in: Page, file: str, acme: cast.Acme
) -> None:
    type_grounds(signed_in, file)
    preview(signed_in)
    expect(signed_in.get_by_text("Choose an answer to question 2")).to_be_visible()
    signed_in.goto(stopping(builders.a_session(acme)))
    signed_in.get_by_label("Grounds").fill("It runs in circles.")
    signed_in.get_by_role("button", name="Stop").click()
    expect(signed_in.locator("#said")).to_be_visible()
    assert kept(signed_in)
    signed_in.goto(file)
    expect(signed_in.get_by_label("Grounds: why")).to_have_value(TYPED)


def test_it_stays_when_the_login_has_expired(signed_in: Page, acme: cast.Acme) -> None:
    where = stopping(builders.a_session(acme))
    type_grounds(signed_in, where)
    signed_in.context.clear_cookies(name="clearhouse_login")
    signed_in.get_by_role("button", name="Stop").click()
    expect(signed_in.get_by_text("You were logged out").first).to_be_visible()
    pages.let_in(signed_in)
    signed_in.goto(where)
    expect(signed_in.get_by_label("Grounds")).to_have_value(TYPED)


def test_it_is_shown_at_nothing_else_and_to_nobody_else(signed_in: Page, acme: cast.Acme) -> None:
    first, second = builders.a_session(acme), builders.a_session(acme)
    type_grounds(signed_in, stopping(first))
    for other in (stopping(second), f"/sessions/{ids.shown('session', first.id)}/interruption"):
        signed_in.goto(other)
        expect(signed_in.get_by_label("Grounds")).to_have_value("")
    pages.let_in(signed_in, "vera")
    signed_in.goto(stopping(first))
    expect(signed_in.get_by_label("Grounds")).to_have_value("")


def test_it_is_removed_when_one_signs_out(signed_in: Page, acme: cast.Acme) -> None:
    type_grounds(signed_in, stopping(builders.a_session(acme)))
    signed_in.get_by_role("button", name="Sign out").click()
    expect(signed_in.get_by_role("button", name="Sign in")).to_be_visible()
    assert signed_in.evaluate("sessionStorage.length") == 0


def test_it_is_found_again_after_the_file_has_moved(signed_in: Page, acme: cast.Acme) -> None:
    call = ambiguous(acme)
    type_grounds(signed_in, f"/incidents/{ids.shown('incident', incident_of(call).id)}")
    signed_in.get_by_label("Yes, it happened").check()
    found(call, "happened", cast.as_decider(acme.olga))
    signed_in.get_by_label("Yes, it happened").focus()
    signed_in.keyboard.press("r")
    expect(signed_in.get_by_text("Your text is untouched.")).to_be_visible()
    signed_in.get_by_role("link", name="Show what changed").click()
    signed_in.wait_for_url("**/resolution")
    expect(signed_in.get_by_label("Grounds: why")).to_have_value(TYPED)
    expect(signed_in.get_by_label("Yes, it happened")).to_be_checked()


def test_evidence_that_is_on_the_file_is_not_typed_again(signed_in: Page, acme: cast.Acme) -> None:
    where = f"/incidents/{ids.shown('incident', incident_of(ambiguous(acme)).id)}"
    type_grounds(signed_in, where)
    signed_in.get_by_label("What it says of the effect").select_option("happened")
    signed_in.get_by_label("What was looked at").fill("The provider's list of today.")
    signed_in.get_by_role("button", name="Put it on the file").click()
    expect(signed_in.get_by_text("Your evidence is on the file.")).to_be_visible()
    signed_in.goto(where)
    expect(signed_in.get_by_label("Grounds: why")).to_have_value(TYPED)
    expect(signed_in.get_by_label("What was looked at")).to_have_value("")
