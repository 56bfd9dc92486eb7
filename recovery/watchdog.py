"""The watchdog: one loop of bounded passes over what is due, safe to run twice.

It rings again what no worker claimed, fires deadlines, finds dead and silent workers, proves
lost attempts dead, and lets recovery take its next steps. Each row is handled in its own
transaction, locked with SKIP LOCKED and looked at again, so that two watchdogs, or a worker in
the middle of its report, cost nothing but a skipped row.

Its reaction time does not depend on the broker or on a busy queue.
"""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction

from ledger import dispatch, journal, workers
from ledger.journal import Move
from ledger.models import Attempt, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.submits import RING_AGAIN_S
from ledger.vocabulary import (
    Actor,
    AttemptKind,
    CallState,
    Cause,
    Deadline,
    Effect,
    FenceKind,
    Meaning,
    ProofOfDeath,
)
from recovery import acts, decisions, incidents, reports, snapshots
from recovery.decisions import Act, Decision
from recovery.models import Sweep

BITE = 200
LATE_S = 5.0

log = logging.getLogger(__name__)


def watch(*, period_s: float, stop: Callable[[float], bool]) -> None:
    """Sweep until `stop(seconds)` says so; a database that is away is waited for.

    After a gap of more than five seconds (a slept laptop, a stopped process, a database that
    was away) every running attempt is given one lease before any loss is declared (R35).
    """
    last = time.monotonic()
    while True:
        began = time.monotonic()
        try:
            # A server that restarted since the last sweep must not cost this one.
            connection.close_if_unusable_or_obsolete()
            if began - last > LATE_S:
                grant_one_lease()
            sweep()
            last = time.monotonic()
        except (DatabaseError, InterfaceError) as error:
            log.warning("watchdog.database_away error=%s", type(error).__name__)
            connection.close()
        if stop(max(0.05, period_s - (time.monotonic() - began))):
            return


def sweep(limit: int = BITE) -> int:
    """Make one pass of everything; return how many rows were acted on."""
    Sweep.objects.update_or_create(
        name=f"{socket.gethostname()}-{os.getpid()}", defaults={"swept_at": ClockTimestamp()}
    )
    return sum(
        (
            find_dead_workers(limit),
            fire_due(limit),
            prove_dead(limit),
            ring_again(limit),
        )
    )


def grant_one_lease() -> int:
    """Give every running attempt one lease, after a sweep that came late."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "WITH late AS (UPDATE ledger_attempt a SET lease_until = greatest(a.lease_until, "
            "clock_timestamp() + (p.document->'timeouts'->>'heartbeat_s')::float8 "
            "* interval '1 second') FROM ledger_toolcall c JOIN ledger_policy p "
            "ON p.id = c.policy_id WHERE c.id = a.call_id AND a.ended_at IS NULL "
            "RETURNING a.call_id, a.lease_until) UPDATE ledger_toolcall c "
            "SET heartbeat_at = late.lease_until FROM late WHERE c.id = late.call_id "
            "AND c.heartbeat_at IS NOT NULL"
        )
        return int(cursor.rowcount)


def _each(call_ids: list[UUID], act: Callable[[ToolCall], bool]) -> int:
    """Act on each call in its own transaction; skip what somebody else holds."""
    acted = 0
    for call_id in call_ids:
        try:
            with transaction.atomic():
                call = (
                    ToolCall.objects.select_for_update(skip_locked=True, of=("self",))
                    .filter(id=call_id, settled_at__isnull=True)
                    .first()
                )
                acted += bool(call is not None and act(call))
        except Exception:
            if connection.connection is None or connection.connection.closed:
                raise
            # One row that cannot be moved must not stop the sweep of all others.
            log.exception("watchdog.row_failed call=%s", call_id)
    return acted


def _ids(sql: str, parameters: list[Any]) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [row[0] for row in cursor.fetchall()]


# Unclaimed attempts, polls and probes: ring again


def ring_again(limit: int = BITE) -> int:
    """Ring for calls that no worker claimed within 2, 5, 15, 60 s, and for due polls and probes."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_toolcall c SET rings = rings + 1, ring_at = clock_timestamp() + "
            "(%s::float8[])[least(rings + 2, 4)] * interval '1 second' "
            "WHERE id IN (SELECT id FROM ledger_toolcall WHERE state = 'scheduled' "
            "AND ring_at <= clock_timestamp() ORDER BY ring_at LIMIT %s "
            "FOR UPDATE SKIP LOCKED) RETURNING queue",
            [list(RING_AGAIN_S), limit],
        )
        queues = {row[0] for row in cursor.fetchall()}
        cursor.execute(
            "SELECT EXISTS (SELECT FROM ledger_toolcall WHERE settled_at IS NULL "
            "AND due_at <= clock_timestamp() AND heartbeat_at IS NULL AND (state = 'parked' "
            "AND next_poll_at <= clock_timestamp() OR reason = 'probe_due' "
            "AND next_step_at <= clock_timestamp()))"
        )
        if cursor.fetchone()[0]:
            queues.add("control")
    if queues:
        dispatch.ring(sorted(queues), again=True)
    return len(queues)


