"""Incidents: opened when a call is interrupted, written on at each rung, closed with the call.

Their states: `detected`, `scheduled` while the next step has a date, `attempting` while a probe
is claimed (a trigger sets it with the claim), `exhausted` when it is the operator's turn; closed
as `completed`, `skipped` or `resolved`. Every verb runs in its caller's transaction, under the
call's lock.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.models import Session, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import (
    Cause,
    ExhaustionReason,
    FailurePoint,
    IncidentKind,
    IncidentState,
    ResolutionStage,
)
from recovery import ageing, snapshots, stages
from recovery.decisions import Act, CallSnapshot, Decision
from recovery.models import Incident, Step

STATE_AFTER = {
    Act.WAIT: IncidentState.SCHEDULED,
    Act.PROBE: IncidentState.SCHEDULED,
    Act.ESCALATE: IncidentState.EXHAUSTED,
    Act.ADOPT: IncidentState.SKIPPED,
}
STAYS_OPEN = (Act.WAIT, Act.PROBE, Act.ESCALATE)
OPERATOR = "operator"
"""The rung of what a person decided; the facts of that step say by whom."""


def open_for(call: ToolCall, *, cause: Cause, failure_point: FailurePoint) -> Incident:
    """Open the one recovery incident of a call that has just been interrupted (I30).

    It carries on the root of the call's first interruption, and the steps without progress.
    """
    last = Incident.objects.filter(call=call, kind=IncidentKind.RECOVERY).order_by("number").last()
    return Incident.objects.create(
        workspace_id=call.workspace_id,
        call=call,
        kind=IncidentKind.RECOVERY,
        number=last.number + 1 if last else 1,
        root=(last.root or last) if last else None,
        state=IncidentState.DETECTED,
        cause=cause,
        failure_point=failure_point,
        steps_without_progress=last.steps_without_progress if last else 0,
    )


def open_imported(calls: Sequence[ToolCall], *, grounds: str, facts: Mapping[str, Any]) -> None:
    """Open the recovery incidents of calls that came interrupted with an import, all at once."""
    made = Incident.objects.bulk_create(
        [
            Incident(
                workspace_id=call.workspace_id,
                call=call,
                kind=IncidentKind.RECOVERY,
                state=IncidentState.DETECTED,
                cause=call.cause,
                failure_point=call.failure_point,
                facts=dict(facts),
            )
            for call in calls
        ],
        batch_size=IMPORTED_AT_ONCE,
    )
    Step.objects.bulk_create(
        [
            Step(incident=incident, rung="report", taken=True, rule="imported",
                 policy_version=call.policy.number, facts=dict(facts), grounds=grounds)
            for incident, call in zip(made, calls, strict=True)
        ],
        batch_size=IMPORTED_AT_ONCE,
    )  # fmt: skip


IMPORTED_AT_ONCE = 1000


def report(
    call: ToolCall, kind: IncidentKind, *, grounds: str, facts: Mapping[str, Any]
) -> Incident:
    """Open an incident of another kind, or write on the one that is open; a person looks at it.

    It decides nothing and moves no call. It is reviewed as an ambiguous call is.
    """
    incident = Incident.objects.filter(call=call, kind=kind, closed_at__isnull=True).first()
    if incident is None:
        incident = Incident.objects.create(
            workspace_id=call.workspace_id,
            call=call,
            kind=kind,
            number=Incident.objects.filter(call=call, kind=kind).count() + 1,
            state=IncidentState.DETECTED,
            cause=call.cause,
            failure_point=call.failure_point,
            facts=dict(facts),
        )
        ageing.begin(incident, call.policy.call_policy.review_s)
    Step.objects.create(
        incident=incident,
        rung=str(kind),
        taken=True,
        rule=str(kind),
        policy_version=call.policy.number,
        facts=dict(facts),
        grounds=grounds,
    )
    return incident


def report_of_session(
    session: Session, kind: IncidentKind, *, subject: str, grounds: str, facts: Mapping[str, Any]
) -> Incident:
    """Open an incident on a session, or write on the one of this subject that is open.

    The caller holds the session's lock. It decides nothing; a person looks at it within
    `ageing.SESSION_REVIEW_S`.
    """
    same = {"session": session, "kind": kind, "subject": subject}
    incident = Incident.objects.filter(**same, closed_at__isnull=True).first()
    if incident is None:
        incident = Incident.objects.create(
            **same,
            workspace_id=session.workspace_id,
            number=Incident.objects.filter(session=session, kind=kind).count() + 1,
            state=IncidentState.DETECTED,
            failure_point=FailurePoint.DURING_HANDOFF if kind in OF_HAND_OFFS else "",
            facts=dict(facts),
        )
        ageing.begin(incident, ageing.SESSION_REVIEW_S)
    Step.objects.create(
        incident=incident, rung=str(kind), taken=True, rule=str(kind), facts=dict(facts),
        grounds=grounds,
    )  # fmt: skip
    return incident


OF_HAND_OFFS = frozenset({IncidentKind.COMPACTION_LOSS, IncidentKind.HAND_OFF})
"""What broke at a compaction or a hand-off (semantics, section 1)."""


def found_again(incident: Incident, *, grounds: str) -> None:
    """Close an incident whose reason is gone, on what the machine has seen."""
    Step.objects.create(
        incident=incident, rung=str(incident.kind), taken=True, rule="found_again", grounds=grounds
    )
    close(incident)


def current(call: ToolCall) -> Incident | None:
    """The open recovery incident of a call."""
    return Incident.objects.filter(
        call=call, kind=IncidentKind.RECOVERY, closed_at__isnull=True
    ).first()


def write(call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    """Write a decision on the open incident: the rungs passed over, then the one that answered."""
    incident = current(call)
    if incident is None:
        return
    _write_steps(incident, call, case, decision)
    incident.steps_taken += 1
    incident.steps_without_progress += 1
    incident.state = STATE_AFTER.get(decision.act, IncidentState.COMPLETED)
    if decision.reason is not None and decision.act is Act.ESCALATE:
        incident.reason = ExhaustionReason(decision.reason)
        ageing.begin(incident, case.policy.review_s)
    if decision.act in STAYS_OPEN:
        incident.save()
        return
    incident.save(update_fields=["steps_taken", "steps_without_progress"])
    close(incident, incident.state)


def began(incident: Incident, call: ToolCall, case: CallSnapshot, decision: Decision) -> None:
    """Write down why the incident was opened: its first line."""
    _write_steps(incident, call, case, decision)


def _write_steps(
    incident: Incident, call: ToolCall, case: CallSnapshot, decision: Decision
) -> None:
    """One line for each rung passed over, one for the one that answered, all with their facts."""
    facts = snapshots.facts_of(case)
    same: dict[str, Any] = {
        "incident": incident, "policy_version": call.policy.number, "timer": decision.timer,
        "facts": facts,
    }  # fmt: skip
    passed = [
        Step(rung=each.rung, taken=False, rule=each.rung, grounds=each.grounds, **same)
        for each in decision.passed
    ]
    until = {"until": decision.until.isoformat()} if decision.until else {}
    taken = Step(
        rung=decision.rung or "report",
        taken=True,
        rule=decision.rule,
        grounds=decision.grounds,
        **same | {"facts": facts | until},
    )
    Step.objects.bulk_create([*passed, taken])


def note(
    call: ToolCall,
    *,
    rung: str,
    grounds: str,
    rule: str = "",
    timer: str = "",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write one line on the open recovery incident, where there is one."""
    incident = current(call)
    if incident is not None:
        Step.objects.create(
            incident=incident,
            rung=rung,
            taken=True,
            rule=rule,
            policy_version=call.policy.number,
            facts=dict(facts or {}),
            timer=timer,
            grounds=grounds,
        )


