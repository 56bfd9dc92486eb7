"""Incidents: opened when a call is interrupted, written on at each rung, closed with the call.

Every verb runs in its caller's transaction, under the call's lock.
"""

from ledger.models import ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import (
    Cause,
    ExhaustionReason,
    FailurePoint,
    IncidentKind,
    IncidentState,
    ResolutionStage,
)
from recovery import stages
from recovery.decisions import Act, Decision
from recovery.models import Incident, Step

STATE_AFTER = {
    Act.WAIT: IncidentState.SCHEDULED,
    Act.PROBE: IncidentState.SCHEDULED,
    Act.ESCALATE: IncidentState.EXHAUSTED,
    Act.ADOPT: IncidentState.SKIPPED,
}


def open_for(call: ToolCall, *, cause: Cause, failure_point: FailurePoint) -> Incident:
    """Open the one recovery incident of a call that has just been interrupted (I30)."""
    number = Incident.objects.filter(call=call, kind=IncidentKind.RECOVERY).count() + 1
    return Incident.objects.create(
        workspace_id=call.workspace_id,
        call=call,
        kind=IncidentKind.RECOVERY,
        number=number,
        state=IncidentState.DETECTED,
        cause=cause,
        failure_point=failure_point,
    )


def current(call: ToolCall) -> Incident | None:
    """The open recovery incident of a call."""
    return Incident.objects.filter(
        call=call, kind=IncidentKind.RECOVERY, closed_at__isnull=True
    ).first()


def write(call: ToolCall, decision: Decision) -> None:
    """Write a decision on the open incident: the rungs passed over, then the one that answered."""
    incident = current(call)
    if incident is None:
        return
    Step.objects.bulk_create(
        [
            *(
                Step(incident=incident, rung=each.rung, taken=False, grounds=each.grounds)
                for each in decision.passed
            ),
            Step(
                incident=incident,
                rung=decision.rung or "report",
                taken=True,
                rule=decision.rule,
                grounds=decision.grounds,
            ),
        ]
    )
    incident.steps_taken += 1
    incident.state = STATE_AFTER.get(decision.act, IncidentState.COMPLETED)
    if decision.reason is not None and decision.act is Act.ESCALATE:
        incident.reason = ExhaustionReason(decision.reason)
    incident.save()
    if decision.act not in (Act.WAIT, Act.PROBE, Act.ESCALATE):
        close(incident)


def note(call: ToolCall, *, rung: str, grounds: str) -> None:
    """Write one line on the open incident, where there is one."""
    incident = current(call)
    if incident is not None:
        Step.objects.create(incident=incident, rung=rung, taken=True, grounds=grounds)


def close(incident: Incident) -> None:
    """Close an incident whose call needs it no more; a decision that waited is overtaken."""
    if incident.pending is not None:
        why = f"Recovery closed the incident first ({incident.state})."
        stages.end(incident, ResolutionStage.OVERTAKEN, grounds=why)
    Incident.objects.filter(id=incident.id, closed_at__isnull=True).update(
        closed_at=ClockTimestamp()
    )


def resolved(incident: Incident, *, goes_on: bool = False) -> None:
    """A person's decision was carried out: the end, or (`goes_on`) the machine's turn again."""
    state = IncidentState.SCHEDULED if goes_on else IncidentState.RESOLVED
    Incident.objects.filter(id=incident.id).update(state=state)
    if not goes_on:
        close(incident)
