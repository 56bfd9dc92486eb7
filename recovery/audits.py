"""The audit of budgets: one row for each tool and day, read day by day, so that any range fits.

A part of the audit is a statement over one UTC day of one workspace that gives each tool its
figures; adding a figure is adding a part. The tool is empty where a grant is of no single tool.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from recovery.standings import GIVEN_BACK, REPEATING_S, RUN

DAYS_MAX = 366


@dataclass(frozen=True, slots=True)
class Part:
    """Figures by tool: the names of the columns after the tool, and the statement."""

    columns: tuple[str, ...]
    sql: str


_DAY = "{0}.{1} >= %(begin)s AND {0}.{1} < %(end)s"


def _counted(table: str, name: str, word: str, joined: str = "") -> str:
    """A statement that counts rows of a day by tool, in all and by one word, as JSON."""
    return (
        f"SELECT tool, sum(n)::int, jsonb_object_agg(word, n) FROM (SELECT {name} AS tool, "  # noqa: S608 constants of this module
        f"{word} AS word, count(*) AS n FROM {table} x {joined} WHERE x.workspace_id = "
        f"%(workspace)s AND {_DAY.format('x', 'at')} GROUP BY 1, 2) counted GROUP BY tool"
    )


PARTS: tuple[Part, ...] = (
    Part(
        ("attempts",),
        "SELECT c.tool, count(*) FROM ledger_attempt a "  # noqa: S608 constants of this module
        "JOIN ledger_toolcall c ON c.id = a.call_id WHERE c.workspace_id = %(workspace)s "
        f"AND a.kind = 'run' AND a.outcome <> 'released' AND {_DAY.format('a', 'claimed_at')} "
        "GROUP BY c.tool",
    ),
    Part(
        ("repeats", "repeats_by_rule"),
        _counted("recovery_repeat", "x.tool", "x.rule"),
    ),
    Part(
        ("given_back", "waiting_s", "repeating_s"),
        f"SELECT r.tool, count(*) FILTER (WHERE {GIVEN_BACK}), sum(r.wait_s)::float8, "  # noqa: S608 constants of this module
        f"sum({REPEATING_S})::float8 FROM recovery_repeat r JOIN ledger_toolcall c "
        f"ON c.id = r.call_id {RUN} WHERE r.workspace_id = %(workspace)s "
        f"AND {_DAY.format('r', 'at')} GROUP BY r.tool",
    ),
    Part(
        ("refused", "refused_by_scope"),
        _counted("recovery_refusal", "x.tool", "x.scope"),
    ),
    Part(
        ("repeats_prevented", "tokens_saved"),
        "SELECT c.tool, count(*), coalesce(sum(c.prompt_tokens), 0)::bigint "  # noqa: S608 constants of this module
        "FROM ledger_toolcall c WHERE c.workspace_id = %(workspace)s "
        f"AND c.twin_of_id IS NOT NULL AND {_DAY.format('c', 'recorded_at')} GROUP BY c.tool",
    ),
    Part(
        ("grants", "grants_by_person"),
        _counted(
            "recovery_grant", "coalesce(c.tool, x.tool)", "x.person_name",
            "LEFT JOIN ledger_toolcall c ON c.id = x.call_id",
        ),
    ),
    Part(
        ("granted_attempts",),
        "SELECT coalesce(c.tool, x.tool), sum(x.attempts)::int FROM recovery_grant x "  # noqa: S608 constants of this module
        "LEFT JOIN ledger_toolcall c ON c.id = x.call_id WHERE x.workspace_id = %(workspace)s "
        f"AND {_DAY.format('x', 'at')} GROUP BY 1",
    ),
)  # fmt: skip

COUNTED_BY_WORD = ("repeats_by_rule", "refused_by_scope", "grants_by_person")
COLUMNS = ("day", "tool", *(name for part in PARTS for name in part.columns))


def rows(
    *, workspace_id: UUID, first: date, last: date, tool: str = "", after: str = ""
) -> Iterator[dict[str, Any]]:
    """The rows of the days from `first` to `last`, both included, by day and tool.

    `after` leaves out the tools up to this name on the first day: where a page ended.
    """
    day = first
    while day <= last:
        for row in day_of(workspace_id=workspace_id, day=day, tool=tool):
            if day != first or not after or row["tool"] > after:
                yield row
        day += timedelta(days=1)


def day_of(*, workspace_id: UUID, day: date, tool: str = "") -> list[dict[str, Any]]:
    """One day: a row for each tool that any part names, all columns there, by name of the tool."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    day_in: dict[str, Any] = {
        "workspace": workspace_id,
        "begin": begin,
        "end": begin + timedelta(days=1),
    }
    found: dict[str, dict[str, Any]] = {}
    for part in PARTS:
        with connection.cursor() as cursor:
            cursor.execute(part.sql, day_in)
            for name, *figures in cursor.fetchall():
                row = found.setdefault(name, _empty(day, name))
                row |= {
                    column: json.loads(figure) if column in COUNTED_BY_WORD else figure
                    for column, figure in zip(part.columns, figures, strict=True)
                }
    return [found[name] for name in sorted(found) if tool in ("", name)]


def _empty(day: date, tool: str) -> dict[str, Any]:
    figures: dict[str, Any] = {name: {} if name in COUNTED_BY_WORD else 0 for name in COLUMNS[2:]}
    return {"day": day.isoformat(), "tool": tool, **figures}


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def cell(value: Any) -> str:
    """A value as a cell of a CSV file; a text that a spreadsheet would calculate is quoted."""
    if isinstance(value, dict):
        value = "; ".join(f"{word}: {number}" for word, number in sorted(value.items()))
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA) else text
