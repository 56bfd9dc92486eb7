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


def test_a_chosen_zone_and_theme_hold_at_once(signed_in: Page) -> None:
    signed_in.goto("/settings")
    signed_in.get_by_label("Time zone").select_option("Asia/Kolkata")
    signed_in.get_by_label("Dark").check()
    signed_in.get_by_role("button", name="Save").click()
    expect(signed_in.get_by_role("banner")).to_contain_text("Kolkata +05:30")
    expect(signed_in.locator("html.dark")).to_be_attached()
    expect(signed_in.locator("#said")).to_be_focused()
