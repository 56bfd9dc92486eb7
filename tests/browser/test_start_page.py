"""The start page as a person sees it: empty, full, filtered, and of somebody else."""

import json
import shlex
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from ledger import keys
from tests import builders, cast
from tests.browser import pages

pytestmark = pytest.mark.django_db(transaction=True)


def pasted(command: str) -> dict[str, str]:
    """Carry out a curl command of the page: its address, headers and body, as curl reads them."""
    words = shlex.split(command)
    headers = [words[at + 1] for at, word in enumerate(words) if word == "-H"]
    body = words[words.index("-d") + 1].encode()
    request = Request(words[2], body, dict(each.split(": ", 1) for each in headers))
    with urlopen(request, timeout=20) as answer:
        found: dict[str, str] = json.load(answer)
        return found


def test_the_line_of_the_empty_page_records_the_first_call(
    signed_in: Page, acme: cast.Acme
) -> None:
    builders.a_tool(acme, "sandbox.lookup", "read_only")
    expect(signed_in.get_by_role("heading", name="No call has been recorded yet")).to_be_visible()
    command = signed_in.locator(".command").inner_text()

    call = pasted(command.replace("<API key>", keys.issue(agent=acme.ada)))

    signed_in.goto("/calls")
    assert [row[:2] for row in pages.rows(signed_in)] == [[call["id"][-8:], "sandbox.lookup"]]


def test_a_counter_leads_to_exactly_what_it_counts(page: Page, acme: cast.Acme) -> None:
    for state in ("ambiguous", "running", "succeeded"):
        builders.a_call(acme, in_state=state)
    pages.sign_in(page)

    tile = page.get_by_role("link", name="Running")
    expect(tile.locator(".figure")).to_have_text("1")
    tile.click()

    expect(page).to_have_title("Calls, State: running · Clearhouse")
    assert [row[4] for row in pages.rows(page)] == ["running"]


def test_a_figure_follows_the_ledger_without_a_new_page(signed_in: Page, acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="running")
    signed_in.reload()
    figure = signed_in.locator("#tile-running .figure")
    expect(figure).to_have_text("1")
    builders.a_call(acme, in_state="running")
    signed_in.keyboard.press("r")
    expect(figure).to_have_text("2")
    assert pages.violations(signed_in) == []


def test_a_person_of_no_workspace_is_told_what_to_do(page: Page, acme: cast.Acme) -> None:
    cast.a_person("nora", acme.workspace)
    builders.a_call(acme)
    pages.sign_in(page, "nora")
    expect(page.get_by_role("heading", name="You may not see any calls yet")).to_be_visible()


def test_mallory_of_globex_sees_nothing_of_acme(
    page: Page, acme: cast.Acme, globex: cast.Globex
) -> None:
    call = builders.a_call(acme)
    pages.sign_in(page, "mallory")
    expect(page.get_by_role("heading", name="No call has been recorded yet")).to_be_visible()
    assert call.id.hex[-8:] not in page.content()
