"""Whatever stands in place of any value: it is read and given back, or refused with its place."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.transcripts.neutral import Unreadable
from ledger.transcripts.profiles import formats, profile, profiles
from ledger.transcripts.repair import Unrepairable, repair
from ledger.transcripts.validation import check
from tests.ledger.transcripts.conversations import CONVERSATIONS

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False)
NAMES = st.sampled_from(["type", "text", "id", "role", "\x00"])
STRANGE = st.recursive(
    SCALARS | st.text(max_size=4) | st.sampled_from(["text", "tool_use", "assistant", "-"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a JSON value, by the steps that lead to it."""
    if not isinstance(value, dict | list):
        return [path]
    steps = list(value.items() if isinstance(value, dict) else enumerate(value))
    return [path, *(place for step, held in steps for place in _places(held, (*path, step)))]


def _with(value: Any, path: tuple[Any, ...], strange: Any) -> Any:
    if not path:
        return strange
    changed = copy.deepcopy(value)
    held = changed
    for step in path[:-1]:
        held = held[step]
    held[path[-1]] = strange
    return changed


def _pointed(value: Any, pointer: str) -> bool:
    """Whether a pointer leads into the value, or to a member that it lacks."""
    for step in pointer.split("/")[1:]:
        if isinstance(value, list):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value.get(step.replace("~1", "/").replace("~0", "~"))
        else:
            return False
    return True


@pytest.mark.parametrize("name", sorted(profiles()))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.data())
def test_a_strange_value_anywhere_is_given_back_or_refused(name, drawn):
    request = CONVERSATIONS[name]
    messages = request[{"openai-responses": "input", "gemini": "contents"}.get(name, "messages")]
    strange = _with(messages, drawn.draw(st.sampled_from(_places(messages))), drawn.draw(STRANGE))
    shape = profile(name).shape

    try:
        entries = shape.read(strange)
    except Unreadable as refused:
        pointer = refused.pointer
    else:
        pointer = None

    if pointer is not None:
        assert _pointed(strange, pointer)
        return
    assert shape.write(entries) == strange
    assert all(violation.text for violation in check(entries, profile(name)))
    assert _is_mended_or_refused(name, strange)


def _is_mended_or_refused(name: str, transcript: Any) -> bool:
    """Whether repair gives a transcript that is accepted, or says what remains."""
    target = profile(name)
    try:
        repaired = repair(transcript, format=name, profile=target)
    except Unrepairable as refused:
        return bool(refused.violations)
    return check(target.shape.read(repaired.body), target) == []


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.dictionaries(st.sampled_from(["pos", "role", "content"]), STRANGE)))
def test_strange_rows_are_read_or_refused(rows):
    try:
        entries = formats()["rows"].read(rows)
    except Unreadable:
        return
    assert len(entries) <= len(rows)
