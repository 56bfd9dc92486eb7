"""Any broken history is mended for every provider; no result is lost, or given to another call."""

import copy
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.transcripts.neutral import Call, Result, Text
from ledger.transcripts.profiles import profile, profiles
from ledger.transcripts.repair import Options, repair
from ledger.transcripts.report import digest
from ledger.transcripts.validation import check
from tests.properties.broken_history import History, histories

PROFILES = sorted(profiles())
EVERY = pytest.mark.parametrize("name", PROFILES)
MENDED = settings(max_examples=15, deadline=None)


def _written(history: History, name: str) -> Any:
    return profile(name).shape.write(history.entries)


def _mend(body: Any, source: str, name: str) -> Any:
    return repair(body, format=source, profile=profile(name))


@EVERY
@MENDED
@given(history=histories())
def test_a_chat_history_however_broken_is_mended(name, history):
    body = _written(history, "openai-chat")
    received = copy.deepcopy(body)

    mended = _mend(body, "openai-chat", name)

    assert body == received
    _holds(history, mended, "openai-chat", name)


@EVERY
@MENDED
@given(data=st.data())
def test_a_provider_s_own_history_however_broken_is_mended(name, data):
    history = data.draw(_kept_by(name))

    _holds(history, _mend(_written(history, name), name, name), name, name)


@EVERY
@MENDED
@given(data=st.data(), target=st.sampled_from(PROFILES))
def test_a_history_that_moves_to_another_provider_is_mended(name, data, target):
    history = data.draw(_kept_by(name))

    _holds(history, _mend(_written(history, name), name, target), name, target)


@MENDED
@given(history=histories())
def test_a_step_left_open_for_its_caller_is_still_sound_elsewhere(history):
    options = Options(frontier="open", unanswered="drop")
    target = profile("openai-chat")
    body = _written(history, "openai-chat")

    mended = repair(body, format="openai-chat", profile=target, options=options)

    assert check(mended.entries, target, open_calls=True) == []


def _kept_by(name: str) -> st.SearchStrategy[History]:
    kept = profile(name)
    return histories(
        thought=name,
        may_cut=kept.arguments_as_text is not False,
        may_restart=not kept.shape.itemised,
    )


def _holds(history: History, mended: Any, source: str, name: str) -> None:
    target = profile(name)
    sent = target.shape.read(mended.body)
    assert check(sent, target) == []
    _is_its_own_repair(mended, name)
    _adds_up(mended.report)
    _words_survive(history, mended)
    _every_result_is_with_its_call(history, sent)
    _every_result_is_sent_or_reported(history, mended, source)


def _is_its_own_repair(mended: Any, name: str) -> None:
    """T2: mending again gives the very same, and says nothing."""
    again = _mend(mended.body, name, name)
    assert again.body is mended.body
    assert (again.report.changed, list(again.report.changes)) == (False, [])


def _adds_up(report: Any) -> None:
    assert report.after.results == report.before.results - report.dropped + report.inserted
    assert (report.after.orphans, report.after.unanswered, report.after.duplicates) == (0, 0, 0)


def _words_survive(history: History, mended: Any) -> None:
    sent = json.dumps(mended.body)
    assert [said for said in history.said if said not in sent] == []


def _every_result_is_with_its_call(history: History, sent: list[Any]) -> None:
    """Matched anew, first in, first out by id: all calls of what is sent are answered in turn."""
    waiting: dict[str, list[Call]] = {}
    for entry in sent:
        for part in entry.parts:
            if isinstance(part, Call):
                waiting.setdefault(part.id or "", []).append(part)
            elif isinstance(part, Result):
                owner = history.owners.get(part.text)
                asked = json.dumps(dict(waiting[part.answers or ""].pop(0).arguments or {}))
                assert part.text not in history.owners or (owner and owner in asked)


def _every_result_is_sent_or_reported(history: History, mended: Any, source: str) -> None:
    sent = Counter(result.text for entry in mended.entries for result in entry.results)
    told = "".join(p.text for e in mended.entries for p in e.parts if isinstance(p, Text))
    dropped = {change.digest for change in mended.report.changes}
    read_back = profile(source).shape.read(_written(history, source))
    received = {r.text: r for entry in read_back for r in entry.results}
    for token in history.owners:
        assert sent[token] <= 1
        assert sent[token] or token in told or digest(received[token]) in dropped
