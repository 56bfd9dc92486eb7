"""Interrupts: raised with a snapshot, ended once (semantics, section 12).

Writes the rows only; the caller makes the moves of the call, in the same transaction and under
the call's lock. Ids are made of what is asked, never of order or of a process's memory.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from django.db import connection

from ledger import pipelines, strictjson
from ledger.tables import table
from ledger.vocabulary import InterruptEnd, Phase

SNAPSHOT_VERSION = 1
SNAPSHOT_KEYS = (
    "answers",
    "attempt",
    "call",
    "cancel_message",
    "exception",
    "phase",
    "policy_version",
    "result",
    "taken_at",
    "tool_use",
    "version",
)
"""Every key of a snapshot but its hash; each is there, null where there is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """An interrupt to be written. `waits_for` is the call whose settlement answers a hold."""

    call_id: UUID
    workspace_id: UUID
    phase: Phase
    name: str
    reason: str
    snapshot: Mapping[str, Any]
    expires_s: float
    left_s: float
    generation: int = 1
    occurrence: int = 0
    waits_for: UUID | None = None
    answer: str = ""

    @property
    def id(self) -> str:
        return interrupt_id(
            self.phase, self.call_id, self.generation, self.name, occurrence=self.occurrence
        )


def interrupt_id(
    phase: Phase, call_id: UUID, generation: int, name: str, *, occurrence: int = 0
) -> str:
    """`v1:<phase>:<call id>:<generation>:<uuid5 of the name>:<occurrence>` (semantics, 12.2)."""
    return f"v1:{phase}:{call_id}:{generation}:{uuid5(NAMESPACE_OID, name)}:{occurrence}"


def snapshot_of(
    *,
    call_id: UUID,
    phase: Phase,
    policy_version: int,
    tool: str,
    arguments: Mapping[str, Any],
    tool_call_id: str,
    taken_at: datetime,
    attempt: int | None = None,
) -> dict[str, Any]:
    """What an answer is given to, version 1, without its hash (semantics, 12.4)."""
    return {
        "version": SNAPSHOT_VERSION,
        "call": str(call_id),
        "attempt": attempt,
        "policy_version": policy_version,
        "phase": str(phase),
        "tool_use": {"name": tool, "arguments": dict(arguments), "tool_call_id": tool_call_id},
        "result": None,
        "exception": None,
        "cancel_message": None,
        "answers": [],
        "taken_at": taken_at.isoformat(),
    }


COLUMNS = (
    ("id", "text"),
    ("workspace_id", "uuid"),
    ("call_id", "uuid"),
    ("phase", "text"),
    ("name", "text"),
    ("reason", "text"),
    ("waits_for_id", "uuid"),
    ("snapshot", "text"),
    ("snapshot_sha256", "text"),
    ("left_s", "double precision"),
    ("expires_s", "double precision"),
    ("answer", "text"),
)
INSERT = (
    "INSERT INTO ledger_interrupt (id, workspace_id, call_id, phase, name, round, reason, "
    "waits_for_id, snapshot, snapshot_sha256, left_s, asked_at, expires_at, ended_at, ended_as, "
    "answer, answered_by, answered_by_id, grounds) "
    "SELECT id, workspace_id, call_id, phase, name, 1, reason, waits_for_id, snapshot, "
    "snapshot_sha256, left_s, clock_timestamp(), "
    "clock_timestamp() + expires_s * interval '1 second', "
    "CASE WHEN answer <> '' THEN clock_timestamp() END, "
    "CASE WHEN answer <> '' THEN 'answered' ELSE '' END, answer, "
    "CASE WHEN answer <> '' THEN 'ledger' ELSE '' END, '', '' FROM {}"
)


def write(raised: Sequence[Raised]) -> None:
    """Write interrupts; one with an `answer` has been answered by the ledger at once."""
    text, parameters = table(COLUMNS, [_row(each) for each in raised])
    pipelines.write(INSERT.format(text), parameters)


def _row(raised: Raised) -> tuple[Any, ...]:
    written = strictjson.canonical(dict(raised.snapshot))
    return (
        raised.id,
        raised.workspace_id,
        raised.call_id,
        str(raised.phase),
        raised.name,
        raised.reason,
        raised.waits_for,
        written.decode(),
        hashlib.sha256(written).hexdigest(),
        raised.left_s,
        raised.expires_s,
        raised.answer,
    )


def end(
    call_ids: Sequence[UUID],
    *,
    ended_as: InterruptEnd,
    by: str,
    by_id: str = "",
    answer: str = "",
    grounds: str = "",
) -> None:
    """End every unanswered interrupt of these calls, whose locks the caller holds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_interrupt SET ended_at = clock_timestamp(), ended_as = %s, "
            "answer = %s, answered_by = %s, answered_by_id = %s, grounds = %s "
            "WHERE call_id = ANY(%s) AND ended_at IS NULL",
            [str(ended_as), answer, by, by_id, grounds, list(call_ids)],
        )
