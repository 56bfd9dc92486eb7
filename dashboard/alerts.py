"""What a browser tells somebody who is not looking: what needs this person, one line each.

Kinds, and names of tools made plain and cut short; never an argument, a result or evidence. Each
has a key, so that a browser tells it once however many of its tabs are open.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.text import Truncator, capfirst

from dashboard.incidents import KINDS
from dashboard.templatetags.untrusted import visible
from ledger import ids
from ledger.holds import NAME as HOLD
from ledger.models import Interrupt, ToolCall
from ledger.permissions import Person, Right
from recovery import asides, requests, takings
from recovery.incident_filters import HOLD_NEEDS_ANSWER, NEEDS_ANSWER
from recovery.models import Aside, Incident

SHOWN = 50
NAME_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing to be told: its key, a title, what it is about, and the page of it."""

    key: str
    title: str
    about: str
    address: str


def of(person: Person) -> list[Alert]:
    """What needs this person now, the newest of each kind first; nothing for who only reads."""
    if not person.may(Right.STATE_EVIDENCE):
        return []
    return [*_incidents(person), *_questions(person), *_approvals(person)]


def _incidents(person: Person) -> Iterable[Alert]:
    """Incidents that wait for a person; and of those in this person's hand, each escalation."""
    put_aside = Aside.objects.filter(asides.in_force(), workspace=person.workspace_id)
    # Served by `incident_open`. The review begins when a person is asked, and again one wider.
    rows = Incident.objects.filter(NEEDS_ANSWER, workspace=person.workspace_id)
    rows = rows.exclude(id__in=put_aside.values("incident")).select_related("call")
    found = list(rows.order_by("-review_at")[:SHOWN])
    mine = _in_hand(person, found)
    for row in found:
        shown = ids.shown("incident", row.id)
        about, page = _about(row), reverse("inbox-incident", args=[shown])
        yield Alert(shown, "Needs an answer", about, page)
        if row.escalation_level and row.id in mine:
            key = f"{shown}-{row.escalation_level}"
            yield Alert(key, "Your incident was escalated", about, page)


def _in_hand(person: Person, rows: list[Incident]) -> set[Any]:
    """Which of them this person has taken, or was assigned."""
    wanted = [row.id for row in rows]
    taken, assigned = takings.of(wanted), asides.assigned(wanted)
    return {id_ for id_, row in taken.items() if row.by_id == person.id} | {
        id_ for id_, row in assigned.items() if row.to_id == person.id
    }


def _questions(person: Person) -> Iterable[Alert]:
    rows = Interrupt.objects.filter(HOLD_NEEDS_ANSWER, workspace=person.workspace_id, name=HOLD)
    for row in rows.select_related("call").order_by("-asked_at")[:SHOWN]:
        page = reverse("inbox-hold", args=[row.id])
        yield Alert(f"int_{row.id}", "Needs an answer", _tool(row.call), page)


def _approvals(person: Person) -> Iterable[Alert]:
    """Nobody approves what they asked for themselves."""
    if not person.may(Right.APPROVE):
        return
    for row in requests.waiting(person.workspace_id)[:SHOWN]:
        asked = row.pending
        if asked is None or asked.by_id == person.id:
            continue
        shown = ids.shown("resolution", asked.id)
        page = reverse("approvals-detail", args=[shown])
        yield Alert(shown, "Waits for your approval", _tool(asked.call), page)


def _about(row: Incident) -> str:
    return _tool(row.call) if row.call else capfirst(KINDS.get(row.kind, str(row.kind)))


def _tool(call: ToolCall) -> str:
    return Truncator(visible(call.tool)).chars(NAME_CHARACTERS)
