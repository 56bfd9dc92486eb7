"""The inbox: open incidents that ask a person, and holds that only a person ends.

Ordered against the deadline, the longest overdue first, or as the address asks. What is open is
bounded by what people leave lying, so it is read through the partial indexes over open rows, up to
READ_MAX, and ordered here. A row that was drawn keeps its place: a live part asks for the same
rows again by their ids, and what came since is only counted. The pages of a list share the moment
at which the first was drawn, and each begins behind the place where the one before ended.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, F, When
from django.db.models.functions import Coalesce
from django.urls import reverse

from dashboard import filters, label_filters, standing
from dashboard.filters import Asked, Chosen, Column, Filter, Table
from dashboard.incidents import KINDS, late
from dashboard.overview import EXACT_UP_TO, Figure
from ledger import clock, cursors, ids
from ledger.errors import Invalid
from ledger.filters import narrowed
from ledger.holds import NAME as HOLD
from ledger.models import Interrupt, ToolCall
from ledger.permissions import Person
from ledger.vocabulary import IncidentKind, IncidentState, spoken
from recovery import asides, disputed, incident_filters, takings
from recovery.incident_filters import HOLD_KIND, HOLD_NEEDS_ANSWER, KIND_WORDS, NEEDS_ANSWER
from recovery.incidents import OPERATOR
from recovery.models import Aside, Incident, Step, Taking
from recovery.refusals import FilterEmpty

PAGE = 50
READ_MAX = EXACT_UP_TO + 1
HOLDS = {
    "twin_abandoned": "nobody can know what became of the same call",
    "repeat_intended": "the agent wants it once more, on purpose",
    "waiting_for_call": "an earlier side effect of its turn may have happened",
    "same_target": "another write to the same target is not settled",
    "twin_open": "the same call is under way",
    "twin_unresolved": "the same call was interrupted",
    "twin_done": "the same call was done before",
}


INBOX = Table(
    filters=(
        Filter("kind", "Kind", "choice", label_filters.plain(KIND_WORDS), is_first=True),
        *label_filters.OF_CALL,
        *label_filters.BETWEEN,
        Filter("age_min", "Older than, minutes", "number"),
        label_filters.TAKEN,
        Filter("assigned", "Assigned to", hint="A name, or nobody, or somebody"),
        Filter("disputed", "in dispute", "flag"),
        Filter("aside", "Set aside", "choice", (("no", "not set aside"), ("yes", "set aside"))),
        Filter("overdue", "overdue", "flag"),
        label_filters.BULK,
    ),
    keeps=incident_filters.INCIDENTS,
    sorts=(("due", "by deadline"), ("oldest", "oldest first"), ("newest", "newest first"),
           ("tool", "by tool"), ("session", "by session")),
    columns=(
        Column("age", "Age"), Column("state", "State"), Column("started", "1 Started"),
        Column("effect", "2 Effect"), Column("saw", "3 Model saw"), Column("cause", "Cause"),
        Column("class", "Class"), Column("policy", "Policy"), Column("takenby", "Taken"),
        Column("assigned", "Assigned"), Column("due", "Review"),
    ),
    hidden=frozenset({"cause", "class", "policy", "assigned"}),
    groups=(("cause", "by cause"),),
)  # fmt: skip
"""What can be asked of the inbox; its filters as they are about incidents."""


def asked_of(address: Any) -> Asked:
    """What an address asks of the inbox."""
    return filters.read(INBOX, address)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the list: what it is, since when, by when, and the three answers."""

    id: str
    """`inc_…`, or the id of the held call."""
    at: datetime
    due: datetime | None
    is_overdue: bool
    level: int
    kind: str
    about: str
    call: ToolCall | None
    address: str
    cause: str = ""
    session: UUID | None = None
    agent: str = ""
    saw: str = ""
    taken: Taking | None = None
    assigned: str = ""
    is_disputed: bool = False
    aside: Aside | None = None
    closed_at: datetime | None = None
    closed_by: str = ""
    """The person who resolved it; empty where the machine closed it, or it is a hold."""
    closed_as: str = ""
    is_pending: bool = False

    @property
    def title(self) -> str:
        return self.call.tool if self.call else "session incident"

    @property
    def started(self) -> str:
        return "–" if self.call is None else "yes" if self.call.attempts_used else "no"

    @property
    def stable(self) -> str:
        """The row's id on the page."""
        return f"row-{self.id}"

    @property
    def peek_at(self) -> str:
        """Its essentials, as a part."""
        name = "inbox-peek" if self.id.startswith("inc_") else "calls-peek"
        return reverse(name, args=[self.id])

    @property
    def numbers(self) -> tuple[Any, ...]:
        """What changes when the row is to be drawn anew."""
        return (self.id, self.closed_at, self.is_overdue, self.is_pending, self.saw,
                self.call.seq if self.call else 0, self.taken and self.taken.by_name,
                self.assigned, self.is_disputed, self.aside and self.aside.until)  # fmt: skip


