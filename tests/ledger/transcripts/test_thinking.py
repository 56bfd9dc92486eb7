"""Where reasoning is asked for: in the whole request, or since the user last spoke."""

from typing import Any

import pytest

from ledger.transcripts.profiles import profile
from ledger.transcripts.repair import repair
from ledger.transcripts.validation import check

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "Eq"}
USER = {"role": "user", "content": "Go on."}


def _step(id: str, *, thought: bool) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": id, "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": id, "content": "ok"}
    return [
        {"role": "assistant", "content": [THOUGHT, use] if thought else [use]},
        {"role": "user", "content": [result]},
    ]


def _chat_step(id: str, *, thought: bool) -> list[dict[str, Any]]:
    call = {"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    reasoning = {"reasoning_content": "Hm."} if thought else {}
    return [
        {"role": "assistant", "content": None, **reasoning, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": "ok"},
    ]


def _faults(name: str, messages: Any) -> list[tuple[str, int]]:
    target = profile(name)
    return [(each.code, each.at) for each in check(target.shape.read(messages), target)]


def test_a_conversation_that_began_to_think_half_way_is_sound():
    messages = [USER, *_step("a", thought=False), USER, *_step("b", thought=True)]

    assert _faults("anthropic", messages) == []


def test_steps_behind_a_first_step_with_reasoning_may_be_without():
    messages = [USER, *_step("a", thought=True), *_step("b", thought=False)]

    assert _faults("anthropic", messages) == []


def test_the_first_step_since_the_user_spoke_begins_with_reasoning():
    earlier = [USER, *_step("a", thought=False)]
    messages = [*earlier, USER, *_step("b", thought=False), *_step("c", thought=True)]

    assert _faults("anthropic", messages) == [("reasoning_missing", 4)]


def test_a_text_beside_results_is_the_user_speaking():
    step = _step("a", thought=False)
    step[1]["content"].append({"type": "text", "text": "Stop there."})

    assert _faults("anthropic", [USER, *step, *_step("b", thought=True)]) == []


def test_deepseek_wants_it_of_every_step_since_the_user_spoke():
    earlier = [USER, *_chat_step("a", thought=False), USER]
    messages = [*earlier, *_chat_step("b", thought=True), *_chat_step("c", thought=False)]

    assert _faults("deepseek", messages) == [("reasoning_missing", 6)]


def test_kimi_wants_it_of_every_step_of_the_request():
    messages = [USER, *_chat_step("a", thought=False), USER, *_chat_step("b", thought=True)]

    assert _faults("kimi", messages) == [("reasoning_missing", 1)]


@pytest.mark.parametrize(
    ("name", "step"), [("anthropic", _step), ("deepseek", _chat_step), ("kimi", _chat_step)]
)
def test_a_step_that_lacks_it_is_told_as_text_as_a_whole(name, step):
    messages = [
        USER,
        *step("a", thought=False),
        *step("b", thought=False),
        *step("c", thought=True),
    ]

    repaired = repair(messages, format=name, profile=profile(name))

    assert _faults(name, repaired.body) == []
    assert [change.kind for change in repaired.report.changes] == ["step_folded"] * 2
    assert [call.id for entry in repaired.entries for call in entry.calls] == ["c"]
