"""Conversations that broke, as their formats write them: the seed's case, and its parts by name."""

import json
from typing import Any

from ledger.imports import receiving
from ledger.imports.receiving import Received

PROMPT = "Build a single-page website for a bakery."
ORPHANS = (("call_37ac", "read_document"), ("call_dc2b", "insertHtml"), ("call_a9df", "insertHtml"))


def the_rows() -> list[dict[str, Any]]:
    """The seed's table of messages: 32 calls, 35 results, 3 of them orphans, 1 doubled prompt."""
    rows: list[dict[str, Any]] = []

    def row(role: str, content: str, id_: str = "-", name: str = "-") -> None:
        rows.append(
            {"pos": len(rows), "role": role, "tool_call_id": id_, "tool_name": name,
             "content": content}
        )  # fmt: skip

    row("user", "Collect what the bakery sells.")
    for n in range(32):
        id_, name = f"call_{n:04x}", "read_document" if n % 4 == 0 else "insertHtml"
        row("assistant", json.dumps({"part": n}), id_, name)
        row("tool", f"toolResult ok {n}", id_, name)
    row("assistant", "Here is what it sells.")
    row("user", PROMPT)
    row("user", PROMPT)
    for id_, name in ORPHANS:
        row("tool", f"toolResult ok of {id_}", id_, name)
    row("user", "you only did the hero section")
    return rows


def a_call(id_: str, name: str = "insertHtml", arguments: Any = None) -> dict[str, Any]:
    """A call as a chat message holds it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {"at": id_})
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": text}}


def asks(*calls: dict[str, Any], text: str | None = None) -> dict[str, Any]:
    """A reply of a model with these calls."""
    return {"role": "assistant", "content": text, "tool_calls": list(calls)}


def answers(id_: str, text: str = "ok") -> dict[str, Any]:
    """A result."""
    return {"role": "tool", "tool_call_id": id_, "content": text}


def says(text: str) -> dict[str, Any]:
    """What a person says."""
    return {"role": "user", "content": text}


def replies(text: str) -> dict[str, Any]:
    """What a model says without a call."""
    return {"role": "assistant", "content": text}


def received(transcript: Any, format: str = "openai-chat") -> Received:
    """A transcript as its import receives it."""
    body = json.dumps(transcript).encode()
    return receiving.received(body, content_type="application/json", format=format)
