"""The list of calls: filters from the address, cursor pages, a count, and what excludes most.

No page scans all calls there ever were. Open ones and those of a session come by their own index;
every other filter looks through the next WINDOW calls after the cursor, or after the moment that
the filter names, and says so when there are more that were not looked at: the next page goes on
from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from dashboard import filters, label_filters
from dashboard.filters import Asked, Chosen, Column, Filter, Table
from dashboard.label_filters import NOBODY, an_id
from dashboard.overview import EXACT_UP_TO, Figure, late_before
from dashboard.standing import Standing, of_many
from ledger import clock, ids
from ledger.api.pages import cursor_of, edge_of, place_of
from ledger.errors import NotFound
from ledger.models import ToolCall
from ledger.models.calls import NO_OUTCOME, ToolCallQuerySet
from ledger.permissions import Person
from ledger.vocabulary import SETTLED
from recovery.models import BulkRow

PAGE = 50
DAYS_MAX = 366
SKEW = timedelta(minutes=5)
"""By how much the clock of whoever made an id may differ from the database's."""

Calls = ToolCallQuerySet


def _bulk(text: str) -> Q:
    return Q(id__in=BulkRow.objects.filter(run=an_id("bulk_run", text)).values("call"))


def _repeats(text: str) -> Q:
    """Calls of the last so many days that were answered from an earlier one."""
    since = clock.now() - timedelta(days=filters.number("repeats", text, DAYS_MAX))
    return Q(twin_of__isnull=False, recorded_at__gte=since)


def _overdue(text: str) -> Q:
    return Q(settled_at__isnull=True, due_at__lt=late_before(clock.now()))


def _unsettled(text: str) -> Q:
    return Q(settled_at__isnull=True) & NO_OUTCOME


def _named(text: str) -> Q:
    """By any name that somebody may have of a call."""
    wanted = Q(tool_call_id=text) | Q(idempotency_key=text) | Q(tool__icontains=text)
    try:
        return wanted | Q(id=ids.read("call", text))
    except NotFound:
        return wanted


CALLS = Table(
    filters=(
        *label_filters.of_call(""),
        *label_filters.between("recorded_at"),
        label_filters.taken("incident__call"),
        Filter("no_settled_result", "no settled result", _unsettled, "flag"),
        Filter("overdue", "overdue", _overdue, "flag"),
        Filter("q", "Any name or id", _named, is_first=True),
        Filter("bulk", "Bulk run", _bulk, "carried"),
        Filter("repeats", "Repeats prevented, days", _repeats, "carried"),
    ),
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

OPEN_ONLY = ("no_settled_result", "overdue")
INDEXED = ("session", "bulk", "repeats")


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
    place = place_of(cursor, bound) if cursor else None
    kept, edge = _kept(own, asked, place)
    # The page first and what belongs to it then: joined at once, the planner sorts whole rows.
    page = list(kept.order_by(_order(asked)).values_list("id", flat=True)[: PAGE + 1])
    related = ToolCall.objects.filter(id__in=page).select_related("agent", "policy")
    found = list(related.order_by(_order(asked)))
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


def _order(asked: Asked) -> str:
    return "id" if asked.sort == "oldest" else "-id"


def _joined(query: str, cursor: str) -> str:
    return f"{query}{'&' if query else ''}cursor={cursor}"


def _kept(own: Calls, asked: Asked, place: UUID | None) -> tuple[Calls, UUID | None]:
    """What the filters keep, and the last call that was looked at if more come after it."""
    forward = asked.sort == "oldest"
    rows = _dated(own, asked.given)
    if place:
        rows = rows.filter(id__gt=place) if forward else rows.filter(id__lt=place)
    edge = None
    if _has_no_index(asked.given):
        edge = edge_of(rows.order_by(_order(asked)))
        if edge:
            rows = rows.filter(id__lte=edge) if forward else rows.filter(id__gte=edge)
    elif _is_open_only(asked.given):
        rows = rows.open()
    for condition in asked.keeps():
        rows = rows.filter(condition)
    return rows, edge


def _dated(own: Calls, given: Mapping[str, str]) -> Calls:
    """The stretch of ids, which are ordered by time, that a filter by moments can lie in."""
    if "from" in given:
        own = own.filter(id__gte=_id_at(label_filters.moment("from", given["from"]) - SKEW))
    if "until" in given:
        own = own.filter(id__lt=_id_at(label_filters.moment("until", given["until"]) + SKEW))
    return own


def _id_at(moment: datetime) -> UUID:
    """The lowest UUIDv7 of a moment (RFC 9562, 5.7)."""
    return UUID(int=max(0, int(moment.timestamp() * 1000)) << 80)


def _is_open_only(given: Mapping[str, str]) -> bool:
    states = set(given.get("state", "").split(",")) - {""}
    is_open = bool(states) and not states & {str(each) for each in SETTLED}
    return is_open or any(flag in given for flag in OPEN_ONLY)


def _has_no_index(given: Mapping[str, str]) -> bool:
    few = given.get("taken", NOBODY) != NOBODY
    return bool(given) and not (few or set(INDEXED) & set(given) or _is_open_only(given))


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
