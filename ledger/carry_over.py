"""What a new context is told of unresolved calls: one line for each, made from rows alone (R107).

Rebuilt at each compaction, never edited. Equal rows give equal bytes: no clock, no order but that
of turn, model step and position. Arguments are withheld where their schema or their name says that
they are secret, and cut at 200 characters; a question to a person stands as it was asked.
Source: semantics, 16.3.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Max

from ledger import ids, notices, outcomes, strictjson
from ledger.calls import Fetchable, Reader, read_many
from ledger.models import Event, Interrupt, ToolCall
from ledger.vocabulary import CallState

ARGUMENT_CHARACTERS_MAX = 200
WITHHELD = "[withheld]"
SECRET_NAMES = ("password", "passphrase", "secret", "token", "api_key", "apikey", "authorization",
                "credential", "private_key", "cookie")  # fmt: skip

WHOSE_TURN: Mapping[CallState, str] = {
    CallState.RECORDED: "the ledger's",
    CallState.PAUSED: "a person's",
    CallState.SCHEDULED: "a worker's",
    CallState.RUNNING: "a worker's",
    CallState.PARKED: "the outside's",
    CallState.BACKING_OFF: "the ledger's",
    CallState.INTERRUPTED: "recovery's",
    CallState.AMBIGUOUS: "an operator's",
}
"""Whose turn it is in each open state (glossary)."""

HEADING = (
    "Calls that are not settled, as the ledger knows them. They go on under these ids; do not "
    "issue them again."
)

Line = dict[str, Any]
"""The facts of one unresolved call, and `said`, the same as one line of text."""


def lines(calls: Sequence[ToolCall]) -> list[Line]:
    """One line for each of these open calls, in their order; a constant number of queries."""
    if not calls:
        return []
    since, questions = _since(calls), _questions(calls)
    read = read_many([(Reader(call.workspace_id), call.id) for call in calls])
    fetched = {each.call.id: each for each in read if isinstance(each, Fetchable)}
    return [
        _line(call, fetched[call.id], since[call.id], questions.get(call.id, [])) for call in calls
    ]


def block(carried: Sequence[Line]) -> str:
    """The lines as they head a new context; empty where nothing is unresolved."""
    if not carried:
        return ""
    return "\n".join([HEADING, *(f"- {said(line)}" for line in carried)])


def said(line: Line | str) -> str:
    """A line as text."""
    return line if isinstance(line, str) else str(line["said"])


def _line(call: ToolCall, fetched: Fetchable, since: datetime, asked: list[Line]) -> Line:
    shown = outcomes.shown(fetched)
    facts: Line = {
        "call": ids.shown("call", call.id),
        "tool": call.tool,
        "tool_call_id": call.tool_call_id,
        "turn": call.turn.number if call.turn else None,
        "model_step": call.model_step,
        "position": call.position,
        "arguments": shortened(call),
        "arguments_sha256": call.arguments_sha256,
        "state": str(call.state),
        "effect": str(call.effect),
        "since": since.isoformat().replace("+00:00", "Z"),
        "whose_turn": WHOSE_TURN[call.state],
        "template": shown.template,
        "version": shown.version,
        "text": shown.text,
        "questions": asked,
    }
    return facts | {"said": _said(facts)}


def _said(facts: Line) -> str:
    named = f" ({notices.quoted(facts['tool_call_id'])})" if facts["tool_call_id"] else ""
    asked = "".join(f" Asked: {_asked(each)}." for each in facts["questions"])
    return (
        f"{facts['call']}{named}: {facts['tool']} with {facts['arguments']} "
        f"(sha256:{facts['arguments_sha256']}); {facts['state']} since {facts['since']}, effect "
        f"{facts['effect']}, {facts['whose_turn']} turn. {facts['text']}{asked}"
    )


def _asked(question: Line) -> str:
    return notices.visible(json.dumps(question, ensure_ascii=False))


def shortened(call: ToolCall) -> str:
    """The arguments of a call without what is secret, at most 200 characters of them."""
    given = json.loads(call.arguments)
    schema = call.tool_version.input_schema
    plain = strictjson.canonical(_without_secrets(given, schema)).decode()
    line = notices.visible(plain)
    if len(line) <= ARGUMENT_CHARACTERS_MAX:
        return line
    return f"{line[:ARGUMENT_CHARACTERS_MAX]}… ({len(line) - ARGUMENT_CHARACTERS_MAX} more)"


def _without_secrets(value: Any, schema: Any) -> Any:
    known = schema if isinstance(schema, dict) else {}
    if known.get("x-secret"):
        return WITHHELD
    if isinstance(value, list):
        return [_without_secrets(each, known.get("items")) for each in value]
    if not isinstance(value, dict):
        return value
    below = known.get("properties")
    schemas = below if isinstance(below, dict) else {}
    return {
        name: WITHHELD
        if is_secret(name) and isinstance(each, str | list | dict)
        else _without_secrets(each, schemas.get(name))
        for name, each in value.items()
    }


def is_secret(name: str) -> bool:
    """Whether a member of this name is taken to hold a secret."""
    plain = name.lower().replace("-", "_")
    return any(word in plain for word in SECRET_NAMES)


def _since(calls: Sequence[ToolCall]) -> dict[UUID, datetime]:
    """When each call came into its present state."""
    moves = Event.objects.filter(call__in=[call.id for call in calls])
    entered = moves.exclude(from_state=F("to_state")).values("call_id").annotate(at=Max("at"))
    return {row["call_id"]: row["at"] for row in entered}


def _questions(calls: Sequence[ToolCall]) -> dict[UUID, list[Line]]:
    """What persons are still asked about each call, word for word."""
    asked: dict[UUID, list[Line]] = {}
    pending = Interrupt.objects.filter(
        call__in=[call.id for call in calls], ended_at__isnull=True
    ).order_by("asked_at", "id")
    for each in pending:
        question = {"interrupt": each.id, "phase": str(each.phase), "name": each.name,
                    "reason": each.reason}  # fmt: skip
        asked.setdefault(each.call_id, []).append(question)
    return asked
