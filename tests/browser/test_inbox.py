"""An incident from the inbox to the record, in a browser: with scripts, and without them."""

import os
import re
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from ledger import ids
from ledger.models import Membership
from ledger.vocabulary import ResolutionAnswer
from recovery import asides, bulk, disputes, resolutions, takings
from recovery.models import Resolution
from recovery.rulings import Wish
from tests import builders, cast
from tests.browser import pages
from tests.browser.conftest import OpenPage
from tests.recovery.deciding import ambiguous, decide, found, incident_of

pytestmark = pytest.mark.django_db(transaction=True)

LOOKS: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1440, "light"), (390, "dark"))
SHOTS = os.environ.get("CLEARHOUSE_SHOTS", "")


def looked_at(page: Page, name: str) -> dict[Any, Any]:
    """What overhangs, what axe finds and what the policy stopped, on desk and phone."""
    seen: dict[Any, Any] = {}
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        seen[width] = (pages.overhang_px(page), pages.findings(page), pages.violations(page))
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/c-inbox-{name}-{width}-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    return {width: each for width, each in seen.items() if each != (0, [], [])}


def decide_in(page: Page, tool: str) -> None:
    """From the inbox: look, state evidence, preview, record."""
    page.goto("/inbox")
    page.get_by_role("link", name=tool).click()
    page.get_by_label("Yes, it happened").check()
    page.get_by_label("Grounds: why").fill("The provider's list has it.")
    page.get_by_label("What it is", exact=True).select_option("checked")
    page.get_by_label("What it says of the effect").select_option("happened")
    page.get_by_label("What was looked at").fill("The provider's list of today.")
    page.get_by_label("Link, id or handle").fill("sent/4711")
    page.get_by_role("button", name="Put it on the file").click()
    expect(page.get_by_text("Your evidence is on the file.")).to_be_visible()
    page.get_by_role("button", name="Preview", exact=True).last.click()
    expect(page.get_by_role("heading", name="Outside")).to_be_focused()
    page.get_by_role("button", name="Record: happened").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()


def test_an_incident_is_resolved_from_the_inbox(signed_in: Page, acme: cast.Acme) -> None:
    call = ambiguous(acme)
    decide_in(signed_in, call.tool)
    made = Resolution.objects.get(call=call)
    assert (made.answer, made.grounds) == ("happened", "The provider's list has it.")


def test_an_incident_is_resolved_without_scripts(open_page: OpenPage, acme: cast.Acme) -> None:
    call = ambiguous(acme)
    page = open_page(java_script_enabled=False)
    pages.sign_in(page)
    decide_in(page, call.tool)
    assert Resolution.objects.get(call=call).answer == "happened"


def test_a_row_that_somebody_else_resolves_keeps_its_place(
    signed_in: Page, acme: cast.Acme
) -> None:
    calls = [ambiguous(acme, delivery_delay_s=0) for _ in range(3)]
    signed_in.goto("/inbox")
    before = signed_in.locator("[data-row] a").all_inner_texts()
    signed_in.locator("[data-row] input").nth(2).check()
    decide(acme, calls[0], "happened")
    builders.a_call(acme, "ambiguous")
    signed_in.keyboard.press("r")
    expect(signed_in.locator("tr.gone")).to_contain_text("resolved by olga")
    expect(signed_in.locator("#inbox-new")).to_contain_text("1 new")
    assert signed_in.locator("[data-row] a").all_inner_texts() == before
    assert signed_in.locator("[data-row] input").last.is_checked()


def test_typed_text_outlives_an_expired_login(signed_in: Page, acme: cast.Acme) -> None:
    call = ambiguous(acme)
    where = f"/incidents/{ids.shown('incident', incident_of(call).id)}"
    signed_in.goto(where)
    signed_in.get_by_label("Grounds: why").fill("Half an hour of work.")
    signed_in.context.clear_cookies(name="clearhouse_login")
    signed_in.get_by_role("button", name="Preview", exact=True).last.click()
    expect(signed_in.get_by_text("Nothing was sent. Your text is still here.")).to_be_visible()
    pages.let_in(signed_in)
    signed_in.goto(where)
    expect(signed_in.get_by_label("Grounds: why")).to_have_value("Half an hour of work.")