# Dead workers


def find_dead_workers(limit: int = BITE) -> int:
    """Take the fences of workers whose advisory lock is free: they are gone."""
    dead = workers.dead()
    if not dead:
        return 0
    lost = _ids(
        "SELECT call_id FROM ledger_attempt WHERE worker_id = ANY(%s) AND ended_at IS NULL "
        "ORDER BY call_id LIMIT %s",
        [dead, limit],
    )
    acted = _each(lost, lambda call: lose(call, Cause.WORKER_LOST, of_workers=dead))
    if len(lost) < limit:
        workers.bury(dead)
    return acted


def lose(call: ToolCall, cause: Cause, *, of_workers: list[UUID] | None = None) -> bool:
    """Take the fence of a call's live attempt, then decide. False if there is none any more.

    The fence is taken before anything is decided (R31): from here on the attempt can neither
    cross nor settle, whatever it still does.
    """
    attempt = Attempt.objects.filter(call=call, ended_at__isnull=True).first()
    if attempt is None or (of_workers is not None and attempt.worker_id not in of_workers):
        return False
    means = Meaning.UNKNOWN if attempt.crossed_at else Meaning.NOT_BEGUN
    Attempt.objects.filter(id=attempt.id).update(
        ended_at=ClockTimestamp(),
        fence_lost_at=ClockTimestamp(),
        outcome="lost",
        cause=cause,
        means=means,
    )
    journal.append(
        [
            Move(
                call=call,
                kind="fence_lost",
                by=Actor.WATCHDOG,
                fence=attempt.fence,
                cause=cause,
                arm={Deadline.HEARTBEAT: None, Deadline.START_TO_CLOSE: None},
            )
        ]
    )
    _after_loss[attempt.kind](call, attempt, cause, means)
    return True


def _lost_run(call: ToolCall, attempt: Attempt, cause: Cause, means: Meaning) -> None:
    reports.note_cause(call, cause, "")
    effect = snapshots.effect_after(call, attempt, means)
    case, now = snapshots.of(call, effect=effect)
    # No attempt holds the call any more, so there is no report to wait for.
    acts.carry_out(call, case, decisions.after_report(case, means, now=now))


def _lost_poll(call: ToolCall, attempt: Attempt, cause: Cause, means: Meaning) -> None:
    journal.append(
        [
            Move(
                call=call,
                kind="poll_ended",
                by=Actor.WATCHDOG,
                cause=cause,
                arm={Deadline.NEXT_POLL: 0.0, Deadline.HEARTBEAT: None},
            )
        ]
    )
    dispatch.ring_after_commit(["control"], call.id)


def _lost_probe(call: ToolCall, attempt: Attempt, cause: Cause, means: Meaning) -> None:
    incidents.note(call, rung="probe", grounds=f"The probe brought no answer: {cause}.")
    journal.append(
        [
            Move(
                call=call,
                kind="probe_ended",
                by=Actor.WATCHDOG,
                cause=cause,
                facts={"finding": "unknown"},
                arm={Deadline.NEXT_STEP: 0.0, Deadline.HEARTBEAT: None},
                columns={"reason": "probed"},
            )
        ]
    )


_after_loss = {
    AttemptKind.RUN: _lost_run,
    AttemptKind.RESUME: _lost_run,
    AttemptKind.POLL: _lost_poll,
    AttemptKind.PROBE: _lost_probe,
}


# Deadlines


NOT_OURS = {
    # A due poll or probe waits for a worker, who is rung for; the bounds behind it still hold.
    Deadline.NEXT_POLL: "heartbeat_at IS NULL",
    Deadline.NEXT_STEP: "heartbeat_at IS NULL AND reason = 'probe_due'",
    # An interrupted call is bounded by its recovery window; its own time only forbids a repeat.
    Deadline.SCHEDULE_TO_CLOSE: "state = 'interrupted'",
}
"""Deadlines that are not fired by a sweep, and when."""

OURS = ", ".join(
    f"CASE WHEN {NOT_OURS[deadline]} THEN NULL ELSE {deadline}_at END"
    if deadline in NOT_OURS
    else f"{deadline}_at"
    for deadline in Deadline
)


