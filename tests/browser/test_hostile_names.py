"""Names from outside are text: no markup, no script, no hidden character, no turned line."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, expect

from ledger.models import Agent, ToolCall
from tests import builders, cast
from tests.browser import pages

pytestmark = pytest.mark.django_db(transaction=True)

CORPUS = json.loads((Path(__file__).parents[1] / "corpus/markup.json").read_text())["entries"]
LONGEST = 128
NAMES = [
    text
    for entry in CORPUS
    if all(isinstance(piece, str) for piece in entry["body"])
    and 0 < len(text := "".join(entry["body"])) <= LONGEST
    and "\x00" not in text
]


def names_a_page_at_a_time() -> list[list[str]]:
    return [NAMES[at : at + 25] for at in range(0, len(NAMES), 25)]


def name_all(acme: cast.Acme, names: list[str]) -> None:
    """A call for each name, of an agent and with a tool of that name.

    The registry refuses such a tool, so the column is written behind its back: the page must
    not depend on the door.
    """
    for at, name in enumerate(names):
        call = builders.a_call(acme, in_state="scheduled")
        agent = Agent.objects.create(workspace=acme.workspace, name=f"{at:03} {name}")
        ToolCall.objects.filter(id=call.id).update(tool=name, agent=agent)


@pytest.mark.corrupts
@pytest.mark.parametrize("names", names_a_page_at_a_time(), ids=lambda names: names[0][:20])
def test_no_name_of_the_corpus_becomes_markup_or_behaviour(
    page: Page, acme: cast.Acme, names: list[str]
) -> None:
    name_all(acme, names)
    noise: list[str] = []

    def heard(dialog: Dialog) -> None:
        noise.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", heard)
    pages.sign_in(page)
    origin = page.url.rstrip("/")
    page.on("request", lambda request: noise.append(request.url))
    page.goto("/calls")

    assert [url for url in noise if not url.startswith(origin)] == []
    assert pages.violations(page) == []
    assert page.locator("#calls tbody tr td bdi > :not(wbr)").count() == 0
    assert len(pages.rows(page)) == len(names)


def test_a_name_full_of_markup_reads_as_it_was_written(page: Page, acme: cast.Acme) -> None:
    name = "<img src=x onerror=alert(1)>"
    agent = Agent.objects.create(workspace=acme.workspace, name=name)
    builders.a_call(acme, agent=agent)
    pages.let_in(page)
    page.goto("/calls")
    cell = page.locator("#calls .agent")
    expect(cell).to_have_text(name)
    expect(cell).to_have_attribute("title", name)


def test_characters_that_turn_or_hide_a_name_are_drawn(page: Page, acme: cast.Acme) -> None:
    agent = Agent.objects.create(workspace=acme.workspace, name="bill\u202egnp.\u200bexe")
    builders.a_call(acme, agent=agent)
    pages.let_in(page)
    page.goto("/calls")
    expect(page.locator("#calls .agent")).to_have_text("bill⟨U+202E⟩gnp.⟨U+200B⟩exe")


def test_a_name_in_two_scripts_says_so(page: Page, acme: cast.Acme) -> None:
    agent = Agent.objects.create(workspace=acme.workspace, name="\u0430da")
    builders.a_call(acme, agent=agent)
    pages.let_in(page)
    page.goto("/calls")
    expect(page.locator("#calls .agent")).to_contain_text("mixes Latin and Cyrillic")


def test_a_filter_that_keeps_nothing_is_named_as_text(page: Page, acme: cast.Acme) -> None:
    builders.a_call(acme)
    pages.let_in(page)
    page.goto("/calls?tool=%3Cscript%3Ealert(1)%3C/script%3E")
    expect(page.locator("main")).to_contain_text("<script>alert(1)</script>")
    assert pages.violations(page) == []