def test_axe_finds_nothing_on_these_pages_and_nothing_overhangs(
    signed_in: Page, acme: cast.Acme
) -> None:
    call, other = ambiguous(acme), ambiguous(acme, "idempotent_write")
    locked = builders.a_call(acme, "ambiguous", tool=builders.a_tool(acme, "a" * 100))
    piece = found(call, "did_not_happen", cast.as_decider(acme.olga), kind="document",
                  reference="https://mail.example/" + "x" * 200)  # fmt: skip
    wrong: dict[str, Any] = {}

    def look(path: str, name: str) -> None:
        signed_in.goto(path)
        if bad := looked_at(signed_in, name):
            wrong[name] = bad

    def at(which: Any) -> str:
        return f"/incidents/{ids.shown('incident', incident_of(which).id)}"

    look("/inbox", "inbox")
    look("/inbox?group=cause&class=side_effect", "inbox-grouped")
    look("/inbox?class=read_only", "inbox-none")
    look("/inbox?age_min=x", "inbox-refused")
    look("/inbox?columns=age,state,cause,class,policy,assigned,due&taken=nobody", "inbox-columns")
    look("/calls?columns=tool,state,session,policy,cause&sort=oldest&read=not_yet", "calls-columns")
    look("/saved-views", "views-none")
    look(at(call), "incident")
    look(at(locked), "incident-locked")
    look(f"{at(other)}/resolution", "resolution")
    look("/bulk-runs", "runs-empty")
    look(f"/bulk-runs/new?incident={at(call)[11:]}&incident={at(other)[11:]}", "run-new")
    signed_in.get_by_label("No, it did not happen: close the call").check()
    signed_in.get_by_label("Grounds, kept with every row").fill("The export has neither.")
    signed_in.get_by_role("button", name="Freeze the list").click()
    expect(signed_in.get_by_role("button", name="Start")).to_be_visible()
    if bad := looked_at(signed_in, "run"):
        wrong["run"] = bad
    signed_in.get_by_role("button", name="Start").click()
    expect(signed_in.get_by_role("region", name="Progress")).to_be_visible()
    Membership.objects.filter(person=acme.olga).update(role="viewer")
    bulk.run_due()
    Membership.objects.filter(person=acme.olga).update(role="operator")
    look(f"/inbox?bulk={signed_in.url.rpartition('/')[2]}", "inbox-of-run")
    signed_in.go_back()
    expect(signed_in.get_by_role("button", name="Try the failed rows again")).to_be_visible()
    if bad := looked_at(signed_in, "run-failed"):
        wrong["run-failed"] = bad

    signed_in.goto(at(call))
    signed_in.get_by_label("run it once more").check()
    signed_in.get_by_label("Grounds: why").fill("The list has nothing with this marker.")
    signed_in.get_by_role("button", name="Preview", exact=True).last.click()
    expect(signed_in.get_by_role("heading", name="Afterwards")).to_be_visible()
    if bad := looked_at(signed_in, "preview"):
        wrong["preview"] = bad

    resolution = decide(acme, call, "did_not_happen", "repeat", evidence=(piece.id,))
    look(at(call), "incident-decided")
    signed_in.goto(at(call))
    resolutions.take_back(
        resolution_id=resolution.id, grounds="Wrong day.", by=cast.as_decider(acme.olga)
    )
    look(at(call), "incident-taken-back")

    omar = cast.as_decider(cast.a_person("omar", acme.workspace, "operator"))
    wish = Wish(answer=ResolutionAnswer.HAPPENED, grounds="It is in the " + "list" * 40)
    hers = decide(acme, call, "did_not_happen", "close", evidence=(piece.id,))
    disputes.begin(resolution_id=hers.id, wish=wish, by=omar)
    look(at(call), "incident-disputed")
    look("/inbox?disputed=1", "inbox-disputed")
    assert wrong == {}


# Keys


def test_a_whole_list_is_worked_by_keyboard(signed_in: Page, acme: cast.Acme) -> None:
    first, second = (ambiguous(acme) for _ in range(2))
    signed_in.goto("/inbox")
    for key in ("j", "x", "j", "x"):
        signed_in.keyboard.press(key)
    expect(signed_in.locator("[data-row] input:checked")).to_have_count(2)
    signed_in.keyboard.press("Escape")
    expect(signed_in.locator("[data-row] input:checked")).to_have_count(0)
    signed_in.keyboard.press("c")
    expect(signed_in.locator("#said")).to_contain_text("1 row: taken")
    signed_in.keyboard.press("j")
    signed_in.keyboard.press("h")
    expect(signed_in.locator("#said")).to_contain_text("1 row: set aside")
    assert takings.of([incident_of(second).id])
    assert asides.of([incident_of(first).id])


def test_the_box_suggests_pages_and_goes_there(signed_in: Page, acme: cast.Acme) -> None:
    signed_in.goto("/inbox")
    # htmx begins behind the page's own scripts, on a busy machine also behind its load.
    expect(signed_in.locator("#search[data-htmx-powered]")).to_be_visible()
    signed_in.keyboard.press("Control+k")
    expect(signed_in.locator("#places option")).not_to_have_count(0)
    signed_in.keyboard.type("Budgets")
    signed_in.keyboard.press("Enter")
    expect(signed_in).to_have_url(re.compile(r"/budgets$"))


def test_an_incident_is_set_aside_by_keyboard_and_brought_back(
    signed_in: Page, acme: cast.Acme
) -> None:
    call = ambiguous(acme)
    signed_in.goto(f"/incidents/{ids.shown('incident', incident_of(call).id)}")
    signed_in.keyboard.press("h")
    expect(signed_in.locator("select[name=minutes]")).to_be_focused()
    signed_in.keyboard.press("Tab")
    signed_in.keyboard.press("Enter")
    expect(signed_in.locator("#said")).to_contain_text("Set aside")
    signed_in.keyboard.press("h")
    expect(signed_in.locator("#said")).to_contain_text("Brought back")
    assert asides.of([incident_of(call).id]) == {}


def test_columns_filters_and_views_work_without_scripts(
    open_page: OpenPage, acme: cast.Acme
) -> None:
    ambiguous(acme)
    page = open_page(java_script_enabled=False)
    pages.let_in(page)
    page.goto("/inbox")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("3 Model saw").uncheck()
    page.get_by_role("button", name="Show these").click()
    expect(page.get_by_role("columnheader", name="3 Model saw")).to_have_count(0)
    page.get_by_label("Class").first.select_option("side_effect")
    page.get_by_role("button", name="Filter", exact=True).click()
    page.get_by_text("Save this view").click()
    page.get_by_label("Name", exact=True).fill("Mine")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name="Mine")).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("columnheader", name="3 Model saw")).to_have_count(0)
