"""A conversation that was interrupted twice goes from each format to each other, and is accepted.

Parallel calls of which one failed, reasoning, pictures: all as the format has them.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from ledger.notices import TEMPLATES
from ledger.transcripts.neutral import Entry, Opaque, Result, Text
from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.repair import Repaired, repair
from ledger.transcripts.validation import check
from tests.ledger.transcripts.conversations import ANSWER, CONVERSATIONS, LAST, REFUSED

FORMATS = sorted(set(CONVERSATIONS) - {"minimax-messages"})
"""Those whose conversation has the two steps that can be interrupted."""

FROM_EACH = pytest.mark.parametrize("out_of", FORMATS)
TO_EACH = pytest.mark.parametrize("into", sorted(profiles()))
UNRECORDED = TEMPLATES["unrecorded"]


@cache
def _interrupted(name: str) -> Any:
    """The conversation without the first result and the last: both steps broke off."""
    shape = profile(name).shape
    entries = shape.read(CONVERSATIONS[name])
    answers = [result.answers for entry in entries for result in entry.results]
    kept = [_without(entry, {answers[0], answers[-1]}) for entry in entries]
    return shape.write([entry for entry in kept if entry.parts], {})


def _without(entry: Entry, answers: set[str | None]) -> Entry:
    parts = tuple(p for p in entry.parts if not (isinstance(p, Result) and p.answers in answers))
    return entry if parts == entry.parts else replace(entry, parts=parts, raw=None)


@cache
def _repaired(out_of: str, into: str) -> Repaired:
    return repair(_interrupted(out_of), format=out_of, profile=profile(into))


def _entries(out_of: str, into: str) -> list[Entry]:
    return profile(into).shape.read(_repaired(out_of, into).body)


@FROM_EACH
def test_the_interrupted_conversation_is_refused_by_its_own_provider(out_of):
    target = profile(out_of)

    codes = {each.code for each in check(target.shape.read(_interrupted(out_of)), target)}

    assert codes & {"unanswered_call", "count_mismatch"}


@FROM_EACH
@TO_EACH
def test_what_goes_over_is_accepted(out_of, into):
    assert check(_entries(out_of, into), profile(into)) == []


@FROM_EACH
@TO_EACH
def test_the_words_of_the_user_and_the_real_result_go_over(out_of, into):
    entries = _entries(out_of, into)
    words = [part.text for entry in entries for part in entry.parts if isinstance(part, Text)]
    results = [result for entry in entries for result in entry.results]

    assert [text for text in words if text in (ANSWER, LAST)] == [ANSWER, LAST]
    assert [REFUSED in each.text for each in results].count(True) + _told(words, REFUSED) == 1


@FROM_EACH
@TO_EACH
def test_both_interrupted_calls_are_closed_by_a_notice(out_of, into):
    entries = _entries(out_of, into)
    words = [part.text for entry in entries for part in entry.parts if isinstance(part, Text)]
    results = [result for entry in entries for result in entry.results]

    assert [UNRECORDED in r.text for r in results].count(True) + _told(words, UNRECORDED) == 2
    assert len({result.answers for result in results}) == len(results)


@FROM_EACH
@TO_EACH
def test_what_went_over_is_left_alone_by_a_second_repair(out_of, into):
    body = _repaired(out_of, into).body

    again = repair(body, format=into, profile=profile(into))

    assert again.body == body
    assert again.report.to_json()["changes"] == []


@FROM_EACH
@TO_EACH
def test_only_its_own_reasoning_goes_to_a_provider(out_of, into):
    owner = {"neutral": "anthropic", "openai-chat": "", "openai-compatible": ""}.get(out_of, out_of)
    parts = [part for entry in _entries(out_of, into) for part in entry.parts]
    reasoning = [part for part in parts if isinstance(part, Opaque) and part.kind == "reasoning"]

    expected = {owner} if owner and into in (owner, out_of, "neutral") else set()
    assert {part.format for part in reasoning} == expected


def _told(words: list[str], text: str) -> int:
    """How often a step that was told as plain text quotes it."""
    return sum(said.count(text) for said in words)


CUSTOM_CALLS = ("openai-chat", "openai-responses")


@TO_EACH
def test_a_call_with_free_text_goes_over_as_a_function_s(into):
    written = str(_repaired("openai-responses", into).body)

    assert ("'custom" in written) is (into in (*CUSTOM_CALLS, "neutral"))
    assert "Blue" in written


@pytest.mark.parametrize("out_of", ["openai-chat", "deepseek", "kimi", "minimax"])
def test_members_of_one_chat_provider_do_not_go_to_another(out_of):
    messages = _repaired(out_of, "mistral").body["messages"]

    known = {"role", "content", "name", "tool_calls", "tool_call_id"}
    assert {member for message in messages for member in message} <= known
    assert "name" not in messages[-1]
