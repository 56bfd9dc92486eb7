"""The parts of a message as its row keeps them: neutral, with each call as its place only.

`{"text"}`, `{"call"}` and `{"opaque", "format", "body"}` are the members that tell them apart, in
this order; members of a text's or a call's own stand in its `opaque`. A call's name stands beside
its place where the model used another one than its tool has. What came is what goes back: nothing
here edits, sorts or drops a part.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ledger.transcripts.neutral import Call, Opaque, OpaqueKind, Part, Text

Written = dict[str, Any]
"""One part as JSON."""

PARTS = "application/vnd.clearhouse.parts+json"
"""The media type of a result that is more than one plain text: its parts, written so."""


def written(parts: Iterable[Part], names: Mapping[int, str] | None = None) -> list[Written]:
    """The parts as JSON; calls are numbered from 0 in their order.

    `names` are tools by the number of their call, where the reply calls them otherwise.
    """
    found: list[Written] = []
    calls = 0
    for part in parts:
        match part:
            case Text(text, opaque):
                found.append({"text": text} | ({"opaque": dict(opaque)} if opaque else {}))
            case Opaque(kind, format_, body):
                found.append({"opaque": str(kind), "format": format_, "body": body})
            case Call():
                found.append(_call(part, calls, (names or {}).get(calls, part.name)))
                calls += 1
    return found


def _call(call: Call, position: int, tool: str) -> Written:
    beside = {
        "kind": call.kind if call.kind != "function" else "",
        "opaque": dict(call.opaque),
        "name": call.name if call.name != tool else "",
    }
    return {"call": position} | {name: value for name, value in beside.items() if value}


def read(found: Sequence[Written], call_of: Callable[[int, Written], Part]) -> tuple[Part, ...]:
    """The parts again; `call_of` gives the call at a place, with what stands beside it."""
    return tuple(_part(each, call_of) for each in found)


def _part(found: Written, call_of: Callable[[int, Written], Part]) -> Part:
    if "text" in found:
        return Text(found["text"], found.get("opaque", {}))
    if "call" in found:
        return call_of(found["call"], found)
    return Opaque(OpaqueKind(found["opaque"]), found["format"], found["body"])


def result_parts(body: bytes) -> tuple[Text | Opaque, ...]:
    """The parts of a result of the media type PARTS."""
    found = read(json.loads(body), _no_call)
    return tuple(part for part in found if isinstance(part, Text | Opaque))


def _no_call(position: int, beside: Written) -> Part:
    raise ValueError(f"A result has a call at {position}.")
