"""The inbox: open incidents that ask a person, and holds that only a person ends.

Ordered against the deadline, the longest overdue first. What is open is bounded by what people
leave lying, so it is read through the partial indexes over open rows, up to READ_MAX, and ordered
here. A row that was drawn keeps its place: a live part asks for the same rows again by their ids,
and what came since is only counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q
from django.urls import reverse

from dashboard import standing
from dashboard.incidents import KINDS, late
from ledger import clock, ids
from ledger.holds import NAME as HOLD
from ledger.models import Interrupt, ToolCall
from ledger.permissions import Person
from ledger.vocabulary import (
    ASKS_PERSON,
    Cause,
    IncidentKind,
    IncidentState,
    RecoveryClass,
)
from recovery import takings
from recovery.models import Incident, Resolution, Taking

PAGE = 50
READ_MAX = 1_000
HOLD_KIND = "hold"
KIND_WORDS = tuple(
    (word, word.replace("_", " ")) for word in (HOLD_KIND, *(str(each) for each in IncidentKind))
)
ASKS = Q(state=IncidentState.EXHAUSTED) | ~Q(kind=IncidentKind.RECOVERY)
"""Whose turn it is: a recovery incident asks nobody before the machine is at its end."""

HOLDS = {
    "twin_abandoned": "nobody can know what became of the same call",
    "repeat_intended": "the agent wants it once more, on purpose",
    "waiting_for_call": "an earlier side effect of its turn may have happened",
    "same_target": "another write to the same target is not settled",
    "twin_open": "the same call is under way",
    "twin_unresolved": "the same call was interrupted",
    "twin_done": "the same call was done before",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters, as they stand in the address; a wrong word matches nothing and says so."""

    kind: str = ""
    recovery_class: str = ""
    cause: str = ""
    tool: str = ""
    age_min: int | None = None
    group: bool = False

    def query(self, **other: Any) -> str:
        """The address of the same filters, with some of them changed."""
        words = {"kind": self.kind, "class": self.recovery_class, "cause": self.cause,
                 "tool": self.tool, "age_min": self.age_min,
                 "group": "cause" if self.group else ""} | other  # fmt: skip
        given = {name: value for name, value in words.items() if value not in ("", None)}
        return urlencode(given)

    @property
    def narrows(self) -> bool:
        return bool(self.kind or self.recovery_class or self.cause or self.tool or self.age_min)


