"""The judges judge: each takes a sound transcript of its form and refuses a broken one."""

from copy import deepcopy
from typing import Any

import pytest

from tests.judges.court import JUDGES_OF, Court

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the weather in Rome and in Oslo?"},
    {
        "role": "assistant",
        "tool_calls": [
            {"id": each, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
            for each in ("rome00001", "oslo00001")
        ],
    },
    {"role": "tool", "tool_call_id": "rome00001", "content": "18"},
    {"role": "tool", "tool_call_id": "oslo00001", "content": "4"},
    {"role": "user", "content": "Thanks."},
]
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "What is the weather in Rome?"},
    {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "18"},
]
BLOCKS: list[dict[str, Any]] = [
    {"role": "user", "content": "What is the weather in Rome?"},
    {"role": "assistant", "content": [
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
    ]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18"},
    ]},
]  # fmt: skip
CONTENTS: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "What is the weather in Rome?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"t": 18}}}]},
]
CONVERSE: list[dict[str, Any]] = [
    {"role": "user", "content": [{"text": "What is the weather in Rome?"}]},
    {"role": "assistant", "content": [
        {"toolUse": {"toolUseId": "tooluse_1", "name": "weather", "input": {}}},
    ]},
    {"role": "user", "content": [
        {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "18"}]}},
    ]},
]  # fmt: skip
SOUND = {
    "anthropic": BLOCKS,
    "bedrock": CONVERSE,
    "gemini": CONTENTS,
    "langgraph": CHAT,
    "mistral": CHAT,
    "openai_chat": CHAT,
    "openai_chat_and_more": CHAT,
    "openai_responses": ITEMS,
    "pydantic_ai": CHAT,
}


def without(body: list[dict[str, Any]], *places: int) -> list[dict[str, Any]]:
    return [each for at, each in enumerate(body) if at not in places]


def but(body: list[dict[str, Any]], at: int, **members: Any) -> list[dict[str, Any]]:
    changed = deepcopy(body)
    changed[at] |= members
    return changed


BROKEN = {
    "anthropic-unknown-member": ("anthropic", but(BLOCKS, 0, name="Ann"), "extra_forbidden"),
    "anthropic-result-without-id": (
        "anthropic", but(BLOCKS, 2, content=[{"type": "tool_result"}]), "tool_use_id",
    ),
    "bedrock-no-content": ("bedrock", [{"role": "user"}], "content"),
    "bedrock-block-of-another": (
        "bedrock", but(CONVERSE, 0, content=BLOCKS[1]["content"]), "Unknown",
    ),
    "gemini-role": ("gemini", but(CONTENTS, 0, role="tool"), "Role must be user or model"),
    "gemini-empty-reply": ("gemini", but(CONTENTS, 1, parts=[]), "leaves contents out"),
    "gemini-unknown-member": ("gemini", but(CONTENTS, 1, tool_calls=[]), "Extra inputs"),
    "langgraph-unanswered": ("langgraph", without(CHAT, 4), "corresponding ToolMessage"),
    "langgraph-orphan": ("langgraph", without(CHAT, 2), "has no call for"),
    "mistral-unanswered": ("mistral", without(CHAT, 4), "Not the same number"),
    "mistral-orphan": ("mistral", without(CHAT, 2), "Unexpected role 'tool'"),
    "mistral-id": ("mistral", but(CHAT, 3, tool_call_id="x"), "length of 9"),
    "mistral-duplicate": ("mistral", [*CHAT[:4], CHAT[3], *CHAT[5:]], "Duplicate tool call id"),
    "openai-unknown-member": ("openai_chat", but(CHAT, 1, pos=3), "extra_forbidden"),
    "openai-result-without-id": (
        "openai_chat", but(CHAT, 3, tool_call_id=None), "tool_call_id",
    ),
    "openai-with-members-of-others": (
        "openai_chat_and_more", but(CHAT, 2, tool_calls=[{"id": "c"}]), "function",
    ),
    "responses-no-call-id": ("openai_responses", but(ITEMS, 1, call_id=None), "call_id"),
    "responses-unknown-type": ("openai_responses", but(ITEMS, 2, type="tool"), "type"),
    "pydantic-ai-unanswered": ("pydantic_ai", without(CHAT, 4), "repairs it"),
    "pydantic-ai-orphan": ("pydantic_ai", without(CHAT, 2), "repairs it"),
}  # fmt: skip


@pytest.mark.parametrize("judge", SOUND)
def test_a_judge_takes_a_sound_transcript(court: Court, judge: str) -> None:
    assert court.ask(judge, SOUND[judge]) is None


@pytest.mark.parametrize("case", BROKEN)
def test_a_judge_refuses_a_broken_transcript(court: Court, case: str) -> None:
    judge, body, reason = BROKEN[case]
    assert reason in (court.ask(judge, body) or "taken")


def test_every_judge_is_asked_for_some_provider() -> None:
    assert {judge for judges in JUDGES_OF.values() for judge in judges} == SOUND.keys()
