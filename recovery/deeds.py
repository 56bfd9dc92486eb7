"""Carries out a ruling: the moves in the journal, the result or text, the end of the incident.

The one place where a person's decision moves a call. Runs in its caller's transaction, under
the locks of the call and its incident. A live probe is fenced first, so that its answer cannot
settle the call a second time; whatever it still reports comes too late.
"""

from typing import Any

from ledger import attempts, dispatch, handles, journal, kept_notices, waiting
from ledger.handles import HandleToStore
from ledger.journal import Move
from ledger.models import Attempt, ToolCall
from ledger.vocabulary import Actor, CallState, Cause, ResolutionStage
from recovery import budgets, casefiles, fences, incidents, results, rulings, stages
from recovery.budgets import Allowed
from recovery.label_queries import BACKED
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
    fences.take(call, Cause.OVERTAKEN)  # a probe under way
    if ruling.denies:
        write_unlocks(call)
    fence = ruling.judged.fence if ruling.judged else None
    if ruling.adopts is not None:
        fence = results.adopt(call, ruling.adopts)
    if handle is not None:
        handles.attach(call, call.fence, handle)
    if ruling.state is CallState.BACKING_OFF:
        _account(call, resolution)
    journal.append([_move(call, resolution, ruling, fence)])
    if ruling.denies:
        attempts.disprove(call)
    if ruling.told is not None and ruling.keeps_text:
        kept_notices.keep(call, ruling.told, answer=str(resolution.answer))
    incident.pending = resolution
    stages.end(incident, ResolutionStage.CARRIED_OUT, event_seq=call.seq)
    said = f"{rulings.in_words(resolution.answer, resolution.then)}: {resolution.grounds}"
    end = incidents.handed_back if ruling.state is CallState.INTERRUPTED else incidents.resolved
    end(incident, by=resolution.by_name, grounds=said)
    waiting.tell([call.id])
    if ruling.state in (CallState.PARKED, CallState.INTERRUPTED):
        dispatch.ring_after_commit(["control"], call.id)


def _account(call: ToolCall, resolution: Resolution) -> None:
    """Write a person's repeat on the account: it passes what is spent, and counts (R48)."""
    budgets.reserve(
        call,
        Allowed(rule=str(resolution.answer), grounds=resolution.grounds, person=resolution.by),
    )


def _move(call: ToolCall, resolution: Resolution, ruling: Ruling, fence: int | None) -> Move:
    facts: dict[str, Any] = {
        "resolution": resolution.id.hex,
        "answer": str(resolution.answer),
        "grounds": resolution.grounds,
        "backed": resolution.backing.filter(evidence__kind__in=BACKED).exists(),
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
    return str(person_id)


def write_unlocks(call: ToolCall) -> None:
    """Write when denial unlocked for attempts that ended by their own report (I2)."""
    grace_s = call.policy.call_policy.in_flight_grace_s
    for attempt in Attempt.objects.filter(
        call=call, crossed_at__isnull=False, unlocks_at__isnull=True
    ):
        moment = casefiles.unlocks_at(attempt, grace_s)
        if moment is not None:
            Attempt.objects.filter(id=attempt.id).update(unlocks_at=moment)
