"""Attempts: who holds a call, and what the holder may do: cross, heartbeat, renew, release.

Each verb is keyword-only, owns its transaction, looks again under the row's lock and is safe
to repeat. A verb whose fence is not current any more raises FenceLost: stop the tool, file
what there is as evidence (`settlements.file_late`), exit. Leases are durations counted by the
database; a worker is told seconds, never an instant (reliability, section 5).

Locks: call, attempt, then appends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from ledger import journal, strictjson, versions
from ledger.errors import CancelRequested, FenceLost, PermissionMissing
from ledger.journal import Move
from ledger.models import (
    Attempt,
    Chunk,
    ToolCall,
)
from ledger.models.fields import ClockTimestamp
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    Cause,
    Deadline,
    Effect,
    Instruction,
    Meaning,
)

MIN_WINDOW_S = 3.0


CHUNKS_KEPT = 256


@dataclass(frozen=True, slots=True)
class Held:
    """A call and its live attempt, under the call's lock, with the lease left in seconds."""

    call: ToolCall
    attempt: Attempt
    lease_left_s: float


def hold(*, call_id: UUID, fence: int) -> Held:
    """Lock the call and return it with the attempt that holds it.

    Raises FenceLost where the fence is not current, or the attempt has ended. Must run in a
    transaction; the fence counts only when it is read under the row's lock.
    """
    call = ToolCall.objects.locked(call_id)
    attempt = (
        Attempt.objects.filter(call=call, fence=fence, ended_at__isnull=True)
        .extra(select={"left_s": "extract(epoch FROM lease_until - clock_timestamp())::float8"})
        .first()
    )
    if call.fence != fence or attempt is None or attempt.fence_lost_at is not None:
        raise FenceLost(fence=fence)
    return Held(call, attempt, attempt.left_s)


def hold_or_repeat(*, call_id: UUID, fence: int, outcome: str, **said: str) -> Held | None:
    """As `hold`, for a verb that ends the attempt; None where this very report was committed.

    Its answer was lost then, and the repetition is answered the same (reliability, section 5).
    `said` are further columns that make it the same report. Raises FenceLost as `hold` does.
    """
    try:
        return hold(call_id=call_id, fence=fence)
    except FenceLost:
        # `lost` is the watchdog's word; every other outcome is the attempt's own report.
        if Attempt.objects.filter(call=call_id, fence=fence, outcome=outcome, **said).exists():
            return None
        raise


@repeatable
def cross(*, call_id: UUID, fence: int, by_id: str = "") -> float:
    """Commit that an effect may begin from now on; return the lease left, in seconds.

    Raises FenceLost if another attempt holds the call or too little lease is left: send
    nothing. Raises PermissionMissing if the tool was switched off or the key revoked while
    the call waited (S11), CancelRequested if its agent asked for its end. Repeated by the same
    fence it answers the same.
    """
    held = hold(call_id=call_id, fence=fence)
    if held.attempt.crossed_at is not None:
        if held.lease_left_s <= 0:
            raise FenceLost(fence=fence)
        return held.lease_left_s
    lease_s = versions.policy_of(held.call).timeouts.heartbeat_s
    if held.lease_left_s < min(MIN_WINDOW_S, lease_s / 5):
        raise FenceLost(fence=fence)
    if held.call.cancel_requested_at is not None:
        raise CancelRequested()
    if held.call.next_step_at is not None:
        # A late result of an earlier attempt is about to be adopted: this one sends nothing.
        raise FenceLost(fence=fence)
    _check_authority(held.call)
    Attempt.objects.filter(id=held.attempt.id).update(crossed_at=ClockTimestamp())
    journal.append(
        [
            Move(
                call=held.call,
                kind="crossed",
                by=Actor.WORKER,
                by_id=by_id,
                effect=Effect.POSSIBLE,
                fence=fence,
                lease_s=held.lease_left_s,
            )
        ]
    )
    return held.lease_left_s


def _check_authority(call: ToolCall) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.switched_off_at IS NOT NULL, k.revoked_at IS NOT NULL "
            "FROM ledger_toolversion v JOIN ledger_tool t ON t.id = v.tool_id "
            "LEFT JOIN ledger_apikey k ON k.id = %s WHERE v.id = %s",
            [call.api_key_id, call.tool_version_id],
        )
        switched_off, revoked = cursor.fetchone()
    if switched_off or revoked:
        what = "a tool that is switched on" if switched_off else "a key that is not revoked"
        raise PermissionMissing(needed=what)


