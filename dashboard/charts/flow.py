"""How many incidents were opened and closed in each of the last 24 hours, and how many stayed."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from dashboard import reading
from dashboard.charts.chart import Cell, Drawn, columns

HOURS = 24
SQL = """
SELECT hour, sum(opened)::int, sum(closed)::int FROM (
  SELECT date_trunc('hour', opened_at, 'UTC') AS hour, 1 AS opened, 0 AS closed
    FROM recovery_incident WHERE workspace_id = %(workspace)s AND opened_at >= %(since)s
  UNION ALL
  SELECT date_trunc('hour', closed_at, 'UTC'), 0, 1
    FROM recovery_incident WHERE workspace_id = %(workspace)s AND closed_at >= %(since)s
) moved GROUP BY hour
UNION ALL SELECT NULL, count(*)::int, 0 FROM recovery_incident
 WHERE workspace_id = %(workspace)s AND closed_at IS NULL
"""


def flow(workspace_id: UUID, now: datetime) -> Drawn:
    """The last 24 hours, hour by hour; the backlog is what was open at the end of each."""
    last = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    hours = [last - timedelta(hours=back) for back in reversed(range(HOURS))]
    found = reading.rows(SQL, {"workspace": workspace_id, "since": hours[0]})
    moved = {hour: (opened, closed) for hour, opened, closed in found if hour is not None}
    open_now = next(row[1] for row in found if row[0] is None)
    if not moved and not open_now:
        return Drawn("No incident was open in the last 24 hours.")
    opened = [moved.get(hour, (0, 0))[0] for hour in hours]
    closed = [moved.get(hour, (0, 0))[1] for hour in hours]
    backlog = _backlog(opened, closed, open_now)
    return Drawn(
        f"{sum(opened)} opened and {sum(closed)} closed in 24 hours; {open_now} open now.",
        ("Hour (UTC)", "Opened", "Closed", "Open at its end"),
        [
            [Cell(f"{hour:%d %b %H}:00"), *(Cell(str(n)) for n in figures)]
            for hour, *figures in zip(hours, opened, closed, backlog, strict=True)
        ],
        columns(
            [("opened", "opened", opened), ("closed", "closed", closed)],
            first=f"{hours[0]:%H}:00 UTC",
            last=f"{hours[-1]:%H}:00",
            line=backlog,
            line_word="open",
        ),
    )


def _backlog(opened: list[int], closed: list[int], open_now: int) -> list[int]:
    """From what is open now back through what came and went."""
    backlog = [open_now]
    for came, went in zip(reversed(opened[1:]), reversed(closed[1:]), strict=True):
        backlog.append(backlog[-1] - came + went)
    return backlog[::-1]
