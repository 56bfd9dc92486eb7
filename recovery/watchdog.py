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
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)

from ledger import dispatch, holds, journal, workers
from ledger.journal import Move
from ledger.models import Attempt, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    Deadline,
    Effect,
    FenceKind,
    ProofOfDeath,
)
from recovery import (
    ageing,
    breakers,
    bulk,
    deadlines,
    drifts,
    failures,
    handovers,
    late,
    losses,
    reports,
    resolutions,
    turns,
)
from recovery.clocks import Clocks
from recovery.models import Sweep

BITE = 200


LATE_S = 5.0


log = logging.getLogger(__name__)


def watch(*, period_s: float, stop: Callable[[float], bool], clocks: Clocks | None = None) -> None:
    """Sweep until `stop(seconds)` says so; a database that is away is waited for.

    After a gap of more than five seconds (a stopped process, a database that was away) every
    running attempt is given one lease before any loss is declared (R35); and where the database's
    clock went more than five seconds apart from this machine's (a slept laptop, a clock that was
    set), with an event `clock_jump`.
    """
    clocks = clocks or Clocks()
    last = clocks.monotonic_s()
    while True:
        began = clocks.monotonic_s()
        try:
            # A server that restarted since the last sweep must not cost this one.
            connection.close_if_unusable_or_obsolete()
            jumped_s = clocks.jumped_s()
            if jumped_s or began - last > LATE_S:
                grant_one_lease(jumped_s)
            sweep()
            last = clocks.monotonic_s()
        except (DatabaseError, InterfaceError) as error:
            log.warning("watchdog.database_away error=%s", type(error).__name__)
            connection.close()
        if stop(max(0.05, period_s - (clocks.monotonic_s() - began))):
            return


def sweep(limit: int = BITE) -> int:
    """Make one pass of everything; return how many rows were acted on."""
    Sweep.objects.update_or_create(
        name=f"{socket.gethostname()}-{os.getpid()}", defaults={"swept_at": ClockTimestamp()}
    )
    return sum(
        (
            find_dead_workers(limit),
            stand_still(limit),
            fire_due(limit),
            # Behind what settles calls, so that a hold ends in the sweep that ended its reason.
            turns.close_due(limit),
            drifts.tell(limit),
            end_holds(limit),
            prove_dead(limit),
            examine_late(limit),
            remind(limit),
            handovers.sweep(limit),
            ring_again(limit),
            bulk.run_due(),
            resolutions.carry_out_due(limit),
            breakers.sweep(),
        )
    )


