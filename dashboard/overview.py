"""The start page's figures and its list: what is open exactly, what is settled in a window.

Open calls are counted by the partial index over them. Settled ones only grow, so they are
counted among the newest WINDOW calls, and a figure that may be larger says so with a plus.
Nothing here decides: views are names for filters, as data.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Min, Q

from dashboard.labels import STATES, Label
from ledger.models.calls import ToolCallQuerySet
from ledger.vocabulary import SETTLED, CallState

WINDOW = 10_000
LATEST = 25
EXACT_UP_TO = 1_000
DAY = timedelta(hours=24)
SWEEPS = 10

Calls = ToolCallQuerySet


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of calls; `at_least` where more may lie outside the window."""

    number: int
    at_least: bool = False

    def __str__(self) -> str:
        """Exact up to a thousand: `23`, `412+`, `1 000+`."""
        if self.number > EXACT_UP_TO:
            return "1\N{NO-BREAK SPACE}000+"
        return f"{self.number}+" if self.at_least and self.number else str(self.number)


@dataclass(frozen=True, slots=True)
class View:
    """A named filter of the list: its address word, its title, and what it keeps."""

    name: str
    title: str
    keep: Callable[[Calls, datetime], Calls]


def late_before(now: datetime) -> datetime:
    """The instant before which a deadline that has not been acted on is overdue.

    A deadline that has just passed waits for the next sweep and is nobody's failure; after ten
    sweeps somebody is late. The self-check draws the line at the same place.
    """
    return now - timedelta(seconds=SWEEPS * settings.ENVIRONMENT.sweep_s)


def _in_state(state: CallState) -> Callable[[Calls, datetime], Calls]:
    if state in SETTLED:
        return lambda calls, now: _newest(calls).filter(state=state)
    return lambda calls, now: calls.open().filter(state=state)


def _newest(calls: Calls) -> Calls:
    """The calls of the window."""
    return calls.filter(id__in=calls.order_by("-id").values("id")[:WINDOW])


NOT_WELL = (CallState.FAILED, CallState.EXPIRED)
NEEDS_ANSWER = Q(state__in=[CallState.AMBIGUOUS, CallState.PAUSED])
VIEWS: dict[str, View] = {
    view.name: view
    for view in (
        View("needs_answer", "needs an answer", lambda calls, now: calls.filter(NEEDS_ANSWER)),
        View("overdue", "overdue",
             lambda calls, now: calls.open().filter(due_at__lt=late_before(now))),
        View("no_settled_result", "no settled result",
             lambda calls, now: calls.open().no_settled_result()),
        View("settled_today", "settled in the last 24 h",
             lambda calls, now: _newest(calls).filter(settled_at__gte=now - DAY)),
        *(View(state, label.text, _in_state(CallState(state))) for state, label in STATES.items()),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Listed:
    """The latest calls, of one view or of all. `view` is what was asked for, as it was asked."""

    calls: list[Any]
    view: str = ""
    title: str = ""


def latest(calls: Calls, view: str, now: datetime) -> Listed:
    """The newest calls of a view, newest first; an unknown view keeps nothing."""
    found = VIEWS.get(view)
    if view and found is None:
        return Listed([], view, view)
    kept = found.keep(calls, now) if found else calls
    rows = kept.select_related("agent").order_by("-id")[:LATEST]
    return Listed(list(rows), view, found.title if found else "")


@dataclass(frozen=True, slots=True)
class Counter:
    """One tile: what it counts, how many, the view that lists exactly these, and a line more."""

    title: str
    view: str
    figure: Figure
    note: str = ""
    since: datetime | None = None
    family: str = ""


@dataclass(frozen=True, slots=True)
class StateRow:
    """One row of the states table."""

    label: Label
    figure: Figure


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything the start page counts."""

    counters: list[Counter] = field(default_factory=list)
    states: list[StateRow] = field(default_factory=list)
    is_window_full: bool = False


def of(calls: Calls, now: datetime) -> Overview:
    """Count these calls as they stand at `now`."""
    facts = _open_facts(calls, now)
    states = _by_state(calls.open())
    today = Q(settled_at__gte=now - DAY)
    newest = _newest(calls).aggregate(
        all=Count("id"),
        today=Count("id", filter=today),
        not_well=Count("id", filter=today & Q(state__in=NOT_WELL)),
        **{state: Count("id", filter=Q(state=state)) for state in SETTLED},
    )
    full = newest["all"] >= WINDOW
    figures = {state: Figure(states.get(state, 0)) for state in STATES} | {
        state: Figure(newest[state], full) for state in SETTLED
    }
    return Overview(
        counters=_counters(facts | newest, is_window_full=full),
        states=[StateRow(label, figures[state]) for state, label in STATES.items()],
        is_window_full=full,
    )


def _by_state(calls: Calls) -> dict[str, int]:
    return dict(calls.values_list("state").annotate(Count("id")))


def _open_facts(calls: Calls, now: datetime) -> dict[str, Any]:
    running, overdue = Q(state=CallState.RUNNING), Q(due_at__lt=late_before(now))
    facts: dict[str, Any] = calls.open().aggregate(
        needs_answer=Count("id", filter=NEEDS_ANSWER),
        oldest=Min("recorded_at", filter=NEEDS_ANSWER),
        overdue=Count("id", filter=overdue),
        longest=Min("due_at", filter=overdue),
        running=Count("id", filter=running),
        silent=Count("id", filter=running & Q(heartbeat_at__lt=late_before(now))),
    )
    return facts | {
        "no_settled_result": calls.open().no_settled_result().count(),
        "finding_out": calls.open().filter(state=CallState.INTERRUPTED).count(),
    }


def _counters(facts: dict[str, Any], *, is_window_full: bool) -> list[Counter]:
    """The five tiles, in the order in which an operator asks."""
    silent, finding_out, not_well = facts["silent"], facts["finding_out"], facts["not_well"]
    return [
        Counter("Needs an answer", "needs_answer", Figure(facts["needs_answer"]),
                "nobody is waited for", facts["oldest"], "person"),
        Counter("Overdue", "overdue", Figure(facts["overdue"]),
                "every deadline lies ahead", facts["longest"], "failed"),
        Counter("Running", "running", Figure(facts["running"]),
                f"{silent} without heartbeat" if silent else "every lease is good",
                family="machine"),
        Counter("No settled result", "no_settled_result", Figure(facts["no_settled_result"]),
                f"recovery is finding out about {finding_out}" if finding_out
                else "recovery has nothing to find out", family="machine"),
        Counter("Settled in 24 h", "settled_today", Figure(facts["today"], is_window_full),
                f"{not_well} of them failed or expired" if not_well
                else "none failed or expired", family="well"),
    ]  # fmt: skip
