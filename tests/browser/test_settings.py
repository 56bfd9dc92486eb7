"""The settings in a browser: an invitation from the admin's page to the new person's first page."""

import pytest
from playwright.sync_api import Page, expect

from tests import cast
from tests.browser import pages
from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_invited_person_signs_in_and_chooses_a_password_without_script(
    open_page: OpenPage, acme: cast.Acme
) -> None:
    cast.a_person("anna", acme.workspace, "admin")
    admin = open_page(java_script_enabled=False)
    pages.let_in(admin, "anna")
    admin.goto("/settings/people")
    invite = admin.get_by_role("region", name="Invite somebody")
    invite.get_by_label("Name").fill("nina")
    invite.get_by_role("textbox", name="Grounds").fill("She starts on Monday.")
    invite.get_by_role("button", name="Invite").click()
    password = admin.locator("#secret").inner_text()

    nina = open_page(java_script_enabled=False)
    nina.goto("/login")
    nina.get_by_label("Name").fill("nina")
    nina.get_by_label("Password").fill(password)
    nina.get_by_role("button", name="Sign in").click()
    expect(nina).to_have_title("Change the password · Clearhouse")
    nina.get_by_label("Old password").fill(password)
    nina.get_by_label("New password", exact=True).fill("a password of my own")
    nina.get_by_label("New password confirmation").fill("a password of my own")
    nina.get_by_role("button", name="Change it").click()
    expect(nina.locator("#said")).to_contain_text("Your password is changed")


def test_who_chose_the_browsers_zone_reads_all_times_in_it(
    open_page: OpenPage, acme: cast.Acme
) -> None:
    page = open_page(timezone_id="Asia/Tokyo")
    pages.let_in(page, "olga")
    page.goto("/settings")
    page.get_by_label("Time zone").select_option("Same as the browser")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("banner")).to_contain_text("Tokyo +09:00")


@pytest.mark.parametrize(("by_ms", "said"), [(500, ""), (60_000, "ahead"), (-60_000, "behind")])
def test_a_clock_that_differs_by_more_than_two_seconds_is_said(
    open_page: OpenPage, acme: cast.Acme, by_ms: int, said: str
) -> None:
    page = open_page()
    pages.let_in(page, "olga")
    page.add_init_script(f"const real = Date.now; Date.now = () => real() + {by_ms};")
    page.goto("/settings")
    differs = page.locator("[data-clock]")
    expect(differs).to_be_visible(visible=bool(said))
    expect(differs).to_contain_text(said)


def test_a_chosen_zone_and_theme_hold_at_once(signed_in: Page) -> None:
    signed_in.goto("/settings")
    signed_in.get_by_label("Time zone").select_option("Asia/Kolkata")
    signed_in.get_by_label("Dark").check()
    signed_in.get_by_role("button", name="Save").click()
    expect(signed_in.get_by_role("banner")).to_contain_text("Kolkata +05:30")
    expect(signed_in.locator("html.dark")).to_be_attached()
    expect(signed_in.locator("#said")).to_be_focused()
