"""A whole triage without a mouse, and on a phone with one thumb (console.md 12, 20)."""

import pytest
from playwright.sync_api import Locator, Page, expect

from ledger.models import ToolCall
from recovery.models import Resolution, Taking
from tests import cast
from tests.browser import pages
from tests.browser.conftest import OpenPage
from tests.recovery.deciding import ambiguous, found

pytestmark = pytest.mark.django_db(transaction=True)

THUMB_PX = 24


@pytest.fixture
def calls(acme: cast.Acme) -> list[ToolCall]:
    calls = [ambiguous(acme) for _ in range(3)]
    for call in calls:
        found(call, "happened", cast.as_decider(acme.olga))
    return calls


def tab_to(page: Page, wanted: Locator, presses: int = 60) -> None:
    """Press Tab until the wanted control has the focus."""
    for _ in range(presses):
        if wanted.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{presses} presses of Tab do not reach {wanted}")


def test_an_incident_is_found_taken_answered_and_recorded_by_keys_alone(
    signed_in: Page, calls: list[ToolCall]
) -> None:
    page = signed_in
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/inbox")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-row] input").first).to_be_checked()
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/incidents/inc_*")
    page.keyboard.press("c")
    expect(page.get_by_role("button", name="Release")).to_be_visible()
    assert Taking.objects.count() == 1

    page.keyboard.press("2")
    tab_to(page, page.locator("input[name=answer]:not(:disabled)").first)
    page.keyboard.press("Space")
    tab_to(page, page.get_by_label("Grounds: why"))
    page.keyboard.type("The provider's list has it.")
    page.keyboard.press("Escape")
    page.keyboard.press("v")
    expect(page.get_by_role("heading", name="Afterwards")).to_be_visible()
    assert not Resolution.objects.exists()
    page.keyboard.press("Enter")
    assert not Resolution.objects.exists()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert Resolution.objects.get().grounds == "The provider's list has it."
    assert page.evaluate("document.activeElement !== document.body")


def test_letters_do_nothing_in_fields_and_when_they_are_switched_off(
    signed_in: Page, calls: list[ToolCall], acme: cast.Acme
) -> None:
    signed_in.goto("/inbox")
    signed_in.keyboard.press("/")
    signed_in.keyboard.type("jxgi?")
    assert signed_in.locator("[data-row] input:checked").count() == 0
    expect(signed_in.locator("#keys")).to_be_hidden()
    signed_in.keyboard.press("Escape")
    signed_in.keyboard.press("?")
    expect(signed_in.locator("#keys")).to_be_visible()
    signed_in.keyboard.press("Escape")

    signed_in.goto("/settings")
    signed_in.get_by_label("Single-letter shortcuts").uncheck()
    signed_in.get_by_role("button", name="Save").first.click()
    signed_in.goto("/inbox")
    signed_in.keyboard.press("?")
    expect(signed_in.locator("#keys")).to_be_hidden()


def test_an_incident_is_resolved_on_a_phone_in_the_dark(
    open_page: OpenPage, calls: list[ToolCall]
) -> None:
    page = open_page(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True,
        color_scheme="dark",
    )  # fmt: skip
    pages.let_in(page)
    page.goto("/inbox")
    page.locator("[data-row] a").first.tap()
    page.get_by_label("Yes, it happened").check()
    page.get_by_label("Grounds: why").fill("The provider's list has it.")
    page.get_by_role("button", name="Preview", exact=True).last.tap()
    record = page.get_by_role("button", name="Record: happened")
    record.scroll_into_view_if_needed()
    box = record.bounding_box()
    assert box is not None
    assert box["height"] >= THUMB_PX
    assert box["x"] + box["width"] <= 390
    record.tap()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert pages.overhang_px(page) == 0
    assert Resolution.objects.count() == 1


def test_in_the_inbox_keys_take_release_and_lead_to_both_ends(
    signed_in: Page, calls: list[ToolCall]
) -> None:
    page = signed_in
    page.goto("/inbox")
    for number, said in ((1, "1 row: taken"), (0, "1 row: released.")):
        page.keyboard.press("j")
        page.keyboard.press("c")
        expect(page.locator("#said")).to_contain_text(said)
        assert Taking.objects.count() == number
    links = page.locator("[data-row] .tool > a:first-child")
    for key, link in (("p", links.last), ("n", links.first)):
        address = link.get_attribute("href")
        page.keyboard.press(key)
        page.wait_for_url(f"**{address}")
        page.go_back()
