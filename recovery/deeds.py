"""Carries out a ruling: the moves in the journal, the result or text, the end of the incident.

The one place where a person's decision moves a call. Runs in its caller's transaction, under
the locks of the call and its incident. A live probe is fenced first, so that its answer cannot
settle the call a second time; whatever it still reports comes too late.
"""

from typing import Any

from ledger import dispatch, handles, journal, kept_notices, waiting
from ledger.handles import HandleToStore
from ledger.journal import Move
from ledger.models import Attempt, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import Actor, AttemptKind, CallState, Cause, Deadline, ResolutionStage
from recovery import casefiles, incidents, results, stages
from recovery.models import Incident, Resolution
from recovery.rulings import Ruling


def carry_out(
    call: ToolCall,
    incident: Incident,
    resolution: Resolution,
    ruling: Ruling,
    handle: HandleToStore | None = None,
) -> None:
    """Do what the ruling says, and write on the resolution and its incident that it was done."""
    _fence_probe(call)
    if ruling.denies:
        write_unlocks(call)
    fence = ruling.judged.fence if ruling.judged else None
    if ruling.adopts is not None:
        fence = results.adopt(call, ruling.adopts)
    if handle is not None:
        handles.attach(call, call.fence, handle)
    journal.append([_move(call, resolution, ruling, fence)])
    if ruling.denies:
        _disprove(call)
    if ruling.told is not None and ruling.keeps_text:
        kept_notices.keep(call, ruling.told, answer=str(resolution.answer))
    grounds = f"{resolution.by_name}: {resolution.answer} {resolution.then}".strip()
    incidents.note(call, rung="resolution", grounds=f"{grounds}. {resolution.grounds}")
    incident.pending = resolution
    stages.end(incident, ResolutionStage.CARRIED_OUT, event_seq=call.seq)
    incidents.resolved(incident, goes_on=ruling.state is CallState.INTERRUPTED)
    waiting.tell([call.id])
    if ruling.state in (CallState.PARKED, CallState.INTERRUPTED):
        dispatch.ring_after_commit(["control"], call.id)


def _move(call: ToolCall, resolution: Resolution, ruling: Ruling, fence: int | None) -> Move:
    facts: dict[str, Any] = {
        "resolution": resolution.id.hex,
        "answer": str(resolution.answer),
        "grounds": resolution.grounds,
    }
    if ruling.adopts is not None:
        facts["evidence"] = ruling.adopts.hex
    return Move(
        call=call,
        kind=ruling.event,
        by=Actor.OPERATOR,
        by_id=actor_id(resolution.by_id),
        to=ruling.state,
        effect=ruling.effect,
        fence=call.fence if ruling.event == "probe_again" else fence,
        cause=ruling.cause,
        facts=facts,
        arm=dict(ruling.arm),
        columns=dict(ruling.columns),
    )


def actor_id(person_id: int) -> str:
    """How an event names a person: names may change, the number does not."""
    return f"person:{person_id}"


def _fence_probe(call: ToolCall) -> None:
    """Take the fence of a probe under way: the decision does not wait for it."""
    probe = Attempt.objects.filter(call=call, kind=AttemptKind.PROBE, ended_at__isnull=True).first()
    if probe is None:
        return
    Attempt.objects.filter(id=probe.id).update(
        ended_at=ClockTimestamp(), fence_lost_at=ClockTimestamp(), outcome="lost"
    )
    journal.append(
        [
            Move(
                call=call,
                kind="fence_lost",
                by=Actor.RECOVERY,
                fence=probe.fence,
                cause=Cause.WORKER_LOST,
                facts={"grounds": "A person decided."},
                arm={Deadline.HEARTBEAT: None},
            )
        ]
    )


def write_unlocks(call: ToolCall) -> None:
    """Write when denial unlocked for attempts that ended by their own report (I2)."""
    grace_s = call.policy.call_policy.in_flight_grace_s
    for attempt in Attempt.objects.filter(
        call=call, crossed_at__isnull=False, unlocks_at__isnull=True
    ):
        moment = casefiles.unlocks_at(attempt, grace_s)
        if moment is not None:
            Attempt.objects.filter(id=attempt.id).update(unlocks_at=moment)


def _disprove(call: ToolCall) -> None:
    Attempt.objects.filter(
        call=call, kind=AttemptKind.RUN, crossed_at__isnull=False, disproved_at__isnull=True
    ).update(disproved_at=ClockTimestamp())
