"""Taking an incident: a courtesy for ten minutes, renewed by activity (console, section 9).

It says who is at work, so that two people do not look for the same thing. It locks nothing and
decides nothing: whoever may decide still may, and a later taking takes over. Where it has run out
nobody has the incident, although its row still lies there.

Locks: the taking alone.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from ledger.errors import LedgerError, NotFound, PermissionMissing
from ledger.models.fields import ClockTimestamp
from ledger.permissions import Person, Right
from ledger.transactions import repeatable
from recovery.models import Incident, Taking

LASTS_S = 10 * 60
"""How long a taking lasts after the last activity, in seconds (console, section 9)."""


class NotOpen(LedgerError):
    """A closed incident is nobody's work any more."""

    code = "incident_closed"
    sentence = (
        "This incident is closed ({state}): there is nothing to work on. Nothing was changed. "
        "Read it; what was decided wrongly is corrected on its call."
    )


def in_force() -> Q:
    """The condition of a taking that has not run out, on the database's clock."""
    return Q(active_at__gt=ClockTimestamp() - timedelta(seconds=LASTS_S))


@repeatable
def take(*, incident_id: UUID, by: Person) -> Taking:
    """Take an incident, or take it over; taken again by the same person, it is renewed.

    Raises NotFound, PermissionMissing without the right to state evidence, NotOpen.
    """
    _workable(incident_id, by)
    mine = {"by_id": by.id, "by_name": by.name, "active_at": ClockTimestamp()}
    renewed = Taking.objects.filter(in_force(), incident=incident_id, by=by.id)
    if not renewed.update(active_at=ClockTimestamp()):
        Taking.objects.update_or_create(
            incident_id=incident_id,
            defaults=mine | {"workspace_id": by.workspace_id, "taken_at": ClockTimestamp()},
        )
    return Taking.objects.get(incident=incident_id)


@repeatable
def release(*, incident_id: UUID, by: Person) -> None:
    """Let go of an incident that this person has taken; of one that is not theirs, do nothing."""
    _readable(incident_id, by)
    Taking.objects.filter(incident=incident_id, by=by.id).delete()


def touch(incident_id: UUID, by: Person) -> None:
    """Renew a taking by activity, if it is this person's; the form of the incident calls it."""
    Taking.objects.filter(in_force(), incident=incident_id, by=by.id).update(
        active_at=ClockTimestamp()
    )


def of(incident_ids: Iterable[UUID]) -> dict[UUID, Taking]:
    """The takings in force of these incidents."""
    found = Taking.objects.filter(in_force(), incident__in=list(incident_ids))
    return {each.incident_id: each for each in found}


def _readable(incident_id: UUID, by: Person) -> Incident:
    rows: Any = Incident.objects.filter(workspace=by.workspace_id, id=incident_id)
    found: Incident | None = rows.first()
    if found is None:
        raise NotFound(noun="incident")
    return found


def _workable(incident_id: UUID, by: Person) -> None:
    refuse_unless_workable(_readable(incident_id, by), by)


def refuse_unless_workable(incident: Incident, by: Person) -> None:
    """Raise PermissionMissing for who may not work on incidents, NotOpen for a closed one."""
    if not by.may(Right.STATE_EVIDENCE):
        raise PermissionMissing(needed="the right to state evidence")
    if incident.closed_at is not None:
        raise NotOpen(state=incident.state)
