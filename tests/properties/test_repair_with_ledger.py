"""Any broken history beside its ledger is mended with the ledger's results, each with its call."""

import json
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.transcripts.neutral import Call, Result, Role, Text
from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.repair import Repaired, repair
from ledger.transcripts.validation import check
from tests.properties.recorded_history import Recorded, recorded_histories

PROFILES = sorted(profiles())
EVERY = pytest.mark.parametrize("name", PROFILES)
MENDED = settings(max_examples=15, deadline=None)
FOLDED = re.compile(r"told as text: \S+ with (\{[^}]*\})\. Its (?:result|error): (\S+)")
"""A step whose reasoning is gone, as some providers have to be told of it."""


def _mend(recorded: Recorded, source: str, name: str) -> Repaired:
    body = profile(source).shape.write(recorded.history.entries)
    return repair(body, format=source, profile=profile(name), ledger=recorded.known)


@EVERY
@MENDED
@given(recorded=recorded_histories())
def test_a_chat_history_is_mended_with_what_its_ledger_knows(name: str, recorded: Recorded) -> None:
    _holds(recorded, _mend(recorded, "openai-chat", name), name)


@EVERY
@MENDED
@given(data=st.data())
def test_a_provider_s_own_history_is_mended_with_what_its_ledger_knows(
    name: str, data: st.DataObject
) -> None:
    kept = profile(name)
    recorded = data.draw(
        recorded_histories(
            name,
            may_cut=kept.arguments_as_text is not False,
            may_restart=not kept.shape.itemised,
        )
    )
    _holds(recorded, _mend(recorded, name, name), name)


def _holds(recorded: Recorded, mended: Repaired, name: str) -> None:
    target = profile(name)
    sent = target.shape.read(mended.body)
    assert check(sent, target) == []
    again = repair(mended.body, format=name, profile=target, ledger=recorded.known)
    assert again.body is mended.body
    answered = _answered(sent)
    _every_recorded_result_is_there(recorded, answered, _said(sent))
    _no_result_is_with_another_call(recorded, answered)


def _answered(sent: list[Any]) -> list[tuple[str, str]]:
    """Arguments and result of each call, matched anew: first in, first out by id; or as text."""
    waiting: dict[str, list[Call]] = {}
    found = []
    for entry in sent:
        for part in entry.parts:
            if isinstance(part, Call):
                waiting.setdefault(part.id or "", []).append(part)
            elif isinstance(part, Result):
                call = waiting[part.answers or ""].pop(0)
                found.append((json.dumps(dict(call.arguments or {})), part.text))
    return found + FOLDED.findall(_said(sent))


def _said(sent: list[Any]) -> str:
    texts = (part.text for e in sent if e.role is Role.USER for part in e.parts
             if isinstance(part, Text))  # fmt: skip
    return "\n".join(texts)


def _every_recorded_result_is_there(
    recorded: Recorded, answered: list[tuple[str, str]], said: str
) -> None:
    """Behind its call; or as a correction, where the model had read our notice and gone on."""
    results = Counter(text for _, text in answered)
    for ask, token in recorded.results.items():
        assert results[token] <= 1
        if ask in recorded.present | recorded.lost:
            assert results[token] == 1 or token in said
    for ask in recorded.lost:
        assert any(ask in asked for asked, _ in answered)


def _no_result_is_with_another_call(recorded: Recorded, answered: list[tuple[str, str]]) -> None:
    askers = recorded.history.owners | recorded.askers
    for asked, text in answered:
        if text in askers:
            assert (askers[text] or "nobody's") in asked