def fire_due(limit: int = BITE) -> int:
    """Act on calls with a deadline that has passed and that no worker is rung for."""
    due = _ids(
        # `due_at` is served by the partial index `call_due_open`; the rest filters its rows.
        "SELECT id FROM ledger_toolcall WHERE settled_at IS NULL AND due_at <= clock_timestamp() "  # noqa: S608 words of our own
        f"AND least({OURS}) <= clock_timestamp() ORDER BY due_at LIMIT %s",
        [limit],
    )
    return _each(due, fire)


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
    # The bound of the whole call is looked at first, then that of the attempt, then the steps.
    order = (
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

    def act(call: ToolCall) -> bool:
        case, now = snapshots.of(call)
        ends = case.no_effect or case.rule.ends_open
        if not ends:
            call.cause = call.cause or Cause.HANG
            decision = Decision(
                act=Act.INTERRUPT,
                rule=case.rule.code,
                grounds=f"{deadline} ended while an effect is possible.",
            )
        else:
            decision = Decision(
                act=Act.EXPIRE,
                rule=f"{deadline}_over",
                deadline=deadline,
                grounds=f"{deadline} ended.",
                effect=call.effect,
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
                columns={"ring_at": RING_AGAIN_S[0], "rings": 0},
            )
        ]
    )
    dispatch.ring_after_commit([call.queue], call.id)
    return True


def _attempt_over(cause: Cause) -> Callable[[ToolCall], bool]:
    return lambda call: lose(call, cause)


def _parked_too_long(call: ToolCall) -> bool:
    """Schedule-to-close of a parked call: take a poll's fence, then expire or go up the ladder."""
    lose(call, Cause.HANG)
    return _expire(Deadline.SCHEDULE_TO_CLOSE)(call)


def step(call: ToolCall) -> bool:
    """Take recovery's next step for an interrupted call: climb the ladder once."""
    case, now = snapshots.of(call)
    decision = decisions.decide(case, now=now)
    acts.carry_out(call, case, decision)
    return True


def _window_over(call: ToolCall) -> bool:
    """The recovery window has ended: no further probe, the rest of the ladder decides now."""
    case, now = snapshots.of(call)
    if case.lease_until is not None and case.lease_until > now:
        return False
    over = replace(
        case, has_probe=False, repeat_forbidden="The recovery window ended before there was proof."
    )
    decision = decisions.decide(over, now=now)
    acts.carry_out(call, case, decision)
    return True


def _remind(call: ToolCall) -> bool:
    """A review deadline reminds and is armed again; it decides nothing (R53)."""
    policy = call.policy.call_policy
    journal.append(
        [
            Move(
                call=call,
                kind="reminded",
                by=Actor.WATCHDOG,
                arm={Deadline.REVIEW: policy.review_s},
            )
        ]
    )
    incidents.note(call, rung="review", grounds="The review deadline passed: reminded.")
    return True


def _news(call: ToolCall) -> bool:
    """A probe or a late result came while an operator was asked: only proof ends `ambiguous`."""
    case, now = snapshots.of(call)
    probe = case.policy.probe
    decision = decisions.decide(case, now=now)
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
    (S.AMBIGUOUS, D.HEARTBEAT): _attempt_over(Cause.WORKER_LOST),
    (S.AMBIGUOUS, D.NEXT_STEP): _news,
    (S.AMBIGUOUS, D.REVIEW): _remind,
}
"""Which deadline means what, by state (semantics, section 3)."""


# Proof of death


def prove_dead(limit: int = BITE) -> int:
    """Write `self_fence_elapsed` for lost attempts whose kernel timer must have fired."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM ledger_attempt WHERE outcome = 'lost' AND dead_proof = '' "
            "AND fence_kind = %s AND lease_until + %s * interval '1 second' <= clock_timestamp() "
            "ORDER BY lease_until LIMIT %s",
            [FenceKind.KERNEL, settings.ENVIRONMENT.grace_s, limit],
        )
        return sum(_prove(row[0]) for row in cursor.fetchall())


def _prove(attempt_id: UUID) -> bool:
    with transaction.atomic():
        call = (
            ToolCall.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(attempts=attempt_id)
            .first()
        )
        # Another watchdog may have written the proof between our look and our lock.
        attempt = Attempt.objects.filter(id=attempt_id, dead_proof="").first()
        if call is None or attempt is None:
            return False
        proof = ProofOfDeath.SELF_FENCE_ELAPSED
        reports.prove_dead(attempt, proof, call.policy.call_policy.in_flight_grace_s)
        waits = call.state is CallState.INTERRUPTED and call.effect is Effect.POSSIBLE
        journal.append(
            [
                Move(
                    call=call,
                    kind="proven_dead",
                    by=Actor.WATCHDOG,
                    fence=attempt.fence,
                    facts={"proof": str(proof)},
                    arm={Deadline.NEXT_STEP: 0.0} if waits else {},
                    columns={"reason": "proven_dead"} if waits else {},
                )
            ]
        )
        return True
