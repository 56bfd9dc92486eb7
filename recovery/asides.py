"""Setting an incident aside until later, and assigning it (console, sections 4 and 7: level 1).

Both order people's work and decide nothing: no call moves, no deadline stops, the decision version
stays. What is set aside comes back by itself at its moment, and at once when it is escalated; until
then it is listed last. Each change is a line on the incident's timeline, with who made it.

Locks: the incident alone.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q

from ledger.errors import Invalid, NotFound
from ledger.models import Membership
from ledger.models.fields import ClockTimestamp
from ledger.permissions import Person, Right, roles_with
from ledger.transactions import repeatable
from recovery import ageing, takings
from recovery.models import Aside, Assignment, Incident, Step

MINUTES_MAX = 7 * 24 * 60
"""For how long at most an incident is set aside: a week, in minutes."""
BROUGHT_BACK = "brought_back"
"""The rung of the step that says so."""


def in_force() -> Q:
    """The condition of what is set aside still, on the database's clock."""
    return Q(until__gt=ClockTimestamp(), level__gte=F("incident__escalation_level"))


def came_back(since: datetime) -> Q:
    """The condition of an incident that was set aside and has come back since then."""
    told = Step.objects.filter(incident=OuterRef("pk"), at__gt=since)
    by_itself = Q(aside__until__gt=since, aside__until__lte=ClockTimestamp(),
                  aside__level__gte=F("escalation_level"))  # fmt: skip
    by_a_person = Q(Exists(told.filter(rung=BROUGHT_BACK)), aside__isnull=True)
    by_escalation = Q(Exists(told.filter(rung=ageing.ESCALATED)),
                      aside__level__lt=F("escalation_level"))  # fmt: skip
    return by_itself | by_a_person | by_escalation


@repeatable
def set_aside(*, incident_id: UUID, minutes: int, by: Person, grounds: str = "") -> Aside:
    """Set an open incident aside for so many minutes from now; told again, the last word counts.

    Raises NotFound, PermissionMissing without the right to state evidence, NotOpen, Invalid.
    """
    if not 1 <= minutes <= MINUTES_MAX:
        raise Invalid(detail=f"An incident is set aside for 1 to {MINUTES_MAX} minutes.")
    incident = _locked(incident_id, by)
    until = ClockTimestamp() + timedelta(minutes=minutes)
    said = {"until": until, "level": incident.escalation_level, "by_id": by.id,
            "by_name": by.name, "at": ClockTimestamp()}  # fmt: skip
    Aside.objects.update_or_create(
        incident_id=incident.id, defaults=said | {"workspace_id": by.workspace_id}
    )
    made = Aside.objects.get(incident=incident.id)
    sentence = f"Set aside by {by.name} until {made.until:%Y-%m-%d %H:%M:%S} UTC."
    _write(incident, "set_aside", by, f"{sentence} {grounds}", until=made.until.isoformat())
    return made


@repeatable
def bring_back(*, incident_id: UUID, by: Person) -> None:
    """End the setting aside: the incident stands where it stood. Where it is not, do nothing."""
    incident = _locked(incident_id, by)
    found = Aside.objects.filter(in_force(), incident=incident.id)
    if found.exists():
        Aside.objects.filter(incident=incident.id).delete()
        _write(incident, BROUGHT_BACK, by, f"Brought back by {by.name}.")


@repeatable
def assign(*, incident_id: UUID, to: str, by: Person) -> Assignment | None:
    """Make an open incident the work of a member by name; of nobody with an empty one.

    Raises as `set_aside`; Invalid for a name that nobody here has who may work on it.
    """
    incident = _locked(incident_id, by)
    present = Assignment.objects.filter(incident=incident.id).first()
    if not to:
        Assignment.objects.filter(incident=incident.id).delete()
        if present:
            _write(incident, "assigned", by, f"{by.name} made it nobody's work.", to="")
        return None
    person_id = _able(by.workspace_id, to)
    if present is not None and present.to_id == person_id:
        return present
    Assignment.objects.update_or_create(
        incident_id=incident.id,
        defaults={"workspace_id": by.workspace_id, "to_id": person_id, "to_name": to,
                  "by_id": by.id, "by_name": by.name, "at": ClockTimestamp()},
    )  # fmt: skip
    _write(incident, "assigned", by, f"Assigned to {to} by {by.name}.", to=to)
    return Assignment.objects.get(incident=incident.id)


def able(workspace_id: UUID) -> list[str]:
    """The names of those who may be given an incident, in order."""
    return list(_workers(workspace_id).values_list("person__username", flat=True).distinct())


def _workers(workspace_id: UUID) -> Any:
    return Membership.objects.filter(
        workspace=workspace_id, role__in=roles_with(Right.STATE_EVIDENCE), person__is_active=True
    ).order_by("person__username")


def _able(workspace_id: UUID, name: str) -> int:
    rows = _workers(workspace_id).filter(person__username=name)
    found: int | None = rows.values_list("person_id", flat=True).first()
    if found is None:
        raise Invalid(detail=f"Nobody named {name[:80]!r} may work on incidents here.")
    return found


def of(incident_ids: Iterable[UUID]) -> dict[UUID, Aside]:
    """What is set aside still of these incidents."""
    found = Aside.objects.filter(in_force(), incident__in=list(incident_ids))
    return {each.incident_id: each for each in found}


def assigned(incident_ids: Iterable[UUID]) -> dict[UUID, Assignment]:
    """The assignments of these incidents."""
    found = Assignment.objects.filter(incident__in=list(incident_ids))
    return {each.incident_id: each for each in found}


def _locked(incident_id: UUID, by: Person) -> Incident:
    """The incident under its lock, if this person may work on it and it is open."""
    rows = Incident.objects.filter(workspace=by.workspace_id).select_for_update(of=("self",))
    found = rows.filter(id=incident_id).first()
    if found is None:
        raise NotFound(noun="incident")
    takings.refuse_unless_workable(found, by)
    return found


def _write(incident: Incident, rung: str, by: Person, grounds: str, **facts: Any) -> None:
    Step.objects.create(
        incident=incident, rung=rung, taken=True, rule="person",
        facts={"by": by.name, **facts}, grounds=grounds.strip(),
    )  # fmt: skip
