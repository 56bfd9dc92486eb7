"""How long an incident waits for a first decision, and how long until it is closed."""

from datetime import datetime, timedelta
from uuid import UUID

from dashboard import reading
from dashboard.charts.chart import Cell, Drawn, bars
from dashboard.templatetags.times import span

DAYS = 7
SQL = """
SELECT c.recovery_class, count(*)::int, count(first.at)::int,
       percentile_cont(ARRAY[0.5, 0.9]) WITHIN GROUP (
         ORDER BY extract(epoch FROM first.at - i.opened_at)::float8),
       percentile_cont(ARRAY[0.5, 0.9]) WITHIN GROUP (
         ORDER BY extract(epoch FROM i.closed_at - i.opened_at)::float8)
  FROM recovery_incident i JOIN ledger_toolcall c ON c.id = i.call_id
  LEFT JOIN LATERAL (SELECT min(r.at) AS at FROM recovery_resolution r
                      WHERE r.incident_id = i.id) first ON true
 WHERE i.workspace_id = %(workspace)s AND i.kind = 'recovery' AND i.closed_at >= %(since)s
 GROUP BY 1 ORDER BY 1
"""


def times(workspace_id: UUID, now: datetime) -> Drawn:
    """The median and the 90th percentile by recovery class, of what was closed in seven days."""
    asked = {"workspace": workspace_id, "since": now - timedelta(days=DAYS)}
    found = reading.rows(SQL, asked)
    if not found:
        return Drawn("No incident was closed in the last 7 days.")
    closed, by_person = sum(row[1] for row in found), sum(row[2] for row in found)
    return Drawn(
        f"{closed} closed in 7 days, {by_person} of them after a person's decision.",
        ("Class", "Closed", "Decided, median", "Decided, 90 %", "Closed, median", "Closed, 90 %"),
        [
            [Cell(name), Cell(str(number)), *map(_length, [*(taken or (None, None)), *resolved])]
            for name, number, _, taken, resolved in found
        ],
        bars(
            [(name, resolved[1], f"{_text(resolved[0])} / {_text(resolved[1])}")
             for name, _, _, _, resolved in found],
            parts=[resolved[0] for *_, resolved in found],
        ),
        "Until closed. Solid: the median; faint: the 90th percentile.",
    )  # fmt: skip


def _text(seconds: float) -> str:
    return span(timedelta(seconds=seconds)).split(" 0", 1)[0] if seconds >= 1 else "< 1 s"


def _length(seconds: float | None) -> Cell:
    return Cell("–" if seconds is None else _text(seconds))
