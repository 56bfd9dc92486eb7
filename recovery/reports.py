"""What a worker's report means when it is no plain success: facts in, decision out, in one commit.

Workers reach this through `settings.REPORT`, since executors know nothing of recovery.
"""

from datetime import timedelta
from typing import Any

from ledger import attempts, evidence, handles, journal, polls, strictjson
from ledger.claims import Claim
from ledger.handles import HandleToStore
from ledger.models import Attempt, Evidence, Handle, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    AttemptKind,
    Cause,
    Effect,
    IncidentKind,
    Meaning,
    ProbeFinding,
    ProofOfDeath,
    spoken,
)
from recovery import acts, decisions, incidents, snapshots

KILLERS = (Cause.WORKER_LOST, Cause.RESOURCE_KILLED)


@repeatable
def ended(
    *,
    claim: Claim,
    cause: Cause,
    means: Meaning,
    message: str = "",
    error_type: str = "",
    retry_after_s: float | None = None,
    stored: strictjson.Stored | None = None,
    media_type: str = "",
    proof: ProofOfDeath = ProofOfDeath.REPORTED,
) -> None:
    """Take the report of an attempt that did not succeed plainly, and decide what follows.

    `proof` says why the attempt cannot act any more. Raises FenceLost: file the report as
    evidence instead. The same report again changes nothing.
    """
    held = attempts.hold_or_repeat(
        call_id=claim.call_id, fence=claim.fence, outcome="ended", cause=cause, means=means
    )
    if held is None:
        return
    call, attempt = held.call, held.attempt
    attempts.end(
        attempt, outcome="ended", cause=cause, means=means, error_type=error_type,
        error_message=message,
    )  # fmt: skip
    prove_dead(attempt, proof, claim.policy.in_flight_grace_s)
    if stored is not None:
        evidence.keep(
            call, kind="tool_error", attempt_id=attempt.id, stored=stored,
            media_type=media_type, message=message,
        )  # fmt: skip
    if claim.kind is AttemptKind.POLL and _poll_goes_on(call, cause, means):
        return
    effect = _effect_after(call, attempt, claim.kind, means)
    note_cause(call, cause, message)
    case, now = snapshots.of(call, effect=effect, retry_after_s=retry_after_s)
    acts.carry_out(call, case, decisions.after_report(case, means, now=now))


def _effect_after(
    call: ToolCall, attempt: Attempt, kind: AttemptKind, means: Meaning
) -> Effect | None:
    """What the report proves of the effect; a poll proves one only where the outside refused."""
    if kind is AttemptKind.RUN:
        return snapshots.effect_after(call, attempt, means)
    if means is not Meaning.REFUSED or call.effect is not Effect.POSSIBLE:
        return None
    # The refused work is that of the last crossing; one before it may have had its effect.
    return None if snapshots.of(call)[0].earlier_crossing else Effect.DID_NOT_HAPPEN


def prove_dead(attempt: Attempt, proof: ProofOfDeath, in_flight_grace_s: float) -> None:
    """Write why the attempt cannot act any more, and when denial of its effect unlocks."""
    grace = timedelta(seconds=in_flight_grace_s if attempt.crossed_at else 0)
    Attempt.objects.filter(id=attempt.id).update(
        dead_proof=proof, dead_at=ClockTimestamp(), unlocks_at=ClockTimestamp() + grace
    )


def _poll_goes_on(call: ToolCall, cause: Cause, means: Meaning) -> bool:
    """A poll without news is dated again; a lost handle or a known end wants a decision."""
    if cause is Cause.VANISHED:
        Handle.objects.filter(call=call, lost_at__isnull=True).update(lost_at=ClockTimestamp())
        return False
    if means in (Meaning.KNOWN, Meaning.REFUSED):
        Handle.objects.filter(call=call, ended_at__isnull=True).update(ended_at=ClockTimestamp())
        return False
    handle = handles.current_handle(call.id)
    asked = handle.polls + 1 if handle else 1
    if handle is not None:
        Handle.objects.filter(id=handle.id).update(polls=asked)
    next_s = handles.poll_wait_s(handle.poll_after_s if handle else None, asked)
    journal.append([polls.poll_ended(call, by=Actor.WORKER, next_s=next_s, cause=cause)])
    return True


def note_cause(call: ToolCall, cause: Cause, message: str) -> None:
    call.cause = cause
    changes: dict[str, Any] = {"cause": str(cause), "error": message[:8000]}
    if cause in KILLERS:
        call.workers_lost += 1
        changes["workers_lost"] = call.workers_lost
    ToolCall.objects.filter(id=call.id).update(**changes)


@repeatable
def probed(
    *,
    claim: Claim,
    finding: ProbeFinding,
    message: str = "",
    stored: strictjson.Stored | None = None,
    media_type: str = "",
    handle: HandleToStore | None = None,
    effects: int = 1,
) -> None:
    """Keep what a probe found as evidence, and let the next step be taken at once.

    A handle that it found is stored, so that the call is resumed by it. `effects` is how many
    the outside shows for this call; more than one opens an incident `repeated_send`. The same
    answer again changes nothing. Raises FenceLost.
    """
    held = attempts.hold_or_repeat(
        call_id=claim.call_id, fence=claim.fence, outcome="probed", finding=finding
    )
    if held is None:
        return
    call, attempt = held.call, held.attempt
    if handle is not None:
        handles.remember_handle(call, claim.fence, handle)
    attempts.end(attempt, outcome="probed", finding=finding, error_message=message)
    body = stored or strictjson.storable({"finding": str(finding)})
    kept, _ = evidence.keep(
        call,
        kind="probe",
        attempt_id=attempt.id,
        stored=body,
        media_type=media_type,
        finding=finding,
        message=message,
    )
    said = spoken(finding)
    grounds = f"The probe answered: {said}. {message}".strip()
    told = {"finding": str(finding), "evidence": kept.id.hex}
    incidents.note(call, rung="probe", grounds=grounds, rule="probe", facts=told)
    incidents.answered(call)
    if effects > 1:
        _several_effects(call, effects, kept)
    journal.append(
        [
            polls.probe_ended(
                call,
                by=Actor.WORKER,
                finding=finding,
                fence=claim.fence,
                evidence=kept.id.hex,
            )
        ]
    )


def _several_effects(call: ToolCall, effects: int, kept: Evidence) -> None:
    """The outside shows more than one effect of one call: somebody must know (R71)."""
    incidents.report(
        call,
        IncidentKind.REPEATED_SEND,
        grounds=f"The outside shows {effects} effects of this one call. Nothing was undone.",
        facts={"effects": effects, "evidence": kept.id.hex},
    )
