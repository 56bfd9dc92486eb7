"""Signing in and out, by mouse, by keyboard, without script."""

import pytest
from playwright.sync_api import Page, expect

from tests import cast
from tests.browser import pages
from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.django_db(transaction=True)


def refused(page: Page, name: str, password: str) -> str:
    page.goto("/login")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    return page.get_by_role("alert").inner_text()


def test_a_person_signs_in_and_sees_the_start_page(page: Page, acme: cast.Acme) -> None:
    page.goto("/login")
    page.get_by_label("Name").fill("olga")
    page.get_by_label("Password").fill(cast.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_title("Overview · Clearhouse")
    expect(page.get_by_role("banner")).to_contain_text("olga")


def test_a_person_signs_in_by_keyboard_alone(page: Page, acme: cast.Acme) -> None:
    page.goto("/login")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type("olga")
    page.keyboard.press("Tab")
    page.keyboard.type(cast.PASSWORD)
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Sign in")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()


def test_the_first_tab_stop_leads_past_the_bar(signed_in: Page) -> None:
    signed_in.keyboard.press("Tab")
    skip = signed_in.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    assert skip.evaluate("link => link.getBoundingClientRect().top >= 0")
    signed_in.keyboard.press("Enter")
    expect(signed_in.locator("main")).to_be_focused()


def test_what_has_the_focus_has_a_ring_of_two_pixels(signed_in: Page) -> None:
    for _ in range(3):
        signed_in.keyboard.press("Tab")
    ring = signed_in.evaluate(
        "(style => `${style.outlineStyle} ${style.outlineWidth}`)"
        "(getComputedStyle(document.activeElement))"
    )
    assert ring == "solid 2px"


def test_a_wrong_password_and_an_unknown_name_read_the_same(page: Page, acme: cast.Acme) -> None:
    wrong = refused(page, "olga", "not the password")
    assert "name and password" in wrong
    assert refused(page, "nobody-of-this-name", cast.PASSWORD) == wrong


def test_a_refusal_keeps_the_name_and_never_the_password(page: Page, acme: cast.Acme) -> None:
    refused(page, "olga", "not the password")
    expect(page.get_by_label("Name")).to_have_value("olga")
    expect(page.get_by_label("Password")).to_have_value("")
    expect(page.get_by_label("Password")).to_have_attribute("aria-invalid", "true")


def test_signing_out_ends_the_login(signed_in: Page) -> None:
    signed_in.get_by_role("button", name="Sign out").click()
    expect(signed_in).to_have_title("Sign in · Clearhouse")
    signed_in.goto("/")
    expect(signed_in).to_have_title("Sign in · Clearhouse")


def test_a_person_comes_back_to_the_page_that_was_asked_for(page: Page, acme: cast.Acme) -> None:
    page.goto("/calls?overdue=1")
    page.get_by_label("Name").fill("olga")
    page.get_by_label("Password").fill(cast.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_title("Calls, overdue · Clearhouse")


def test_everything_works_without_script(open_page: OpenPage, acme: cast.Acme) -> None:
    page = open_page(java_script_enabled=False)
    pages.sign_in(page)
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · Clearhouse")
