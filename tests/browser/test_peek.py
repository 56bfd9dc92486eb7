"""The peek panel in a browser: opened beside a list, it follows, moves nothing, and goes away."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from ledger.models import ToolCall
from tests import cast
from tests.browser import pages
from tests.browser.conftest import OpenPage
from tests.recovery.deciding import ambiguous

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def calls(acme: cast.Acme) -> list[ToolCall]:
    """Three incidents, the oldest first."""
    return [ambiguous(acme) for _ in range(3)]


@pytest.fixture
def inbox(signed_in: Page, calls: list[ToolCall]) -> Page:
    signed_in.goto("/inbox")
    return signed_in


def panel(page: Page) -> Any:
    return page.locator("#peek")


def title(page: Page) -> Any:
    return page.locator("#peek-title")


def test_its_key_shows_the_row_and_it_follows_from_row_to_row(
    inbox: Page, calls: list[ToolCall]
) -> None:
    inbox.keyboard.press("l")
    expect(title(inbox)).to_contain_text(calls[0].tool)
    expect(inbox.get_by_role("region", name=calls[0].tool)).to_contain_text("Did it start?")
    expect(inbox.get_by_role("link", name=calls[0].tool, exact=True)).to_be_focused()
    inbox.keyboard.press("j")
    expect(title(inbox)).to_contain_text(calls[1].tool)
    inbox.keyboard.press("k")
    expect(title(inbox)).to_contain_text(calls[0].tool)
    inbox.keyboard.press("Escape")
    expect(panel(inbox)).to_be_hidden()
    expect(inbox.get_by_role("link", name=calls[0].tool, exact=True)).to_be_focused()
    inbox.keyboard.press("l")
    expect(panel(inbox)).to_be_visible()
    inbox.keyboard.press("l")
    expect(panel(inbox)).to_be_hidden()


def test_its_control_takes_the_focus_into_it_and_escape_gives_it_back(
    inbox: Page, calls: list[ToolCall]
) -> None:
    inbox.locator(".peeks").nth(1).click()
    expect(title(inbox)).to_be_focused()
    assert inbox.url.endswith("/inbox")
    inbox.keyboard.press("Tab")
    inbox.keyboard.press("Enter")
    expect(panel(inbox)).to_be_hidden()
    expect(inbox.get_by_role("link", name=calls[1].tool, exact=True)).to_be_focused()
    inbox.locator(".peeks").nth(2).focus()
    inbox.keyboard.press("Enter")
    expect(title(inbox)).to_be_focused()
    inbox.keyboard.press("k")
    expect(title(inbox)).to_contain_text(calls[1].tool)
    inbox.keyboard.press("Escape")
    expect(inbox.get_by_role("link", name=calls[1].tool, exact=True)).to_be_focused()


def test_escape_leaves_the_focus_where_it_is_outside_the_list(inbox: Page) -> None:
    inbox.keyboard.press("l")
    expect(panel(inbox)).to_be_visible()
    search = inbox.get_by_role("button", name="Set aside")
    search.focus()
    inbox.keyboard.press("Escape")
    expect(panel(inbox)).to_be_hidden()
    expect(search).to_be_focused()


def test_an_answer_that_comes_after_closing_opens_nothing(inbox: Page) -> None:
    held: list[Route] = []
    inbox.route(re.compile("/peek$"), lambda route: held.append(route))
    inbox.keyboard.press("l")
    expect(inbox.locator("[data-row][data-ui-here]")).to_have_count(1)
    inbox.locator("#inbox-rows").focus()
    inbox.evaluate("unpeek()")
    with inbox.expect_response(re.compile("/peek$")):
        held[0].continue_()
    expect(title(inbox)).to_have_count(0)
    expect(panel(inbox)).to_be_hidden()


def test_the_row_one_stands_on_is_shown_whichever_answer_comes_first(
    inbox: Page, calls: list[ToolCall]
) -> None:
    held: list[Route] = []
    inbox.route("**/peek", lambda route: held.append(route))
    inbox.keyboard.press("l")
    inbox.keyboard.press("j")
    expect(inbox.locator("[data-row][data-ui-here]")).to_contain_text(calls[1].tool)
    inbox.unroute("**/peek")
    inbox.keyboard.press("j")
    expect(title(inbox)).to_contain_text(calls[2].tool)
    inbox.unroute_all(behavior="ignoreErrors")
    expect(title(inbox)).to_contain_text(calls[2].tool)


def test_opening_it_moves_nothing(inbox: Page) -> None:
    places = (
        "els => els.map(each => { const at = each.getBoundingClientRect(); return [at.x, at.y]; })"
    )
    before = inbox.locator("main a, main button").evaluate_all(places)
    inbox.locator(".peeks").first.click()
    expect(panel(inbox)).to_be_visible()
    after = inbox.locator("main a:not(#peek *), main button:not(#peek *)").evaluate_all(places)
    assert after == before


def test_without_scripts_its_control_leads_to_the_page(
    open_page: OpenPage, calls: list[ToolCall]
) -> None:
    page = open_page(java_script_enabled=False)
    pages.sign_in(page)
    for path, where in (("/inbox", "/incidents/inc_"), ("/calls", "/calls/call_")):
        page.goto(path)
        expect(panel(page)).to_be_hidden()
        page.locator(".peeks").first.click()
        expect(page).to_have_url(re.compile(where))


@pytest.mark.parametrize("path", ["/inbox", "/calls"])
def test_axe_finds_nothing_with_it_open(signed_in: Page, calls: list[ToolCall], path: str) -> None:
    signed_in.goto(path)
    signed_in.keyboard.press("l")
    expect(panel(signed_in)).to_be_visible()
    signed_in.keyboard.press("j")
    expect(title(signed_in)).to_contain_text(calls[1].tool)
    found = (pages.findings(signed_in), pages.violations(signed_in), pages.overhang_px(signed_in))
    assert found == ([], [], 0)


def test_on_a_phone_it_is_a_sheet_below_the_row(open_page: OpenPage, calls: list[ToolCall]) -> None:
    page = open_page(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True,
        color_scheme="dark", reduced_motion="reduce",
    )  # fmt: skip
    pages.let_in(page)
    page.goto("/inbox")
    page.locator(".peeks").last.tap()
    expect(title(page)).to_be_focused()
    sheet = panel(page).bounding_box()
    assert (sheet["x"], sheet["width"], sheet["y"] + sheet["height"]) == (0, 390, 844)
    assert pages.overhang_px(page) == 0
    assert pages.findings(page) == []
    page.keyboard.press("k")
    row = page.get_by_role("link", name=calls[1].tool, exact=True)
    expect(row).to_be_focused()
    box = row.bounding_box()
    assert box is not None
    assert 0 <= box["y"] <= sheet["y"] - box["height"]
    page.get_by_role("button", name="Close").tap()
    expect(panel(page)).to_be_hidden()