def grant_one_lease(jumped_s: float = 0.0) -> int:
    """Give every running attempt one lease, before any loss is declared; return how many.

    After a jump of the clock each of these calls gets an event that says so.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # The order of locks: calls by id, then their attempts. Who is held reports just now.
        cursor.execute(
            "SELECT c.id FROM ledger_toolcall c WHERE c.settled_at IS NULL "
            "AND c.heartbeat_at IS NOT NULL ORDER BY c.id FOR UPDATE OF c SKIP LOCKED"
        )
        held = [row[0] for row in cursor.fetchall()]
        cursor.execute(
            "WITH late AS (UPDATE ledger_attempt a SET lease_until = greatest(a.lease_until, "
            "clock_timestamp() + (p.document->'timeouts'->>'heartbeat_s')::float8 "
            "* interval '1 second') FROM ledger_toolcall c JOIN ledger_policy p "
            "ON p.id = c.policy_id WHERE c.id = ANY(%s) AND c.id = a.call_id "
            "AND a.ended_at IS NULL RETURNING a.call_id, a.lease_until) "
            "UPDATE ledger_toolcall c SET heartbeat_at = late.lease_until "
            "FROM late WHERE c.id = late.call_id",
            [held],
        )
        granted = cursor.rowcount
        if jumped_s:
            _write_jump(held, jumped_s)
        return int(granted)


def _write_jump(call_ids: list[UUID], jumped_s: float) -> None:
    facts = {"jumped_s": round(jumped_s, 3)}
    calls = ToolCall.objects.filter(id__in=call_ids).order_by("id")
    journal.append(
        [Move(call=each, kind="clock_jump", by=Actor.WATCHDOG, facts=facts) for each in calls]
    )


def _each(call_ids: Iterable[UUID], act: Callable[[ToolCall], bool]) -> int:
    """Act on each open call in its own transaction; skip what somebody else holds."""
    return sum(
        _one(call_id, lambda call: not call.is_settled and act(call)) for call_id in call_ids
    )


def _one(call_id: UUID, act: Callable[[ToolCall], bool]) -> bool:
    """Act on one call under its lock. One that cannot be moved must not stop all others."""
    try:
        with transaction.atomic():
            call = (
                ToolCall.objects.select_for_update(skip_locked=True, of=("self",))
                .filter(id=call_id)
                .first()
            )
            return call is not None and act(call)
    except Exception as error:
        if connection.connection is None or connection.connection.closed:
            raise
        failures.log_it("watchdog.row_failed", call_id, error)
        if not is_passing(error):
            failures.write_down(call_id, error)
        return False


def is_passing(error: Exception) -> bool:
    """Whether the error says nothing of the row: a lock, a deadlock, a server that went away."""
    return isinstance(error, OperationalError | InterfaceError)


def remind(limit: int = BITE) -> int:
    """Remind of the incidents whose date has come, and ask wider where their time is over."""
    return sum(
        _one(call_id, partial(ageing.remind, incident_id=incident_id))
        if call_id is not None
        else ageing.remind_of_session(incident_id)
        for incident_id, call_id in ageing.due(limit)
    )


def examine_late(limit: int = BITE) -> int:
    """Judge what came late for calls that are settled by now."""
    return sum(_one(call_id, partial(late.examine, evidence_id=evidence_id))
               for evidence_id, call_id in late.unexamined(limit))  # fmt: skip


def _ids(sql: str, parameters: list[Any]) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [row[0] for row in cursor.fetchall()]


def ring_again(limit: int = BITE) -> int:
    """Ring for calls that no worker claimed within 2, 5, 15, 60 s, and for due polls and probes."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_toolcall c SET rings = rings + 1, ring_at = clock_timestamp() + "
            "(%s::float8[])[least(rings + 2, 4)] * interval '1 second' "
            "WHERE id IN (SELECT id FROM ledger_toolcall WHERE state = 'scheduled' "
            "AND ring_at <= clock_timestamp() ORDER BY ring_at LIMIT %s "
            "FOR UPDATE SKIP LOCKED) RETURNING queue",
            [list(dispatch.RING_AGAIN_S), limit],
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
    acted = _each(lost, lambda call: losses.lose(call, Cause.WORKER_LOST, of_workers=dead))
    if len(lost) < limit:
        workers.bury(dead)
    return acted


def fire_due(limit: int = BITE) -> int:
    """Act on calls with a deadline that has passed and that no worker is rung for."""
    due = _ids(
        # `due_at` is served by the partial index `call_due_open`; the rest filters its rows.
        "SELECT id FROM ledger_toolcall WHERE settled_at IS NULL AND due_at <= clock_timestamp() "  # noqa: S608 words of our own
        f"AND least({deadlines.OURS}) <= clock_timestamp() ORDER BY due_at LIMIT %s",
        [limit],
    )
    return _each(due, deadlines.fire)


def stand_still(limit: int = BITE) -> int:
    """Stop and start the schedule-to-start of calls that are held without a move."""
    with transaction.atomic():
        return holds.stand_still(limit)


def end_holds(limit: int = BITE) -> int:
    """Let go of held calls whose reason is gone: published, or answered as twins."""
    return _each(holds.due(limit), holds.end)


def prove_dead(limit: int = BITE) -> int:
    """Write `self_fence_elapsed` for lost attempts whose kernel timer must have fired."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT call_id, id FROM ledger_attempt WHERE outcome = 'lost' AND dead_proof = '' "
            "AND fence_kind = %s AND lease_until + %s * interval '1 second' <= clock_timestamp() "
            "ORDER BY lease_until LIMIT %s",
            [FenceKind.KERNEL, settings.ENVIRONMENT.grace_s, limit],
        )
        found = cursor.fetchall()
    return sum(
        _one(call_id, partial(_prove, attempt_id=attempt_id)) for call_id, attempt_id in found
    )


def _prove(call: ToolCall, *, attempt_id: UUID) -> bool:
    # Another watchdog may have written the proof between our look and our lock.
    attempt = Attempt.objects.filter(id=attempt_id, dead_proof="").first()
    if attempt is None:
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
