"""Hostile bodies of requests that bring a transcript: sound ones, broken in ways of all kinds.

Each mutation may leave a body that is accepted; what must never follow is a 5xx. Every transcript
holds `CANARY`, which must not turn up in a log. The same seed gives the same bodies.
"""

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from ledger.transcripts.profiles import formats

CANARY = "canary-in-a-transcript"

Body = dict[str, Any]
Change = Callable[[random.Random, Body], object]

STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**53 - 1, "", " ", "x" * 5000, "\u202e", "id\n", "{", "[1, 2", "{}",
    '"text"', [], {}, [None], [[]], {"": ""}, ["x"], {"role": "user"}, [{"type": "text"}],
    [{"type": "tool_use"}], [{"type": "tool_result", "content": [None]}], {"text": 7},
    [{"functionCall": None}], [{"toolUse": []}], {"name": None, "arguments": None},
)  # fmt: skip
"""Values that are put where something else belongs."""


def bodies(seed: int, count: int) -> Iterator[bytes]:
    """`count` bodies for either address."""
    dice = random.Random(seed)
    names = sorted(formats())
    for number in range(count):
        form, transcript = dice.choice(_SOUND)
        named = form if dice.random() < 0.8 else names[number % len(names)]
        body: Body = {"format": named, "transcript": deepcopy(transcript)}
        if dice.random() < 0.3:
            body["profile"] = dice.choice([*names, "all", "nobody", "", None])
        for _ in range(dice.randrange(1, 4)):
            dice.choice(_CHANGES)(dice, body)
        yield _written(dice, body)


def _written(dice: random.Random, body: Body) -> bytes:
    text = json.dumps(body, ensure_ascii=dice.random() < 0.5).encode()
    if dice.random() < 0.1:
        cut = dice.randrange(len(text))
        return text[:cut] + dice.choice((b"", b"\0", b"\xff", b"]}")) + text[cut + 1 :]
    return text


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member and item below a value, as its holder and key."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], list | dict):
            yield from _places(value[key])


def _holder(dice: random.Random, body: Body) -> tuple[Any, Any] | None:
    inside = body.get("transcript")
    found = list(_places(inside)) if isinstance(inside, list | dict) else []
    return dice.choice(found) if found else None


def _replace(dice: random.Random, body: Body) -> None:
    if place := _holder(dice, body):
        place[0][place[1]] = deepcopy(dice.choice(STRANGE))


def _remove(dice: random.Random, body: Body) -> None:
    if place := _holder(dice, body):
        del place[0][place[1]]


def _double(dice: random.Random, body: Body) -> None:
    place = _holder(dice, body)
    if place and isinstance(place[0], list):
        place[0].insert(dice.randrange(len(place[0]) + 1), deepcopy(place[0][place[1]]))


def _shuffle(dice: random.Random, body: Body) -> None:
    if isinstance(body.get("transcript"), list):
        dice.shuffle(body["transcript"])


def _wrap(dice: random.Random, body: Body) -> None:
    member = dice.choice(("messages", "input", "contents", "system", "nothing"))
    body["transcript"] = {member: body["transcript"], "system": CANARY, "tools": [{"name": None}]}


def _deepen(dice: random.Random, body: Body) -> None:
    if place := _holder(dice, body):
        value: Any = CANARY
        for _ in range(dice.randrange(10, 100)):
            value = dice.choice(([value], {"content": value}))
        place[0][place[1]] = value


def _multiply(dice: random.Random, body: Body) -> None:
    if isinstance(body.get("transcript"), list):
        body["transcript"] = body["transcript"] * dice.choice((50, 500))


def _option(dice: random.Random, body: Body) -> None:
    names = ("frontier", "unanswered", "failed_reply", "late_results", "offered_tools", "cap",
             "notices", "session", "format", "transcript")  # fmt: skip
    body[dice.choice(names)] = deepcopy(dice.choice((*STRANGE, "open", "drop", "in_place", 4096)))


_CHANGES: tuple[Change, ...] = (
    _replace, _replace, _replace, _remove, _remove, _double, _shuffle, _wrap, _deepen, _multiply,
    _option,
)  # fmt: skip
_SOUND: tuple[tuple[str, Any], ...] = (
    (
        "deepseek",
        [
            {"role": "user", "content": CANARY},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": CANARY,
                "tool_calls": [
                    {
                        "id": each,
                        "type": "function",
                        "function": {"name": "look", "arguments": "{}"},
                    }
                    for each in ("call_1", "call_2")
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": CANARY},
            {
                "role": "tool",
                "tool_call_id": "call_2",
                "content": [{"type": "text", "text": CANARY}],
            },
        ],
    ),
    (
        "anthropic",
        [
            {"role": "user", "content": [{"type": "text", "text": CANARY}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": CANARY, "signature": "c2ln"},
                    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"x": CANARY}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "is_error": True,
                        "content": CANARY,
                    },
                ],
            },
        ],
    ),
    (
        "openai-responses",
        [
            {"role": "user", "content": CANARY},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": CANARY},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": CANARY},
        ],
    ),
    (
        "gemini",
        [
            {"role": "user", "parts": [{"text": CANARY}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2ln"},
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "look", "response": {"x": CANARY}}}],
            },
        ],
    ),
    (
        "bedrock",
        [
            {"role": "user", "content": [{"text": CANARY}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "t_1", "name": "look", "input": {}}}],
            },
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "t_1", "content": [{"json": {}}]}}],
            },
        ],
    ),
    (
        "neutral",
        [
            {"role": "user", "text": CANARY},
            {"role": "assistant", "calls": [{"id": "a", "name": "look", "arguments": {}}]},
            {"role": "tool", "answers": "a", "text": CANARY},
        ],
    ),
    (
        "rows",
        [
            {
                "pos": 90,
                "role": "tool",
                "tool_call_id": "call_37ac",
                "tool_name": "look",
                "content": CANARY,
            },
        ],
    ),
)
