"""The six figures at the top of the overview; each leads to the list of exactly what it counts.

Open calls are counted by the partial index over them, and never beyond a thousand.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from dashboard import budgets, leads, reading, workers
from dashboard.overview import EXACT_UP_TO, Figure
from ledger.vocabulary import ASKS_PERSON
from recovery.health import late_before

COUNTED = EXACT_UP_TO + 1
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Counter:
    """One figure: how many, the address of their list, and one line more.

    `since` is the instant of the oldest, shown as an age after `word`.
    """

    figure: Figure
    address: str
    note: str = ""
    word: str = ""
    since: datetime | None = None
    family: str = ""


# Served by `incident_open` and by the open holds. A recovery incident asks nobody before the
# machine is at its end; the other kinds do so from the moment they are opened.
NEEDS_ANSWER = f"""
SELECT count(*)::int, min(since) FROM (
  SELECT opened_at AS since FROM recovery_incident
   WHERE workspace_id = %(workspace)s AND closed_at IS NULL
     AND (state = 'exhausted' OR kind <> 'recovery')
  UNION ALL
  SELECT asked_at FROM ledger_interrupt
   WHERE workspace_id = %(workspace)s AND ended_at IS NULL AND reason = ANY(%(asks)s)
  LIMIT {COUNTED}) waiting
"""  # noqa: S608 constants of ours
OPEN_CALLS = f"""
SELECT count(*)::int, min(due_at),
       count(*) FILTER (WHERE recovery_class = 'side_effect')::int FROM (
  SELECT due_at, recovery_class FROM ledger_toolcall
   WHERE settled_at IS NULL AND workspace_id = %(workspace)s AND due_at < %(late)s
   ORDER BY due_at LIMIT {COUNTED}) overdue
"""  # noqa: S608 constants of ours
RUNNING = f"""
SELECT count(*)::int, count(*) FILTER (WHERE heartbeat_at < %(late)s)::int FROM (
  SELECT heartbeat_at FROM ledger_toolcall
   WHERE settled_at IS NULL AND workspace_id = %(workspace)s AND state = 'running'
   LIMIT {COUNTED}) running
"""  # noqa: S608 constants of ours
# Served by `call_twins`: a twin never ran, and the call that it repeats did or may have.
REPEATS = f"""
SELECT count(*)::int, coalesce(sum(prompt_tokens), 0)::bigint FROM (
  SELECT prompt_tokens FROM ledger_toolcall
   WHERE workspace_id = %(workspace)s AND twin_of_id IS NOT NULL AND recorded_at >= %(since)s
   LIMIT {COUNTED}) twins
"""  # noqa: S608 constants of ours


def waiting(workspace_id: UUID) -> int:
    """How many need an answer, up to a thousand and one; one statement, for every page's rail."""
    with connection.cursor() as cursor:
        cursor.execute(NEEDS_ANSWER, _asks(workspace_id))
        number: int = cursor.fetchone()[0]
    return number


def _asks(workspace_id: UUID) -> dict[str, Any]:
    return {"workspace": workspace_id, "asks": sorted(map(str, ASKS_PERSON))}


def needs_answer(workspace_id: UUID, now: datetime) -> Counter:
    """What waits for a person: open incidents whose turn is a person's, and such holds."""
    number, oldest = reading.rows(NEEDS_ANSWER, _asks(workspace_id))[0]
    return Counter(
        Figure(number), leads.to("inbox"), "nobody is waited for", "oldest", oldest, "person"
    )


def overdue(workspace_id: UUID, now: datetime) -> Counter:
    """Open calls whose deadline passed and that no sweep has acted on."""
    asked = {"workspace": workspace_id, "late": late_before(now)}
    number, longest, side_effects = reading.rows(OPEN_CALLS, asked)[0]
    return Counter(
        Figure(number),
        leads.to("calls", overdue=1),
        f"side_effect {side_effects}" if number else "every deadline lies ahead",
        "longest" if number else "",
        longest,
        "failed",
    )


def running(workspace_id: UUID, now: datetime) -> Counter:
    """Calls that a worker holds, and how many of those have been silent."""
    asked = {"workspace": workspace_id, "late": late_before(now)}
    number, silent = reading.rows(RUNNING, asked)[0]
    if not number:
        note = "nothing is running"
    else:
        note = f"{silent} without heartbeat" if silent else "every lease is good"
    return Counter(Figure(number), leads.to("calls", state="running"), note, family="machine")


def budget_spent(workspace_id: UUID, now: datetime) -> Counter:
    """Turns, sessions and tools that may not repeat anything any more."""
    spent = [each.scope for each in budgets.fullest(workspace_id, now) if each.share >= 1]
    counted = {str(scope): spent.count(scope) for scope in spent}
    note = ", ".join(f"{number} {scope}{'s' * (number > 1)}" for scope, number in counted.items())
    return Counter(
        Figure(len(spent)), leads.to("budgets"), note or "every budget has room",
        family="failed",
    )  # fmt: skip


def repeats_prevented(workspace_id: UUID, now: datetime) -> Counter:
    """Calls of the last seven days that were answered from an earlier call and never ran."""
    asked = {"workspace": workspace_id, "since": now - WEEK}
    number, tokens = reading.rows(REPEATS, asked)[0]
    note = f"7 d, {tokens} prompt tokens" if tokens else "in the last 7 d"
    return Counter(Figure(number), leads.to("calls", repeats=WEEK.days), note, family="well")


def at_work(workspace_id: UUID, now: datetime) -> Counter:
    """The workers that live, of the whole installation, and what no one of them serves."""
    found = workers.alive()
    missing = f"nobody serves {', '.join(found.missing)}" if found.missing else ""
    note = missing or f"{found.held} of {found.slots} slots in use"
    family = "failed" if missing else "machine"
    return Counter(Figure(found.workers), leads.to("workers"), note, family=family)


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure of the overview: its name in addresses, its title, and how it is read."""

    name: str
    title: str
    read: Callable[[UUID, datetime], Counter]

    def facts(self, workspace_id: UUID, now: datetime) -> dict[str, Any]:
        """What its fragment shows; `counter` is None where it could not be read."""
        return {"tile": self, "counter": reading.or_none(lambda: self.read(workspace_id, now))}


TILES = (
    Tile("needs-answer", "Needs an answer", needs_answer),
    Tile("overdue", "Overdue", overdue),
    Tile("running", "Running", running),
    Tile("budget-spent", "Budget spent", budget_spent),
    Tile("repeats-prevented", "Repeats prevented", repeats_prevented),
    Tile("workers", "Workers alive", at_work),
)