def answered(call: ToolCall) -> None:
    """The probe under way has ended: the next step is dated."""
    Incident.objects.filter(
        call=call, kind=IncidentKind.RECOVERY, state=IncidentState.ATTEMPTING
    ).update(state=IncidentState.SCHEDULED)


def resolved(incident: Incident, *, by: str, grounds: str, rule: str = "resolution") -> None:
    """Close an incident by a person's resolution; `by` is the person's name."""
    Step.objects.create(
        incident=incident,
        rung=OPERATOR,
        taken=True,
        rule=rule,
        policy_version=incident.call.policy.number if incident.call else None,
        facts={"by": by},
        grounds=grounds,
    )
    close(incident, IncidentState.RESOLVED)


def close(incident: Incident, state: IncidentState = IncidentState.COMPLETED) -> None:
    """Close an incident whose call needs it no more; a decision that waited is overtaken."""
    if incident.pending is not None:
        why = f"Recovery closed the incident first ({state})."
        stages.end(incident, ResolutionStage.OVERTAKEN, grounds=why)
    Incident.objects.filter(id=incident.id, closed_at__isnull=True).update(
        state=state, closed_at=ClockTimestamp(), remind_at=None, review_at=None
    )


def handed_back(incident: Incident, *, by: str, grounds: str) -> None:
    """A person's decision gave the machine another turn: the incident stays open."""
    Step.objects.create(
        incident=incident,
        rung=OPERATOR,
        taken=True,
        rule="resolution",
        policy_version=incident.call.policy.number if incident.call else None,
        facts={"by": by},
        grounds=grounds,
    )
    Incident.objects.filter(id=incident.id).update(
        state=IncidentState.SCHEDULED, steps_without_progress=0, remind_at=None, review_at=None
    )
