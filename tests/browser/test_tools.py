"""A policy tried on history and saved, in a browser: found out, typed, told."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests import builders, cast
from tests.browser import pages
from tests.recovery import deciding

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_policy_is_judged_while_typed_tried_and_saved_by_name_and_number(
    page: Page, acme: cast.Acme
) -> None:
    cast.a_person("alma", acme.workspace, "admin")
    call = builders.a_call(acme, "ambiguous", tool=builders.a_tool(acme, "send_invoice"))
    deciding.found(call, "happened", cast.as_decider(acme.olga))
    pages.let_in(page, "alma")
    page.goto("/tools/send_invoice/policy")

    page.get_by_label("Class", exact=True).select_option("idempotent_write")
    expect(page.locator("#judged")).to_contain_text("no_key_template")
    expect(page.locator("#polite")).to_have_text(re.compile(r"^\d+ errors?(, \d+ warnings?)?$"))
    page.get_by_label("Key template").fill("path:{path}")
    page.get_by_label("Heartbeat", exact=True).focus()
    expect(page.locator("#judged")).not_to_contain_text("no_key_template")

    page.get_by_role("button", name="Try on history").first.click()
    expect(page.locator(".tried.repeated")).to_contain_text("1 would have repeated an effect")
    page.get_by_label("Level 4").first.fill("send_invoice 1")
    page.get_by_label("Grounds").first.fill("The provider keeps our keys now.")
    page.get_by_role("button", name="Save as a new version").first.click()

    expect(page.locator("#said")).to_contain_text("Saved as version 2.")
    expect(page.get_by_role("row", name="2 active")).to_contain_text("1 repeated of 1")
    assert pages.violations(page) == []
