"""Calls that were answered from an earlier one, day by day: what a blind retry would have run."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from dashboard import leads, reading
from dashboard.charts.chart import Cell, Drawn, columns

DAYS = 7
# Served by `call_twins`.
SQL = """
SELECT date_trunc('day', t.recorded_at, 'UTC'), count(*)::int,
       count(*) FILTER (WHERE c.effect = 'happened')::int,
       coalesce(sum(t.prompt_tokens), 0)::bigint
  FROM ledger_toolcall t JOIN ledger_toolcall c ON c.id = t.twin_of_id
 WHERE t.workspace_id = %(workspace)s AND t.twin_of_id IS NOT NULL AND t.recorded_at >= %(since)s
 GROUP BY 1
"""


def repeats(workspace_id: UUID, now: datetime) -> Drawn:
    """The twins of the last seven days, and how many of them repeat an effect that happened."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    found = {day: figures for day, *figures in
             reading.rows(SQL, {"workspace": workspace_id, "since": days[0]})}  # fmt: skip
    if not found:
        return Drawn("No call repeated an earlier one in the last 7 days.")
    table = [found.get(day, [0, 0, 0]) for day in days]
    lists = [_list(day) for day in days]
    total, happened = sum(row[0] for row in table), sum(row[1] for row in table)
    return Drawn(
        f"Repeats answered in 7 days without running the tool again: {total}; for {happened} "
        "of them the effect had happened.",
        ("Day (UTC)", "Answered", "Effect had happened", "Prompt tokens"),
        [[Cell(f"{day:%d %b}"), Cell(str(row[0]), row[0] and address or ""),
          *(Cell(str(n)) for n in row[1:])]
         for day, row, address in zip(days, table, lists, strict=True)],
        columns(
            [("all", "answered", [row[0] for row in table]),
             ("happened", "effect had happened", [row[1] for row in table])],
            first=f"{days[0]:%d %b}",
            last=f"{days[-1]:%d %b}",
            links=[(f"{day:%d %b}: {row[0]} answered", address)
                   for day, row, address in zip(days, table, lists, strict=True)],
        ),
    )  # fmt: skip


def _list(day: datetime) -> str:
    """The calls that were answered on a day. What happened is of others: no filter asks for it."""
    until = leads.moment(day + timedelta(days=1))
    return leads.to("calls", repeats=DAYS, **{"from": leads.moment(day), "until": until})
