"""Runs the invariants against the ledger, all in one statement and so at one instant.

Reads only. A check that returns rows returns at most `SHOWN` of them: the first shows what is
wrong, and a ledger with a broken invariant is not made usable by the full list.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from ledger.verification import terms
from ledger.verification.invariants import INVARIANTS, known

SHOWN = 100
SLACK_S = 5.0
"""How late a sweep may be beyond two periods, in seconds, before a call counts as overdue."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An offending row: number and sentence of the invariant, the call if any, the facts."""

    number: str
    sentence: str
    call_id: UUID | None
    row: dict[str, Any]

    def __str__(self) -> str:
        where = f"call {self.call_id}" if self.call_id else "the schema"
        return f"{self.number} is broken in {where}: {self.sentence} {json.dumps(self.row)}"


def verify(
    *,
    since: datetime | None = None,
    liveness: bool = True,
    sweep_s: float | None = None,
    slack_s: float = SLACK_S,
) -> list[Violation]:
    """Check every invariant and return what breaks one, in the order of the numbers; [] is proof.

    `since` narrows it to calls that are open or had an event since that instant. `liveness=False`
    leaves out what holds only while sweeps run. `sweep_s` is the watchdog's period, in seconds;
    a call is overdue two of them and `slack_s` after its deadline.
    Source: reliability, section 3.
    """
    environment = settings.ENVIRONMENT
    parameters = {
        "since": since,
        "sweep_s": environment.sweep_s if sweep_s is None else sweep_s,
        "slack_s": slack_s,
        "grace_s": environment.grace_s,
    }
    invariants = known()
    with connection.cursor() as cursor:
        cursor.execute(_statement(since is not None, liveness), parameters)
        return [
            _violation(number, invariants[number].sentence, row)
            for number, row in cursor.fetchall()
        ]


def _violation(number: str, sentence: str, row: Any) -> Violation:
    facts = json.loads(row) if isinstance(row, str) else row
    call_id = facts.pop("call_id")
    return Violation(number, sentence, UUID(call_id) if call_id else None, facts)


@lru_cache(maxsize=4)
def _statement(narrowed: bool, liveness: bool) -> str:
    branches = "\nUNION ALL\n".join(_branches(liveness))
    return f"{terms.defined(narrowed)}\n{branches}"


def _branches(liveness: bool) -> Iterator[str]:
    """One SELECT a check. The aggregate makes PostgreSQL plan for all rows, not for the first."""
    for invariant in INVARIANTS:
        for check in invariant.checks:
            if liveness or not check.liveness:
                yield (
                    f"SELECT '{invariant.number}', unnest((array_agg(to_jsonb(q)))[1:{SHOWN}]) "  # noqa: S608 constants of this package
                    f"FROM ({check.sql}) q"
                )


@dataclass(frozen=True, slots=True)
class Extent:
    """Over how many calls and events a verification went."""

    calls: int
    events: int


def extent(*, since: datetime | None = None) -> Extent:
    """Count what `verify` with the same `since` examines."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{terms.defined(since is not None)} SELECT (SELECT count(*) FROM call), "  # noqa: S608 constants of this package
            "(SELECT count(*) FROM event)",
            {"since": since, "sweep_s": 0, "slack_s": 0, "grace_s": 0},
        )
        return Extent(*cursor.fetchone())