@repeatable
def heartbeat(
    *, call_id: UUID, fence: int, cursor: Any = None, partial: bytes | None = None
) -> tuple[Instruction, float]:
    """Renew the lease; keep cursor and partial output; return what to do and the lease in seconds.

    Raises FenceLost. A heartbeat is no event; a new cursor is (`progress`).
    """
    held = hold(call_id=call_id, fence=fence)
    lease_s = versions.policy_of(held.call).timeouts.heartbeat_s
    changes: dict[str, Any] = {}
    if cursor is not None:
        changes["cursor"] = strictjson.canonical(cursor).decode()
    _renew([held.attempt.id], changes)
    if partial:
        _keep_partial(held.attempt, partial)
    if cursor is not None and changes["cursor"] != held.attempt.cursor:
        journal.append(
            [Move(call=held.call, kind="progress", by=Actor.WORKER, fence=fence,
                  facts={"cursor": cursor})]
        )  # fmt: skip
    cancel = held.call.cancel_requested_at is not None
    return (Instruction.CANCEL if cancel else Instruction.GO_ON), lease_s


def _keep_partial(attempt: Attempt, partial: bytes) -> None:
    if Chunk.objects.filter(attempt=attempt).count() < CHUNKS_KEPT:
        Chunk.objects.create(
            attempt=attempt, workspace_id=attempt.workspace_id, body=partial[: 256 * 1024]
        )


def _renew(attempt_ids: Sequence[UUID], changes: Mapping[str, Any] = {}) -> list[UUID]:
    """Extend the leases of attempts that still hold their call; return their ids."""
    sets = "".join(f", {name} = %({name})s" for name in changes)
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH held AS (UPDATE ledger_attempt a SET lease_until = clock_timestamp() "  # noqa: S608 names of our own
            "+ (p.document->'timeouts'->>'heartbeat_s')::float8 * interval '1 second'"
            + sets
            + " FROM ledger_toolcall c JOIN ledger_policy p ON p.id = c.policy_id "
            "WHERE a.id = ANY(%(ids)s) AND c.id = a.call_id AND a.ended_at IS NULL "
            "AND a.fence_lost_at IS NULL AND c.fence = a.fence "
            "RETURNING a.id, a.call_id, a.lease_until) "
            "UPDATE ledger_toolcall c SET heartbeat_at = held.lease_until FROM held "
            "WHERE c.id = held.call_id RETURNING held.id",
            {"ids": list(attempt_ids), **changes},
        )
        return [row[0] for row in cursor.fetchall()]


@repeatable
def renew(*, attempt_ids: Sequence[UUID]) -> set[UUID]:
    """Renew many leases in one statement, for a worker that runs many at a time.

    Returns those that are still held; the others lost their fence.
    """
    with connection.cursor() as cursor:
        # The order of locks: calls by id, then their attempts.
        cursor.execute(
            "SELECT c.id FROM ledger_toolcall c JOIN ledger_attempt a ON a.call_id = c.id "
            "WHERE a.id = ANY(%s) ORDER BY c.id FOR UPDATE OF c",
            [list(attempt_ids)],
        )
    return set(_renew(attempt_ids))


def end(
    attempt: Attempt,
    *,
    outcome: str,
    cause: Cause | None = None,
    means: Meaning | None = None,
    error_type: str = "",
    error_message: str = "",
    finding: str = "",
) -> None:
    """Close an attempt that reported for itself; whoever reports has stopped."""
    Attempt.objects.filter(id=attempt.id).update(
        ended_at=ClockTimestamp(),
        outcome=outcome,
        cause=cause or "",
        means=means or "",
        error_type=error_type[:200],
        error_message=error_message[:8000],
        finding=finding,
        dead_proof=attempt.dead_proof or "reported",
        dead_at=ClockTimestamp(),
    )


@repeatable
def release(*, call_id: UUID, fence: int, grounds: str, wait_s: float = 0.0) -> None:
    """Give back an attempt that has not crossed; it spends no budget. Raises FenceLost.

    Repeated by the same fence it changes nothing.
    """
    held = hold_or_repeat(call_id=call_id, fence=fence, outcome="released")
    if held is None:
        return
    if held.attempt.crossed_at is not None:
        raise FenceLost(fence=fence)
    end(held.attempt, outcome="released")
    journal.append(
        [
            Move(
                call=held.call,
                kind="released",
                by=Actor.WORKER,
                fence=fence,
                facts={"grounds": grounds},
                arm={Deadline.BACKOFF: wait_s},
                columns={"attempts_used": held.call.attempts_used - 1, "reason": "released"},
            )
        ]
    )


def disprove(call: ToolCall) -> None:
    """Write that every crossing of a locked call is proved to have had no effect (I1, I8)."""
    Attempt.objects.filter(call=call, crossed_at__isnull=False, disproved_at__isnull=True).update(
        disproved_at=ClockTimestamp()
    )
