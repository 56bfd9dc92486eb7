"""What it means when a deadline passes, by state: data below, one small act each.

Every act runs in the transaction of the sweep that found the call due, under the call's lock,
and looks again at which deadlines have passed (semantics, section 3).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import connection

from ledger import dispatch, holds, journal
from ledger.journal import Move
from ledger.models import ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.settlements import BEFORE_A_BOUNDARY
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    Deadline,
    ExhaustionReason,
)
from recovery import acts, ageing, decisions, incidents, losses, progress, snapshots
from recovery.decisions import Act, CallSnapshot, Decision

NOT_OURS = {
    # A due poll or probe waits for a worker, who is rung for; the bounds behind it still hold.
    Deadline.NEXT_POLL: "heartbeat_at IS NULL",
    Deadline.NEXT_STEP: "heartbeat_at IS NULL AND reason = 'probe_due'",
    # An interrupted call is bounded by its recovery window; its own time only forbids a repeat.
    Deadline.SCHEDULE_TO_CLOSE: "state = 'interrupted'",
    # It stands still while a hold is in force (semantics, 19.3).
    Deadline.SCHEDULE_TO_START: "held_at >= published_at",
}
"""Deadlines that are not fired by a sweep, and when."""


OURS = ", ".join(
    f"CASE WHEN {NOT_OURS[deadline]} THEN NULL ELSE {deadline}_at END"
    if deadline in NOT_OURS
    else f"{deadline}_at"
    for deadline in Deadline
)


def fire(call: ToolCall) -> bool:
    """Act on the deadlines of one locked call that have passed. False if none has, seen again."""
    for deadline in _passed(call):
        act = FIRED.get((call.state, deadline))
        if act is not None and act(call):
            return True
    return False


def _passed(call: ToolCall) -> Iterator[Deadline]:
    columns = ", ".join(f"{deadline}_at <= clock_timestamp()" for deadline in Deadline)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM ledger_toolcall WHERE id = %s", [call.id])  # noqa: S608 names of our own
        flags = dict(zip(Deadline, cursor.fetchone(), strict=True))
    # The bound of the whole call is looked at first, then that of the attempt, then the steps;
    # but a result in hand comes before every bound (semantics, section 6).
    first = (Deadline.NEXT_STEP,) if call.state in BEFORE_A_BOUNDARY else ()
    order = (
        *first,
        Deadline.SCHEDULE_TO_CLOSE,
        Deadline.START_TO_CLOSE,
        Deadline.HEARTBEAT,
        Deadline.RECOVERY_WINDOW,
    )
    for deadline in (*order, *(each for each in Deadline if each not in order)):
        if flags[deadline]:
            yield deadline


def _expire(deadline: Deadline) -> Callable[[ToolCall], bool]:
    """Settle a call at rest whose deadline has passed; with an open crossing recovery goes on."""

    name = deadline.replace("_", "-").capitalize()

    def act(call: ToolCall) -> bool:
        case, now = snapshots.of(call)
        ends = case.no_effect or case.rule.ends_open
        if not ends:
            call.cause = call.cause or Cause.HANG
            decision = Decision(
                act=Act.INTERRUPT,
                rule=case.rule.code,
                grounds=f"{name} ended while an effect is possible.",
                timer=deadline,
            )
        else:
            decision = Decision(
                act=Act.EXPIRE,
                rule=f"{deadline}_over",
                deadline=deadline,
                grounds=f"{name} ended.",
                effect=call.effect,
                timer=deadline,
            )
        acts.carry_out(call, case, decision)
        return True

    return act


def _schedule_to_start(call: ToolCall) -> bool:
    policy = call.policy.call_policy
    if policy.schedule_to_start_reschedules:
        _publish(call, grounds="The policy reschedules within schedule-to-close.")
        return True
    return _expire(Deadline.SCHEDULE_TO_START)(call)


def _publish(call: ToolCall, *, grounds: str) -> bool:
    policy = call.policy.call_policy
    journal.append(
        [
            Move(
                call=call,
                kind="scheduled",
                by=Actor.RECOVERY,
                facts={"attempt": call.attempts_used + 1, "grounds": grounds},
                arm={Deadline.SCHEDULE_TO_START: policy.timeouts.schedule_to_start_s},
                columns={"ring_at": dispatch.RING_AGAIN_S[0], "rings": 0},
            )
        ]
    )
    dispatch.ring_after_commit([call.queue], call.id)
    return True


def _attempt_over(cause: Cause) -> Callable[[ToolCall], bool]:
    return lambda call: losses.lose(call, cause)


def _parked_too_long(call: ToolCall) -> bool:
    """Schedule-to-close of a parked call: take a poll's fence, then expire or go up the ladder."""
    losses.lose(call, Cause.HANG)
    return _expire(Deadline.SCHEDULE_TO_CLOSE)(call)