def asked_of(query: Mapping[str, str]) -> Asked:
    """Read the filters of an address; minutes that are no number count as none."""
    minutes = query.get("age_min", "")
    valid = minutes.isascii() and minutes.isdigit() and len(minutes) <= 6
    return Asked(
        kind=query.get("kind", "")[:40],
        recovery_class=query.get("class", "")[:40],
        cause=query.get("cause", "")[:40],
        tool=query.get("tool", "")[:128],
        age_min=int(minutes) if valid else None,
        group=query.get("group", "") == "cause",
    )


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
    closed_at: datetime | None = None
    closed_by: str = ""
    is_pending: bool = False

    @property
    def order(self) -> tuple[Any, ...]:
        """The longest overdue first, then by the deadline; ties by age."""
        far = datetime.max.replace(tzinfo=self.at.tzinfo)
        return (-self.level, self.due or far, self.at, self.id)

    @property
    def started(self) -> str:
        return "–" if self.call is None else "yes" if self.call.attempts_used else "no"

    @property
    def stable(self) -> str:
        """The row's id on the page."""
        return f"row-{self.id}"

    @property
    def numbers(self) -> tuple[Any, ...]:
        """What changes when the row is to be drawn anew."""
        return (self.id, self.closed_at, self.is_overdue, self.is_pending, self.saw,
                self.call.seq if self.call else 0, self.taken and self.taken.by_name)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share a cause; one nameless group where nobody asked to group."""

    title: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Inbox:
    """One page of the list, and what is counted above it."""

    asked: Asked
    now: datetime
    rows: list[Row]
    total: int
    overdue: int
    oldest: datetime | None
    more: str = ""
    is_cut: bool = False

    @property
    def groups(self) -> list[Group]:
        if not self.asked.group:
            return [Group("", self.rows)]
        causes = dict.fromkeys(each.cause or each.kind for each in self.rows)
        return [
            Group(cause.replace("_", " "),
                  [each for each in self.rows if (each.cause or each.kind) == cause])
            for cause in causes
        ]  # fmt: skip

    @property
    def frozen(self) -> str:
        """The ids of the rows in their order, for whoever asks for them again."""
        return ",".join(each.id for group in self.groups for each in group.rows)


def of(person: Person, asked: Asked, *, after: str = "") -> Inbox:
    """The page of the inbox that comes after a row; from the beginning without one."""
    now = clock.now()
    found = sorted(_all(person, asked, now), key=lambda each: each.order)
    at = next((n + 1 for n, each in enumerate(found) if each.id == after), 0)
    shown = found[at : at + PAGE]
    more = shown[-1].id if len(found) > at + PAGE else ""
    return Inbox(
        asked=asked,
        now=now,
        rows=_filled(shown),
        total=len(found),
        overdue=sum(each.is_overdue for each in found),
        oldest=min((each.at for each in found), default=None),
        more=more,
        is_cut=len(found) >= READ_MAX,
    )


def again(person: Person, asked: Asked, frozen: Sequence[str]) -> tuple[list[Row], int]:
    """The very rows that were drawn, in their order, however they stand now; how many are new."""
    now = clock.now()
    known = set(frozen)
    new = sum(each.id not in known for each in _all(person, asked, now))
    wanted = [_read(each) for each in frozen[:PAGE]]
    incidents = [id_ for noun, id_ in wanted if noun == "incident"]
    held = [id_ for noun, id_ in wanted if noun == "call"]
    rows = [_of_incident(each, now) for each in _incidents(person).filter(id__in=incidents)]
    holds = _holds(person).filter(call__in=held).order_by("call", "-asked_at").distinct("call")
    rows += [_of_hold(each, now) for each in holds]
    by_id = {each.id: each for each in _filled(rows)}
    return [by_id[each] for each in frozen[:PAGE] if each in by_id], new


def _read(shown: str) -> tuple[str, UUID]:
    noun = "incident" if shown.startswith("inc_") else "call"
    return noun, ids.read(noun, shown)


def next_of(person: Person, asked: Asked) -> str | None:
    """The address of the first row that nobody has taken; None where there is none."""
    found = sorted(_all(person, asked, clock.now()), key=lambda each: each.order)
    taken = takings.of(_read(each.id)[1] for each in found if each.id.startswith("inc_"))
    free = (each for each in found if not (each.id.startswith("inc_")
            and _read(each.id)[1] in taken))  # fmt: skip
    first = next(free, None)
    return first.address if first else None


def last_resolved(person: Person) -> Incident | None:
    """The incident that a person ended last, for a page that has nothing to show."""
    rows = Incident.objects.filter(
        workspace=person.workspace_id, state=IncidentState.RESOLVED, closed_at__isnull=False
    )
    return rows.select_related("call").order_by("-id").first()


# Reading


def _all(person: Person, asked: Asked, now: datetime) -> list[Row]:
    """Everything open that the filters keep, unordered."""
    rows: list[Row] = []
    if asked.kind != HOLD_KIND:
        rows += [_of_incident(each, now) for each in _open_incidents(person, asked, now)]
    if asked.kind in ("", HOLD_KIND) and not asked.cause:
        rows += [_of_hold(each, now) for each in _open_holds(person, asked, now)]
    return rows


def _incidents(person: Person) -> Any:
    rows = Incident.objects.filter(workspace=person.workspace_id)
    return rows.select_related("call__agent", "session__agent")


def _open_incidents(person: Person, asked: Asked, now: datetime) -> Any:
    # Served by the partial index `incident_open`.
    rows = _incidents(person).filter(ASKS, closed_at__isnull=True)
    if asked.kind:
        rows = rows.filter(kind=asked.kind)
    if asked.cause:
        rows = rows.filter(cause=asked.cause)
    if asked.recovery_class:
        rows = rows.filter(call__recovery_class=asked.recovery_class)
    if asked.tool:
        rows = rows.filter(call__tool=asked.tool)
    if asked.age_min:
        rows = rows.filter(opened_at__lt=now - timedelta(minutes=asked.age_min))
    return rows.order_by("opened_at")[:READ_MAX]


def _holds(person: Person) -> Any:
    rows = Interrupt.objects.filter(workspace=person.workspace_id, name=HOLD)
    return rows.select_related("call__agent")


def _open_holds(person: Person, asked: Asked, now: datetime) -> Any:
    rows = _holds(person).filter(ended_at__isnull=True, reason__in=sorted(ASKS_PERSON))
    if asked.recovery_class:
        rows = rows.filter(call__recovery_class=asked.recovery_class)
    if asked.tool:
        rows = rows.filter(call__tool=asked.tool)
    if asked.age_min:
        rows = rows.filter(asked_at__lt=now - timedelta(minutes=asked.age_min))
    return rows.order_by("asked_at")[:READ_MAX]


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
        closed_by=str(row.state),
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
        about=HOLDS.get(row.reason, row.reason.replace("_", " ")),
        call=row.call,
        address=reverse("inbox-hold", args=[row.id]),
        session=row.call.session_id,
        agent=row.call.agent.name,
        closed_at=row.ended_at,
        closed_by=str(row.ended_as),
    )


def _filled(rows: Sequence[Row]) -> list[Row]:
    """The rows with what is read for all of them at once: takings, deliveries, who closed them."""
    incidents = [_read(each.id)[1] for each in rows if each.id.startswith("inc_")]
    taken = takings.of(incidents)
    saw = standing.shown_of([each.call.id for each in rows if each.call])
    closed = _closed_by(_read(each.id)[1] for each in rows
                        if each.closed_at and each.id.startswith("inc_"))  # fmt: skip
    return [
        replace(
            each,
            taken=taken.get(_read(each.id)[1]),
            saw=saw.get(each.call.id, standing.Shown()).text if each.call else "–",
            closed_by=closed.get(_read(each.id)[1], each.closed_by.replace("_", " ")),
        )
        for each in rows
    ]


def _closed_by(incident_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Who decided the incidents that are closed; the machine's own are named by their state."""
    rows = Resolution.objects.filter(incident__in=list(incident_ids)).order_by("at")
    return dict(rows.values_list("incident_id", "by_name"))


CLASSES = tuple(str(each) for each in RecoveryClass)
CAUSES = tuple(str(each) for each in Cause)
