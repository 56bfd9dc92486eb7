"""The list of calls: filters from the address, cursor pages, a count, and what excludes most.

No page scans all calls there ever were. Open ones and those of a session come by their own index;
every other filter looks through the next WINDOW calls after the cursor, or after the moment that
the filter names, and says so when there are more that were not looked at: the next page goes on
from there.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from dashboard import filters, label_filters
from dashboard.filters import Asked, Chosen, Column, Filter, Table
from dashboard.overview import EXACT_UP_TO, Figure
from dashboard.standing import Standing, of_many
from ledger import ids
from ledger.api.pages import NEWEST, ORDERS, cursor_of, looked_at, place_of
from ledger.filters import an_id
from ledger.models import ToolCall
from ledger.models.calls import ToolCallQuerySet
from ledger.permissions import Person
from recovery import call_filters

PAGE = 50

Calls = ToolCallQuerySet


CALLS = Table(
    filters=(
        *label_filters.OF_CALL,
        *label_filters.BETWEEN,
        label_filters.TAKEN,
        Filter("no_settled_result", "no settled result", "flag"),
        Filter("overdue", "overdue", "flag"),
        Filter("q", "Any name or id", is_first=True),
        label_filters.BULK,
        Filter("repeats", "Repeats prevented, days", "carried"),
    ),
    keeps=call_filters.CALLS,
    sorts=(("newest", "newest first"), ("oldest", "oldest first")),
    columns=(
        Column("tool", "Tool"), Column("agent", "Agent"), Column("class", "Class"),
        Column("state", "State"), Column("effect", "Effect"), Column("saw", "Shown to the model"),
        Column("basis", "Basis"), Column("session", "Session"), Column("policy", "Policy"),
        Column("cause", "Cause"), Column("attempts", "Attempts"), Column("age", "Age"),
        Column("due", "Due"),
    ),
    hidden=frozenset({"basis", "session", "policy", "cause"}),
)  # fmt: skip
"""What can be asked of the list of calls."""

READY = (
    ("all calls", ""),
    ("no settled result", "no_settled_result=1"),
    ("needs an answer", "state=ambiguous,paused"),
    ("overdue", "overdue=1"),
)
"""Lists that stand ready: what they are called, and what they ask."""


@dataclass(frozen=True, slots=True)
class Row:
    """A call and its labels."""

    call: ToolCall
    shown: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the list. `blames` is the filter that excludes most, with what it leaves out."""

    asked: Asked
    rows: list[Row] = field(default_factory=list)
    figure: Figure = field(default_factory=lambda: Figure(0))
    older: str = ""
    newest: str = ""
    is_first: bool = True
    looked_at_all: bool = True
    any_call: bool = True
    blames: tuple[Chosen, Figure] | None = None


def asked_of(address: Any) -> Asked:
    """What an address asks of the list of calls."""
    return filters.read(CALLS, address)


def of(person: Person, asked: Asked, *, cursor: str = "") -> Listing:
    """One page of the workspace's calls. Raises Invalid for a filter that says nothing known."""
    own = ToolCall.objects.filter(workspace=person.workspace_id)
    bound = {**asked.given, "sort": asked.sort}
    place, by = place_of(cursor, bound), ORDERS[asked.sort or NEWEST].by
    kept, edge = _kept(own, asked, place)
    # The page first and what belongs to it then: joined at once, the planner sorts whole rows.
    page = list(kept.order_by(by).values_list("id", flat=True)[: PAGE + 1])
    related = ToolCall.objects.filter(id__in=page).select_related("agent", "policy")
    found = list(related.order_by(by))
    standings = of_many(found[:PAGE])
    last = found[PAGE - 1].id if len(found) > PAGE else edge
    counted = kept.order_by()[: EXACT_UP_TO + 1].count()
    return Listing(
        asked=asked,
        rows=[Row(row, ids.shown("call", row.id), standings[row.id]) for row in found[:PAGE]],
        figure=Figure(counted, at_least=edge is not None),
        older=f"?{_joined(asked.query, cursor_of(last, bound))}" if last else "",
        newest=found[0].id.hex if found and place is None and not asked.sort else "",
        is_first=place is None,
        looked_at_all=edge is None,
        any_call=bool(found) or own.exists(),
        blames=_blame(own, asked) if not found and asked.given else None,
    )


def _joined(query: str, cursor: str) -> str:
    return f"{query}{'&' if query else ''}cursor={cursor}"


def _kept(own: Calls, asked: Asked, place: UUID | None) -> tuple["QuerySet[Any]", UUID | None]:
    """What the filters keep, and the last call that was looked at if more come after it."""
    rows = call_filters.among(own, asked.meant)
    among = None if call_filters.have_index(asked.meant) else rows
    return looked_at(asked.kept(rows), among, sort=asked.sort or NEWEST, place=place)


def _blame(own: Calls, asked: Asked) -> tuple[Chosen, Figure] | None:
    """The filter without which the list would be longest."""
    left = []
    for chosen in asked.chosen:
        kept, edge = _kept(own, asked.dropping(chosen.name), None)
        left.append((chosen, Figure(kept.order_by()[: EXACT_UP_TO + 1].count(), edge is not None)))
    most = max(left, key=lambda each: each[1].number)
    return most if most[1].number else None


def newer(person: Person, asked: Asked, since: str) -> int:
    """How many calls of these filters came after the newest that is shown, counted to a hundred."""
    own: Any = ToolCall.objects.filter(workspace=person.workspace_id, id__gt=an_id("call", since))
    kept, _ = _kept(own, asked, None)
    return kept.order_by()[:100].count()
