"""The start page as a person sees it: empty, full, filtered, and of somebody else."""

import json
import shlex
from datetime import timedelta
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from ledger import clock, keys
from ledger.models import ToolCall
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

    signed_in.reload()
    assert [row[:2] for row in pages.rows(signed_in)] == [[call["id"][-8:], "sandbox.lookup"]]


def test_the_latest_calls_stand_with_class_state_and_effect(page: Page, acme: cast.Acme) -> None:
    call = builders.a_call(acme, in_state="ambiguous")
    builders.a_call(acme, in_state="succeeded", recovery_class="read_only")
    pages.sign_in(page)

    newest, oldest = pages.rows(page)
    assert newest[3:6] == ["read_only", "succeeded", "no effect"]
    assert oldest[:6] == [
        call.id.hex[-8:], call.tool, "ada", "side_effect", "ambiguous", "may have happened"
    ]  # fmt: skip


def test_a_counter_leads_to_exactly_what_it_counts(page: Page, acme: cast.Acme) -> None:
    for state in ("ambiguous", "running", "succeeded"):
        builders.a_call(acme, in_state=state)
    pages.sign_in(page)

    tile = page.get_by_role("link", name="Needs an answer")
    expect(tile.locator(".figure")).to_have_text("1")
    tile.click()

    expect(page).to_have_title("Calls: needs an answer · Clearhouse")
    assert [row[4] for row in pages.rows(page)] == ["ambiguous"]


def test_a_state_without_calls_says_so_and_offers_the_way_back(page: Page, acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="succeeded")
    pages.sign_in(page)
    page.get_by_role("link", name="0 abandoned").click()
    expect(page.locator("#calls")).to_contain_text("No call is abandoned now")
    page.get_by_role("link", name="Show all calls").click()
    assert len(pages.rows(page)) == 1


@pytest.mark.corrupts
def test_an_overdue_call_says_so_in_words(page: Page, acme: cast.Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    past = clock.now() - timedelta(minutes=1, seconds=5)
    ToolCall.objects.filter(id=call.id).update(schedule_to_start_at=past)
    pages.sign_in(page)
    expect(page.locator("#calls tbody tr.overdue .due")).to_contain_text("overdue by 1:")


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
