"""Reads the rows of one locked call into the frozen facts that `decisions.py` judges."""

from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from ledger import clock, handles
from ledger.models import Attempt, Event, Evidence, Handle, Session, ToolCall
from ledger.vocabulary import (
    AttemptKind,
    CallState,
    Cause,
    Effect,
    IncidentKind,
    Meaning,
    ProbeFinding,
    RecoveryClass,
)
from recovery.decisions import STABLE_LEASES, CallSnapshot
from recovery.models import Incident

DISPROVED = (Meaning.NOT_BEGUN, Meaning.REFUSED)


def of(
    call: ToolCall, *, effect: Effect | None = None, retry_after_s: float | None = None
) -> tuple[CallSnapshot, datetime]:
    """The facts about a call, and the database's instant at which they were read.

    `effect` replaces the call's where a report has just proved more. The caller holds the
    call's lock.
    """
    now = clock.now()
    tries = list(Attempt.objects.filter(call=call).order_by("fence"))
    runs = [each for each in tries if each.kind is AttemptKind.RUN and each.outcome != "released"]
    crossed = [each for each in runs if is_undisproved(each)]
    since = max(crossed[-1].fence if crossed else 0, _asked_again_at(call))
    probes = [each for each in tries if each.kind is AttemptKind.PROBE and each.fence > since]
    live = next((each for each in tries if each.ended_at is None), None)
    policy = call.policy.call_policy
    last = crossed[-1] if crossed else None
    probed = [each for each in probes if each.ended_at is not None and each.finding]
    return CallSnapshot(
        recovery_class=RecoveryClass(call.recovery_class),
        policy=policy,
        effect=effect or call.effect,
        cause=call.cause or None,
        attempts_used=call.attempts_used,
        attempts_allowed=call.attempts_allowed,
        workers_lost=call.workers_lost,
        repeats_not_begun=max(0, sum(1 for each in runs if not each.crossed_at) - 1),
        earlier_crossing=any(each is not runs[-1] for each in crossed),
        late_result=_late_result(call, runs),
        lease_until=live.lease_until if live else None,
        has_handle=handles.current_handle(call.id) is not None,
        handle_was_lost=Handle.objects.filter(call=call, lost_at__isnull=False).exists(),
        repeat_forbidden=_why_no_repeat(call, runs),
        has_probe=call.tool_version.probes and policy.probe is not None,
        probes_used=len(probes),
        last_probe_at=probes[-1].claimed_at if probes else None,
        finding=_finding(probed),
        finding_counts=_counts(probed[-1] if probed else None, last, policy.probe is not None
                               and policy.probe.authoritative),
        unlocks_at=last.unlocks_at if last else None,
        schedule_to_close_at=call.schedule_to_close_at,
        recovery_window_at=call.recovery_window_at,
        retry_after_s=retry_after_s,
        cancel_requested=call.cancel_requested_at is not None,
        steps_without_progress=_steps_without_progress(call),
        stable_by=_stable_by(last, policy.timeouts.heartbeat_s),
        stopped=_is_stopped(call),
    ), now  # fmt: skip


def _is_stopped(call: ToolCall) -> bool:
    session_id = call.session_id
    return (
        session_id is not None
        and Session.objects.filter(id=session_id, stopped_at__isnull=False).exists()
    )


def _asked_again_at(call: ToolCall) -> int:
    """The fence at which a person let the probes begin anew; their cap counts from there."""
    asked = Event.objects.filter(call=call, kind="probe_again").order_by("-seq").first()
    return asked.fence or 0 if asked else 0


def facts_of(case: CallSnapshot) -> dict[str, Any]:
    """What a decision looked at, as JSON: every fact that is not empty; instants in RFC 3339."""
    told: dict[str, Any] = {}
    for each in fields(case):
        value = getattr(case, each.name)
        if each.name != "policy" and value not in (None, False, "", 0):
            told[each.name] = value if isinstance(value, int | float) else _shown(value)
    return told


def _shown(value: Any) -> str:
    return str(value.isoformat()) if isinstance(value, datetime) else str(value)


def _steps_without_progress(call: ToolCall) -> int:
    if call.state not in (CallState.INTERRUPTED, CallState.AMBIGUOUS):
        return 0
    found = (
        Incident.objects.filter(call=call, kind=IncidentKind.RECOVERY, closed_at__isnull=True)
        .values_list("steps_without_progress", flat=True)
        .first()
    )
    return found or 0


def _stable_by(last: Attempt | None, lease_s: float) -> datetime | None:
    """When a lost attempt that nobody has proven dead is given up."""
    if last is None or last.dead_proof or last.fence_lost_at is None:
        return None
    lost_at: datetime = last.fence_lost_at
    return lost_at + timedelta(seconds=STABLE_LEASES * lease_s)


def _finding(probed: list[Attempt]) -> ProbeFinding | None:
    """The last probe's answer; a positive one always counts, whatever was asked after it."""
    found = [ProbeFinding(each.finding) for each in probed]
    if ProbeFinding.HAPPENED in found:
        return ProbeFinding.HAPPENED
    return found[-1] if found else None


def _why_no_repeat(call: ToolCall, runs: list[Attempt]) -> str:
    """Semantics, section 3: two ways to lose a call after which its class rule is silent."""
    published, claimed = call.published_at, runs[-1].claimed_at if runs else None
    if published is not None and claimed is not None and published > claimed:
        return "No worker took the last attempt in time."
    if call.cause is Cause.UNRECORDED and not runs:
        return "It was imported: whoever ran it did not use this ledger's key."
    lost = Handle.objects.filter(call=call, lost_at__isnull=False).exists()
    if lost and call.recovery_class == RecoveryClass.PROVIDER_AUTH:
        return "The sign-in can no longer be followed."
    return ""


def is_undisproved(attempt: Attempt) -> bool:
    """Whether the attempt crossed and nothing has proved yet that it had no effect."""
    crossed, disproved = attempt.crossed_at, attempt.disproved_at
    return crossed is not None and disproved is None and attempt.means not in DISPROVED


def _late_result(call: ToolCall, runs: list[Attempt]) -> UUID | None:
    """The late result of the only attempt that ever crossed, even if it was ruled out since."""
    crossed = [each for each in runs if each.crossed_at and each.means not in DISPROVED]
    if len(crossed) != 1:
        return None
    return (
        Evidence.objects.filter(call=call, kind="late_result", adoptable=True, attempt=crossed[0])
        .values_list("id", flat=True)
        .first()
    )


def _counts(probe: Attempt | None, last: Attempt | None, authoritative: bool) -> bool:
    """A negative answer counts only after denial unlocked (I2): asked before, it proves nothing."""
    if probe is None or last is None or not authoritative or last.unlocks_at is None:
        return False
    return bool(probe.claimed_at >= last.unlocks_at)


def effect_after(call: ToolCall, attempt: Attempt, means: Meaning) -> Effect:
    """The call's effect once this attempt has reported: the strongest over its attempts."""
    if call.recovery_class == RecoveryClass.READ_ONLY:
        return Effect.NONE
    earlier = Attempt.objects.filter(
        call=call, crossed_at__isnull=False, disproved_at__isnull=True, fence__lt=attempt.fence
    ).exclude(means__in=DISPROVED)
    if earlier.exists() or (attempt.crossed_at and means not in DISPROVED):
        return Effect.POSSIBLE
    if attempt.crossed_at or call.effect is Effect.DID_NOT_HAPPEN:
        return Effect.DID_NOT_HAPPEN
    return Effect.DID_NOT_HAPPEN if means is Meaning.REFUSED else Effect.NOT_BEGUN
