"""Whatever we render or repair is taken by the vendor's own types, validators and frameworks."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.transcripts.neutral import Entry
from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.render import render
from ledger.transcripts.repair import repair
from tests.judges import conversations
from tests.judges.court import JUDGES_OF, Court

PARTS = {
    "summary": conversations.SUMMARY + conversations.PARALLEL[:1],
    "parallel calls": conversations.PARALLEL[:3],
    "one interruption": conversations.INTERRUPTED_ONCE,
    "two interruptions": conversations.INTERRUPTED_ONCE + conversations.INTERRUPTED_TWICE,
    "a hand-off": conversations.PARALLEL[:1] + conversations.HANDED_OFF,
    "everything": conversations.EVERYTHING,
}
JUDGED = sorted(JUDGES_OF)
CHAT = render(conversations.EVERYTHING, profile=profile("openai-chat")).body


def test_every_provider_has_a_judge() -> None:
    assert {*JUDGED, "neutral"} == profiles().keys()


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("part", PARTS)
def test_what_is_rendered_is_taken(court: Court, part: str, name: str) -> None:
    body = render(PARTS[part], profile=profile(name)).body

    assert court.refusals(name, body) == {}


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("format_", JUDGED)
def test_what_one_provider_had_is_repaired_for_another(
    court: Court, format_: str, name: str
) -> None:
    body = render(conversations.EVERYTHING, profile=profile(format_)).body

    mended = repair(body, format=format_, profile=profile(name))

    assert court.refusals(name, mended.body) == {}


@st.composite
def damaged(draw: st.DrawFn) -> list[Any]:
    """The conversation as chat messages, some lost, some doubled, some out of place."""
    messages = [each for each in CHAT if draw(st.integers(0, 5))]
    for _ in range(draw(st.integers(0, 4))):
        if messages:
            copied = messages[draw(st.integers(0, len(messages) - 1))]
            messages.insert(draw(st.integers(0, len(messages))), copied)
    return messages


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(messages=damaged(), name=st.sampled_from(JUDGED))
def test_what_broke_is_taken_once_it_is_repaired(
    court: Court, messages: list[Any], name: str
) -> None:
    mended = repair(messages, format="openai-chat", profile=profile(name))

    if mended.entries:  # no provider answers to nothing at all
        assert court.refusals(name, mended.body) == {}


def test_a_judge_would_refuse_what_was_not_repaired(court: Court) -> None:
    """The court is no rubber stamp: the same damage is refused before its repair."""
    orphan = [each for each in CHAT if each["role"] != "assistant"]

    assert court.refusals("mistral", orphan).keys() == {"mistral", "langgraph", "pydantic_ai"}


def test_nothing_of_the_conversation_is_left_out() -> None:
    """What the court sees holds every call: two interruptions, a hand-off, a summary, an error."""
    calls = [call for entry in conversations.EVERYTHING for call in entry.calls]
    results: list[Entry] = [entry for entry in conversations.EVERYTHING if entry.results]

    assert len(calls) == sum(len(entry.results) for entry in results) == 6
