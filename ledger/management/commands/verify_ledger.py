"""`manage.py verify_ledger`: asks the ledger for every invariant and says what it found.

Exit code 0 is proof for the rows examined, 1 means that an invariant is broken; the first
violation is named with its call. Reads only, in a read-only transaction.
"""

import json
import time
from argparse import ArgumentParser
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction

from ledger import ids
from ledger.verification import INVARIANTS, NOT_YET, Extent, Violation, extent, verify

ALL_WELL = "Every invariant holds. Nothing is to be done."
WHAT_NOW = (
    "Change no row by hand: the events are the proof of what happened. Read the timeline of this "
    "call, keep this output, and stop the workers if the number of violations grows."
)
WHAT_NOW_SCHEMA = (
    "A guard of the database itself is missing or differs from this version. Stop the workers, "
    "run `manage.py migrate`, and verify again before you start them."
)


@dataclass(frozen=True, slots=True)
class Report:
    """What one run examined and found; the time in seconds."""

    extent: Extent
    violations: list[Violation]
    seconds: float


class Command(BaseCommand):
    """Prove the ledger's invariants, or name the first that is broken."""

    help = "Checks every invariant of the ledger; exit code 1 names the first that is broken."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--since",
            type=_instant,
            help="only calls that are open or had an event since this ISO 8601 instant (UTC)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        report = _examine(options["since"])
        self.stdout.write(_as_json(report) if options["json"] else _as_text(report))
        if report.violations:
            raise SystemExit(1)


def _instant(text: str) -> datetime:
    try:
        given = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(
            f"--since {text!r} is no instant: write it as 2026-01-31T14:00:00Z."
        ) from error
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def _examine(since: datetime | None) -> Report:
    began = time.monotonic()
    with transaction.atomic(), connection.cursor() as cursor:
        # Compiling so many branches would cost more than it gains; a big ledger may take its time.
        cursor.execute(
            "SELECT set_config('jit', 'off', true), set_config('statement_timeout', '0', true), "
            "set_config('work_mem', '64MB', true), set_config('transaction_read_only', 'on', true)"
        )
        examined, violations = extent(since=since), verify(since=since)
    return Report(examined, violations, time.monotonic() - began)


def _as_text(report: Report) -> str:
    numbers = list(dict.fromkeys(each.number for each in report.violations))
    lines = [
        f"Checked {len(INVARIANTS)} invariants over {report.extent.calls} calls and "
        f"{report.extent.events} events in {report.seconds:.2f} s."
    ]
    if not report.violations:
        return "\n".join([*lines, ALL_WELL])
    first = report.violations[0]
    lines += [
        f"{len(report.violations)} violations of {', '.join(numbers)}. The first:",
        f"{first.number} is broken in {_place(first)}: {first.sentence}",
        json.dumps(first.row),
        WHAT_NOW if first.call_id else WHAT_NOW_SCHEMA,
    ]
    return "\n".join(lines)


def _place(violation: Violation) -> str:
    return ids.shown("call", violation.call_id) if violation.call_id else "the schema"


def _as_json(report: Report) -> str:
    return json.dumps(
        {
            "invariants": [each.number for each in INVARIANTS],
            "not_yet": NOT_YET,
            "calls": report.extent.calls,
            "events": report.extent.events,
            "seconds": round(report.seconds, 3),
            "violations": [
                {
                    "number": each.number,
                    "sentence": each.sentence,
                    "call": ids.shown("call", each.call_id) if each.call_id else None,
                    "row": each.row,
                }
                for each in report.violations
            ],
        }
    )