class Place(NamedTuple):
    """What of a row says where it stands: read of all that is open, when only fifty are drawn."""

    id: str
    at: datetime
    due: datetime | None
    is_overdue: bool
    level: int = 0
    kind: str = HOLD_KIND
    tool: str = ""
    session: str = ""
    is_aside: bool = False


class Order(NamedTuple):
    """A sort of the address: what it compares of a place, and the kinds of that in a cursor."""

    key: Callable[[Place], tuple[Any, ...]]
    kinds: tuple[Callable[[str], Any], ...]


def _by_deadline(place: Place) -> tuple[Any, ...]:
    """The longest overdue first, then by the deadline; ties by age; what is set aside last."""
    due = place.due.timestamp() if place.due else FAR
    return (int(place.is_aside), -place.level, due, place.at.timestamp(), place.id)


FAR = float("inf")
DEADLINE = (int, int, float, float, cursors.word)
ORDERS: dict[str, Order] = {
    "": Order(_by_deadline, DEADLINE),
    "oldest": Order(lambda place: (place.at.timestamp(), place.id), (float, cursors.word)),
    "newest": Order(lambda place: (-place.at.timestamp(), place.id), (float, cursors.word)),
    "tool": Order(lambda place: (place.tool, *_by_deadline(place)), (cursors.word, *DEADLINE)),
    "session": Order(
        lambda place: (place.session, *_by_deadline(place)), (cursors.word, *DEADLINE)
    ),
}
"""The order of the rows by each sort of the address."""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share a cause; one nameless group where nobody asked to group."""

    title: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Inbox:
    """One page of the list, and what is counted above it; `new` came after `as_of`."""

    asked: Asked
    now: datetime
    rows: list[Row]
    as_of: datetime
    new: int = 0
    figure: Figure = field(default_factory=lambda: Figure(0))
    overdue: int = 0
    oldest: datetime | None = None
    more: str = ""
    blames: tuple[Chosen, Figure] | None = None

    @property
    def groups(self) -> list[Group]:
        if not self.asked.group:
            return [Group("", self.rows)]
        causes = dict.fromkeys(each.cause or each.kind for each in self.rows)
        return [
            Group(spoken(cause),
                  [each for each in self.rows if (each.cause or each.kind) == cause])
            for cause in causes
        ]  # fmt: skip

    @property
    def drawn(self) -> str:
        """The moment of the list, as an address has it."""
        return self.as_of.astimezone(UTC).isoformat().replace("+00:00", "Z")

    @property
    def frozen(self) -> str:
        """The ids of the rows in their order, for whoever asks for them again."""
        return ",".join(each.id for group in self.groups for each in group.rows)


def of(person: Person, asked: Asked, *, cursor: str = "") -> Inbox:
    """The page of the inbox that a cursor leads to; the first of now without one.

    Raises Invalid for a filter that says nothing known, and for a cursor of another list.
    """
    now, order = clock.now(), ORDERS[asked.sort]
    as_of, after = _read_cursor(cursor, asked) if cursor else (now, ())
    came = _came(person, asked, as_of) if cursor else set()
    found = _ordered(person, asked, now)
    left = [each for each in found if each.id not in came and order.key(each) > after]
    shown = left[:PAGE]
    more = _cursor(as_of, order.key(shown[-1]), asked) if len(left) > PAGE else ""
    return Inbox(
        asked=asked,
        now=now,
        rows=_rows(person, [each.id for each in shown], now),
        as_of=as_of,
        new=len(came),
        figure=Figure(len(found)),
        overdue=sum(each.is_overdue for each in found),
        oldest=min((each.at for each in found), default=None),
        more=more,
        blames=_blame(person, asked, now) if not found and asked.given else None,
    )


def _cursor(as_of: datetime, after: tuple[Any, ...], asked: Asked) -> str:
    return cursors.written((as_of.isoformat(), *after), _bound(asked))


def _read_cursor(cursor: str, asked: Asked) -> tuple[datetime, tuple[Any, ...]]:
    kinds = ORDERS[asked.sort].kinds
    as_of, *after = cursors.read(cursor, _bound(asked), datetime.fromisoformat, *kinds)
    return as_of, tuple(after)


def _bound(asked: Asked) -> dict[str, str]:
    return {**asked.given, "sort": asked.sort}


def _ordered(person: Person, asked: Asked, now: datetime) -> list[Place]:
    return sorted(_places(person, asked, now), key=ORDERS[asked.sort].key)


def _blame(person: Person, asked: Asked, now: datetime) -> tuple[Chosen, Figure] | None:
    """The filter without which the list would be longest."""
    left = [
        (each, Figure(len(_places(person, asked.dropping(each.name), now))))
        for each in asked.chosen
    ]
    most = max(left, key=lambda each: each[1].number)
    return most if most[1].number else None


def again(person: Person, asked: Asked, frozen: Sequence[str], as_of: datetime) -> Inbox:
    """The very rows that were drawn, in their order, however they stand now; how many are new."""
    now = clock.now()
    new = len(_came(person, asked, as_of) - set(frozen))
    return Inbox(asked, now, _rows(person, frozen[:PAGE], now), as_of, new)


def _came(person: Person, asked: Asked, since: datetime) -> set[str]:
    """The ids of what is listed and was not yet so at a moment, as rows show them."""
    listed = _open_incidents(person, asked).values("id")
    incidents = Incident.objects.filter(incident_filters.came(since), id__in=listed)
    return {
        *(
            ids.shown("incident", each)
            for each in incidents.values_list("id", flat=True)[:READ_MAX]
        ),
        *(ids.shown("call", call) for call, at, *_ in _open_holds(person, asked) if at > since),
    }


def _rows(person: Person, shown: Sequence[str], now: datetime) -> list[Row]:
    """The rows of these ids, in their order, however they stand now."""
    wanted = [_read(each) for each in shown]
    incidents = [id_ for noun, id_ in wanted if noun == "incident"]
    held = [id_ for noun, id_ in wanted if noun == "call"]
    rows = [_of_incident(each, now) for each in _incidents(person).filter(id__in=incidents)]
    holds = _holds(person).filter(call__in=held).order_by("call", "-asked_at").distinct("call")
    rows += [_of_hold(each, now) for each in holds]
    by_id = {each.id: each for each in _filled(rows)}
    return [by_id[each] for each in shown if each in by_id]


def _read(shown: str) -> tuple[str, UUID]:
    noun = "incident" if shown.startswith("inc_") else "call"
    return noun, ids.read(noun, shown)


def next_of(person: Person, asked: Asked, *, after: str = "", back: bool = False) -> str | None:
    """The address of the first row that nobody has taken or set aside; None where there is none.

    `after` is the row that one stands on: the search goes on from there, or back, and begins
    anew at the end.
    """
    found = _ordered(person, asked, clock.now())
    found = found[::-1] if back else found
    at = next((n for n, each in enumerate(found) if each.id == after), None)
    if at is not None:
        found = found[at + 1 :] + found[:at]
    taken = takings.of(_read(each.id)[1] for each in found if each.id.startswith("inc_"))
    free = (each for each in found if not each.is_aside
            and not (each.id.startswith("inc_") and _read(each.id)[1] in taken))  # fmt: skip
    first = next(free, None)
    return _rows(person, [first.id], clock.now())[0].address if first else None


def matching(person: Person, asked: Asked, most: int) -> list[UUID]:
    """The recovery incidents that the filters keep, in the list's order, for a bulk run.

    Raises FilterEmpty without a filter, and Invalid for more than `most`.
    """
    if not asked.narrows:
        raise FilterEmpty()
    found = _ordered(person, asked, clock.now())
    wanted = [_read(each.id)[1] for each in found if each.kind == IncidentKind.RECOVERY]
    if len(wanted) > most:
        raise Invalid(detail=f"More than {most} match. A run has at most {most} rows: narrow it.")
    return wanted


class Ending(NamedTuple):
    """By which person an incident was closed, empty for the machine, and how."""

    incident: Incident
    by: str
    how: str

    @property
    def title(self) -> str:
        return self.incident.call.tool if self.incident.call else "session incident"


def last_resolved(person: Person) -> Ending | None:
    """The incident that a person ended last, for a page that has nothing to show."""
    rows = Step.objects.filter(
        rung=OPERATOR,
        incident__workspace=person.workspace_id,
        incident__state=IncidentState.RESOLVED,
    )
    last = rows.select_related("incident__call").order_by("-id").first()
    return _ending(last) if last else None


# Reading


PLACED = ("id", "opened_at", "review_at", "escalation_level", "kind", "call__tool",
          "call__session_id", "session_id")  # fmt: skip


def _places(person: Person, asked: Asked, now: datetime) -> list[Place]:
    """Everything open that the filters keep, unordered."""
    aside = Aside.objects.filter(asides.in_force(), workspace=person.workspace_id)
    set_aside = set(aside.values_list("incident_id", flat=True))
    found = [
        Place(
            ids.shown("incident", id_), at, due, level > 0 or bool(due and due < now), level,
            str(kind), tool or "", str(of_call or session or ""), id_ in set_aside,
        )
        for id_, at, due, level, kind, tool, of_call, session
        in _first(_open_incidents(person, asked), asked.sort, set_aside).values_list(*PLACED)
    ]  # fmt: skip
    return found + [
        Place(ids.shown("call", call_id), at, due, due < now, tool=tool, session=str(session or ""))
        for call_id, at, due, tool, session in _open_holds(person, asked)
    ]


BY_DEADLINE = ("-escalation_level", F("review_at").asc(nulls_last=True), "opened_at", "id")
FIRST: dict[str, tuple[Any, ...]] = {
    "oldest": ("opened_at", "id"),
    "newest": ("-opened_at", "id"),
    "tool": ("call__tool", *BY_DEADLINE),
    "session": (Coalesce("call__session_id", "session_id"), *BY_DEADLINE),
}
"""Which incidents are read where more are open than a list can hold: the first of its order."""


def _first(rows: Any, sort: str, set_aside: Collection[UUID]) -> Any:
    last = [Case(When(id__in=set_aside, then=1), default=0)] if set_aside else []
    return rows.order_by(*FIRST.get(sort, (*last, *BY_DEADLINE)))[:READ_MAX]


def _incidents(person: Person) -> Any:
    rows = Incident.objects.filter(workspace=person.workspace_id)
    return rows.select_related("call__agent", "call__policy", "session__agent")


def _open_incidents(person: Person, asked: Asked) -> Any:
    # Served by the partial index `incident_open`.
    rows = Incident.objects.filter(NEEDS_ANSWER, workspace=person.workspace_id)
    return asked.kept(rows)


def _holds(person: Person) -> Any:
    rows = Interrupt.objects.filter(workspace=person.workspace_id, name=HOLD)
    return rows.select_related("call__agent", "call__policy")


def _open_holds(person: Person, asked: Asked) -> Any:
    if set(asked.given) - set(incident_filters.HOLDS):
        return []
    rows = _holds(person).filter(HOLD_NEEDS_ANSWER)
    rows = narrowed(rows, asked.meant, incident_filters.HOLDS)
    by = {"newest": "-asked_at", "oldest": "asked_at"}.get(asked.sort, "expires_at")
    rows = rows.order_by(by, "call_id")[:READ_MAX]
    return rows.values_list("call_id", "asked_at", "expires_at", "call__tool", "call__session_id")


def _of_incident(row: Incident, now: datetime) -> Row:
    agent = row.call.agent if row.call else row.session.agent if row.session else None
    shown = ids.shown("incident", row.id)
    return Row(
        id=shown,
        at=row.opened_at,
        due=row.review_at,
        is_overdue=row.closed_at is None and late(row, now),
        level=row.escalation_level,
        kind=str(row.kind),
        about=KINDS.get(row.kind, str(row.kind)),
        call=row.call,
        address=reverse("inbox-incident", args=[shown]),
        cause=str(row.cause),
        session=row.call.session_id if row.call else row.session_id,
        agent=agent.name if agent else "",
        closed_at=row.closed_at,
        closed_as=str(row.state),
        is_pending=row.pending_id is not None,
    )


def _of_hold(row: Interrupt, now: datetime) -> Row:
    shown = ids.shown("call", row.call_id)
    return Row(
        id=shown,
        at=row.asked_at,
        due=row.expires_at,
        is_overdue=row.ended_at is None and row.expires_at < now,
        level=0,
        kind=HOLD_KIND,
        about=HOLDS.get(row.reason, spoken(row.reason)),
        call=row.call,
        address=reverse("inbox-hold", args=[row.id]),
        session=row.call.session_id,
        agent=row.call.agent.name,
        closed_at=row.ended_at,
        closed_as=str(row.ended_as),
    )


def _filled(rows: Sequence[Row]) -> list[Row]:
    """The rows with what is read for all of them at once: takings, deliveries, who closed them."""
    ids_of = {each.id: _read(each.id)[1] for each in rows}
    incidents = [ids_of[each.id] for each in rows if each.id.startswith("inc_")]
    taken, aside = takings.of(incidents), asides.of(incidents)
    assigned, in_dispute = asides.assigned(incidents), disputed.of_incidents(incidents)
    saw = standing.shown_of([each.call.id for each in rows if each.call])
    ended = _endings(ids_of[each.id] for each in rows
                     if each.closed_at and each.id.startswith("inc_"))  # fmt: skip
    return [
        replace(
            each,
            taken=taken.get(id_),
            aside=aside.get(id_),
            is_disputed=id_ in in_dispute,
            assigned=assigned[id_].to_name if id_ in assigned else "",
            saw=saw.get(each.call.id, standing.Shown()).text if each.call else "–",
            closed_by=ended[id_].by if id_ in ended else "",
            closed_as=ended[id_].how if id_ in ended else spoken(each.closed_as),
        )
        for each in rows
        for id_ in (ids_of[each.id],)
    ]


def _endings(incident_ids: Iterable[UUID]) -> dict[UUID, Ending]:
    """How these incidents were closed: what the last step says, taken by a person or a rule."""
    rows = Step.objects.filter(incident__in=list(incident_ids), taken=True)
    last = rows.select_related("incident").order_by("incident", "-id").distinct("incident")
    return {each.incident_id: _ending(each) for each in last}


def _ending(last: Step) -> Ending:
    if last.incident.state is IncidentState.RESOLVED:
        return Ending(last.incident, last.facts["by"], "resolved")
    return Ending(last.incident, "", f"closed by the machine: {spoken(last.rule)}")
