"""The pages of sessions in a browser: the flow by hand, the policy, axe, both themes, a phone."""

import json
from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from ledger import ids
from ledger.models import Session
from tests import builders, cast
from tests.browser import pages
from tests.dashboard.conversations import Story, a_story, compacted, drifted
from tests.dashboard.test_imports import BROKEN

pytestmark = pytest.mark.django_db(transaction=True)

LOOKS: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1440, "light"), (390, "dark"))
Visit = Callable[[Page, Story], None]


@pytest.fixture
def story(acme: cast.Acme) -> Story:
    found = a_story(acme)
    compacted(found)
    drifted(found)
    builders.a_session(acme, label="x" * 200)
    return found


def at(story: Story, word: str = "") -> str:
    return f"/sessions/{ids.shown('session', story.session.id)}{word}"


def paste(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_label("Transcript").fill(json.dumps(BROKEN))


def listed(page: Page, story: Story) -> None:
    page.goto("/sessions")


def nothing_matches(page: Page, story: Story) -> None:
    page.goto("/sessions?show=imported")


def transcript(page: Page, story: Story) -> None:
    page.goto(at(story))


def unfolded(page: Page, story: Story) -> None:
    page.goto(at(story))
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")


def rendering(page: Page, story: Story) -> None:
    page.goto(at(story, "/rendering"))


def cuts(page: Page, story: Story) -> None:
    page.goto(at(story, "/cuts"))


def binding(page: Page, story: Story) -> None:
    page.goto(at(story, "/binding"))


def binding_preview(page: Page, story: Story) -> None:
    page.goto(at(story, "/binding"))
    page.get_by_label("Host").fill("box-2")
    page.get_by_label("Grounds").fill("The machine was replaced.")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="What would happen")).to_be_visible()


def stop(page: Page, story: Story) -> None:
    page.goto(at(story, "/stop"))


def interruption(page: Page, story: Story) -> None:
    page.goto(at(story, "/interruption"))


def repair(page: Page, story: Story) -> None:
    paste(page, "/transcripts/repair")
    page.get_by_role("button", name="Show what a repair does").click()
    expect(page.get_by_role("heading", name="Before and after")).to_be_visible()


def import_refused(page: Page, story: Story) -> None:
    page.goto("/imports/new")
    page.get_by_label("Transcript").fill("[{")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("alert")).to_be_visible()


def imported(page: Page, story: Story) -> None:
    paste(page, "/imports/new")
    page.get_by_label("Agent whose session").select_option("ada")
    page.get_by_role("button", name="Import it as a session").click()
    expect(page.get_by_role("heading", name="Difference, entry by entry")).to_be_visible()


PAGES: tuple[Visit, ...] = (
    listed, nothing_matches, transcript, unfolded, rendering, cuts, binding, binding_preview,
    stop, interruption, repair, import_refused, imported,
)  # fmt: skip


@pytest.mark.parametrize("visit", PAGES, ids=lambda visit: visit.__name__)
def test_axe_finds_nothing_and_nothing_overhangs(page: Page, story: Story, visit: Visit) -> None:
    pages.let_in(page)
    visit(page, story)
    found = {}
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        found[width, scheme] = (pages.overhang_px(page), pages.findings(page))
    assert found == dict.fromkeys(LOOKS, (0, []))
    assert pages.violations(page) == []


def test_an_operator_goes_to_the_first_unresolved_call_and_binds_anew(
    page: Page, story: Story
) -> None:
    pages.let_in(page)
    page.goto(at(story))
    page.get_by_role("link", name="Go to first unresolved").click()
    expect(page.locator(f"#{ids.shown('call', story.ambiguous.id)}")).to_be_in_viewport()

    binding_preview(page, story)
    page.get_by_role("button", name="Bind anew").click()
    expect(page.locator("#said")).to_contain_text("epoch 2 holds")
    assert Session.objects.get(id=story.session.id).host == "box-2"


def test_a_link_to_a_folded_call_unfolds_it(page: Page, acme: cast.Acme) -> None:
    session = builders.a_session(acme)
    turn, tool = builders.a_turn(session), builders.a_tool(acme)
    calls = [
        builders.a_call(
            acme, "succeeded", tool=tool, session_id=session.id, turn_id=turn.id, position=n,
            tool_call_id=f"toolu_{n}", arguments={"n": n},
        )
        for n in range(5)
    ]  # fmt: skip
    pages.sign_in(page)
    address = f"/sessions/{ids.shown('session', session.id)}"
    last = page.locator(f"#{ids.shown('call', calls[-1].id)}")
    page.goto(address)
    expect(page.get_by_text("3 more calls of")).to_be_visible()
    expect(last).not_to_be_visible()
    page.goto(f"{address}#{ids.shown('call', calls[-1].id)}")
    expect(last).to_be_in_viewport()
    assert pages.violations(page) == []
