"""After a restore from backup: what may have happened since is suspect until a person looks (R16).

A backup is older than the world. A `side_effect` call that stands in it as waiting or running
may have crossed since; one that settled shortly before may have been corrected since. Open ones
are fenced and go up the ladder as if they had crossed: they are never run again without proof or
a person. Recently settled ones keep their state; an incident `restored` asks somebody to confirm.

Run it before any worker starts. Run twice, it changes nothing more. Each call in a transaction
of its own; locks: call, attempt, incident, then appends.
"""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Q

from ledger import journal
from ledger.journal import Move
from ledger.models import Event, ToolCall
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    Deadline,
    Effect,
    FailurePoint,
    IncidentKind,
    RecoveryClass,
)
from recovery import fences, incidents
from recovery.models import Incident

MAY_HAVE_CROSSED = (
    CallState.RECORDED,
    CallState.SCHEDULED,
    CallState.BACKING_OFF,
    CallState.RUNNING,
    CallState.PARKED,
)


@dataclass(frozen=True, slots=True)
class Marked:
    """How many calls were suspected: open ones, and recently settled ones."""

    open: int
    settled: int


def mark(*, settled_within: timedelta, by_id: str, by_name: str, grounds: str) -> Marked:
    """Mark every open and recently settled `side_effect` call as suspect.

    Recent counts back from the newest event of the ledger, not from now: between backup and
    restore nothing was written. `by_id` and `by_name` are the person's who restored it.
    """
    newest = Event.objects.aggregate(at=Max("at"))["at"]
    if newest is None:
        return Marked(0, 0)
    suspects = ToolCall.objects.filter(recovery_class=RecoveryClass.SIDE_EFFECT).filter(
        Q(settled_at__isnull=True) | Q(settled_at__gte=newest - settled_within)
    )
    known = Incident.objects.filter(kind=IncidentKind.RESTORED, closed_at__isnull=True)
    fresh = suspects.exclude(id__in=known.values("call_id")).order_by("id")
    ids = list(fresh.values_list("id", flat=True))
    said = f"{by_name} restored the ledger from a backup: {grounds}"
    states = [_mark(call_id, by_id=by_id, grounds=said) for call_id in ids]
    return Marked(states.count(True), states.count(False))


@transaction.atomic
def _mark(call_id: UUID, *, by_id: str, grounds: str) -> bool:
    """Mark one call; True if it was open."""
    call = ToolCall.objects.locked(call_id)
    incidents.report(
        call,
        IncidentKind.RESTORED,
        grounds=f"{grounds} The backup may be older than what this call did outside.",
        facts={"stood_at": str(call.state), "effect": str(call.effect)},
    )
    was_open = not call.is_settled
    if call.state in MAY_HAVE_CROSSED:
        _suspect(call, by_id=by_id, grounds=grounds)
    return was_open


def _suspect(call: ToolCall, *, by_id: str, grounds: str) -> None:
    """Fence what ran, and let recovery begin as after a crossing that was lost."""
    fences.take(call, Cause.RESTORED)
    point = FailurePoint.DURING_EXECUTION
    window_s = call.policy.call_policy.armed_window_s
    ToolCall.objects.filter(id=call.id).update(cause=Cause.RESTORED)
    call.cause = Cause.RESTORED
    journal.append(
        [
            Move(
                call=call,
                kind="restored",
                by=Actor.OPERATOR,
                by_id=by_id,
                effect=Effect.POSSIBLE,
                cause=Cause.RESTORED,
                facts={"grounds": grounds, "failure_point": str(point)},
                arm={Deadline.NEXT_STEP: 0.0, Deadline.RECOVERY_WINDOW: window_s},
                columns={"failure_point": str(point), "reason": ""},
            )
        ]
    )
    incidents.open_for(call, cause=Cause.RESTORED, failure_point=point)