def step(call: ToolCall) -> bool:
    """Take recovery's next step for an interrupted call: climb the ladder once."""
    progress.look(call)
    case, now = snapshots.of(call)
    if _has_lost_its_lease(call, case, now):
        return True
    decision = replace(decisions.decide(case, now=now), timer=Deadline.NEXT_STEP)
    acts.carry_out(call, case, decision)
    return True


def _has_lost_its_lease(call: ToolCall, case: CallSnapshot, now: datetime) -> bool:
    """Take the fence of an attempt whose lease has ended; what it leaves is decided after that.

    The lease of a probe ends an instant before the call's own date says so. Whoever decided in
    between would leave the attempt open, and no other could ever be claimed.
    """
    has_ended = case.lease_until is not None and case.lease_until <= now
    return has_ended and losses.lose(call, Cause.WORKER_LOST)


def _window_over(call: ToolCall) -> bool:
    """The recovery window has ended: no further probe, the rest of the ladder decides now.

    New evidence begins the window anew (semantics, section 7).
    """
    if progress.look(call):
        return step(call)
    case, now = snapshots.of(call)
    if case.lease_until is not None:
        return _has_lost_its_lease(call, case, now)
    over = decisions.stopped(
        case,
        ExhaustionReason.NO_PROGRESS_TIMEOUT,
        "The recovery window ended before there was proof.",
    )
    decision = replace(decisions.decide(over, now=now), timer=Deadline.RECOVERY_WINDOW)
    acts.carry_out(call, over, decision)
    return True


def _review(call: ToolCall) -> bool:
    """A review deadline asks a wider circle and is armed again; it decides nothing (R53)."""
    incident = incidents.current(call)
    if incident is None:
        return False
    ageing.deadline(call, incident)
    return True


def _late_result_first(call: ToolCall) -> bool:
    """A late result came while a newer attempt waits, or runs before its boundary: adopt it."""
    case, now = snapshots.of(call)
    decision = decisions.decide(replace(case, lease_until=None), now=now)
    if decision.act is not Act.ADOPT:
        ToolCall.objects.filter(id=call.id).update(next_step_at=None)
    else:
        acts.carry_out(call, case, decision)
    return True


def _news(call: ToolCall) -> bool:
    """A probe or a late result came while an operator was asked: only proof ends `ambiguous`."""
    case, now = snapshots.of(call)
    if _has_lost_its_lease(call, case, now):
        return True
    probe = case.policy.probe
    decision = replace(decisions.decide(case, now=now), timer=Deadline.NEXT_STEP)
    if decision.act in (Act.PROVED, Act.ADOPT):
        acts.carry_out(call, case, decision)
    elif probe is not None and case.has_probe:
        ToolCall.objects.filter(id=call.id).update(
            next_step_at=ClockTimestamp() + timedelta(seconds=probe.interval_s), reason="probe_due"
        )
    else:
        ToolCall.objects.filter(id=call.id).update(next_step_at=None)
    return True


S, D = CallState, Deadline


FIRED: dict[tuple[CallState, Deadline], Callable[[ToolCall], bool]] = {
    (S.RECORDED, D.SCHEDULE_TO_CLOSE): _expire(D.SCHEDULE_TO_CLOSE),
    (S.SCHEDULED, D.SCHEDULE_TO_CLOSE): _expire(D.SCHEDULE_TO_CLOSE),
    (S.SCHEDULED, D.SCHEDULE_TO_START): _schedule_to_start,
    (S.BACKING_OFF, D.SCHEDULE_TO_CLOSE): _expire(D.SCHEDULE_TO_CLOSE),
    (S.BACKING_OFF, D.BACKOFF): lambda call: _publish(call, grounds="The backoff has ended."),
    (S.RUNNING, D.SCHEDULE_TO_CLOSE): _attempt_over(Cause.HANG),
    (S.RUNNING, D.START_TO_CLOSE): _attempt_over(Cause.HANG),
    (S.RUNNING, D.HEARTBEAT): _attempt_over(Cause.WORKER_LOST),
    (S.PARKED, D.SCHEDULE_TO_CLOSE): _parked_too_long,
    (S.PARKED, D.HEARTBEAT): _attempt_over(Cause.WORKER_LOST),
    (S.INTERRUPTED, D.HEARTBEAT): _attempt_over(Cause.WORKER_LOST),
    (S.INTERRUPTED, D.RECOVERY_WINDOW): _window_over,
    (S.INTERRUPTED, D.NEXT_STEP): step,
    (S.PAUSED, D.INTERRUPT_EXPIRY): holds.expire,
    (S.AMBIGUOUS, D.HEARTBEAT): _attempt_over(Cause.WORKER_LOST),
    (S.AMBIGUOUS, D.NEXT_STEP): _news,
    (S.AMBIGUOUS, D.REVIEW): _review,
    **{(state, D.NEXT_STEP): _late_result_first for state in BEFORE_A_BOUNDARY},
}
"""Which deadline means what, by state (semantics, section 3)."""
