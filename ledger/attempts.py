"""Attempts: claim, cross, heartbeat, hold a handle, settle. The verbs of workers.

Each verb is keyword-only, owns its transaction, looks again under the row's lock and is safe
to repeat. A verb whose fence is not current any more raises FenceLost: stop the tool, file
what there is as evidence (`file_late`), exit. Leases are durations counted by the database;
a worker is told seconds, never an instant (reliability, section 5).

Locks: call, attempt, then appends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from ledger import ids, journal, secrets, strictjson, waiting
from ledger.errors import CancelRequested, FenceLost, PermissionMissing
from ledger.journal import Move, Position
from ledger.models import (
    Attempt,
    Chunk,
    Evidence,
    Handle,
    Policy,
    Result,
    ToolCall,
    ToolVersion,
)
from ledger.models.fields import ClockTimestamp
from ledger.pipelines import pipelined
from ledger.policies import CallPolicy
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    AttemptKind,
    CallState,
    Cause,
    Deadline,
    Effect,
    Instruction,
    Meaning,
    RecoveryClass,
)
from ledger.workers import Holder

MIN_WINDOW_S = 3.0
CHUNKS_KEPT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One attempt that a worker has won, with all it needs. Seconds count from the claim."""

    call_id: UUID
    attempt_id: UUID
    workspace_id: UUID
    fence: int
    kind: AttemptKind
    tool: str
    tool_version: int
    executor: str
    config: Mapping[str, Any]
    policy: CallPolicy
    arguments: dict[str, Any]
    arguments_sha256: str
    effect_key: str
    marker: str
    effect: Effect
    seq: int
    cursor: Any = None
    handle: Handle | None = None
    lease_s: float = 15.0
    start_to_close_s: float = 30.0
    schedule_to_close_s: float = 240.0
    run_number: int = 1
    cancel_requested: bool = False


CLAIMABLE = {
    AttemptKind.RUN: (
        "c.state = 'scheduled' AND c.queue = %(queue)s "
        "AND c.schedule_to_start_at > clock_timestamp() ORDER BY c.published_at"
    ),
    # A poll or a probe is due when its date has come and no other worker holds the call.
    AttemptKind.POLL: (
        "c.state = 'parked' AND c.next_poll_at <= clock_timestamp() AND c.heartbeat_at IS NULL "
        "AND c.settled_at IS NULL ORDER BY c.next_poll_at"
    ),
    AttemptKind.PROBE: (
        "c.state IN ('interrupted', 'ambiguous') AND c.reason = 'probe_due' "
        "AND c.next_step_at <= clock_timestamp() AND c.heartbeat_at IS NULL "
        "AND c.settled_at IS NULL ORDER BY c.next_step_at"
    ),
}
CLAIM_EVENT = {
    AttemptKind.RUN: "started",
    AttemptKind.POLL: "polled",
    AttemptKind.PROBE: "probed",
}
KINDS_OF_QUEUE = {
    "effects": (AttemptKind.RUN,),
    "reads": (AttemptKind.RUN,),
    "control": (AttemptKind.POLL, AttemptKind.PROBE),
}

_versions: dict[UUID, ToolVersion] = {}
_policies: dict[UUID, CallPolicy] = {}


def claim(*, queue: str, holder: Holder, limit: int) -> list[Claim]:
    """Win at most `limit` due attempts of a queue; at most as many as there are free slots.

    A call that another worker is claiming is skipped, not waited for.
    """
    claims: list[Claim] = []
    for kind in KINDS_OF_QUEUE[queue]:
        if limit > len(claims):
            claims += _claim(queue=queue, kind=kind, holder=holder, limit=limit - len(claims))
    return claims


@transaction.atomic
def _claim(*, queue: str, kind: AttemptKind, holder: Holder, limit: int) -> list[Claim]:
    calls = _due(queue, kind, limit)
    if not calls:
        return []
    _read_immutables(calls)
    claims = [_claimed(call, kind) for call in calls]
    with pipelined():
        _insert_attempts(claims, calls, holder)
        journal.append(
            [_claim_move(each, call, holder) for each, call in zip(claims, calls, strict=True)]
        )
    return claims


class Due(NamedTuple):
    """What a claim must know of a call that is due; the columns of its row, and the time left."""

    id: UUID
    workspace_id: UUID
    state: CallState
    effect: Effect
    seq: int
    fence: int
    tool: str
    tool_version_id: UUID
    policy_id: UUID
    arguments: str
    arguments_sha256: str
    effect_key: str
    attempts_used: int
    cancel_requested_at: datetime | None
    reason: str
    left_s: float | None


DUE_COLUMNS = ", ".join(f"c.{name}" for name in Due._fields if name != "left_s")


def _due(queue: str, kind: AttemptKind, limit: int) -> list[Due]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {DUE_COLUMNS}, "  # noqa: S608 constants of this module
            "extract(epoch FROM c.schedule_to_close_at - clock_timestamp())::float8 "
            f"FROM ledger_toolcall c WHERE {CLAIMABLE[kind]} "
            "LIMIT %(limit)s FOR UPDATE SKIP LOCKED",
            {"queue": queue, "limit": limit},
        )
        rows = [Due(*row) for row in cursor.fetchall()]
    return [row._replace(state=CallState(row.state), effect=Effect(row.effect)) for row in rows]


def _read_immutables(calls: Sequence[ToolCall | Due]) -> None:
    unread = {c.tool_version_id for c in calls} - _versions.keys()
    if unread:
        _versions.update(ToolVersion.objects.in_bulk(unread))
    unread = {c.policy_id for c in calls} - _policies.keys()
    if unread:
        found = Policy.objects.in_bulk(unread)
        _policies.update({id_: policy.call_policy for id_, policy in found.items()})


def _claimed(call: Due, kind: AttemptKind) -> Claim:
    version, policy = _versions[call.tool_version_id], _policies[call.policy_id]
    run_s = policy.probe.timeout_s if kind is AttemptKind.PROBE and policy.probe else None
    again = call.fence > 0
    return Claim(
        call_id=call.id,
        attempt_id=ids.new(),
        workspace_id=call.workspace_id,
        fence=call.fence + 1,
        kind=kind,
        tool=call.tool,
        tool_version=version.number,
        executor=version.executor,
        config=version.config,
        policy=policy,
        arguments=strictjson.read_jsonb(call.arguments),
        arguments_sha256=call.arguments_sha256,
        effect_key=call.effect_key,
        marker=ids.marker(call.id),
        effect=call.effect,
        seq=call.seq + 1,
        cursor=_last_cursor(call) if again else None,
        handle=current_handle(call.id) if again else None,
        lease_s=policy.timeouts.heartbeat_s,
        start_to_close_s=run_s or policy.timeouts.start_to_close_s,
        schedule_to_close_s=call.left_s or 0.0,
        run_number=call.attempts_used + (kind is AttemptKind.RUN),
        cancel_requested=call.cancel_requested_at is not None,
    )


def _last_cursor(call: Due) -> Any:
    found = (
        Attempt.objects.filter(call=call.id, cursor__isnull=False)
        .order_by("-fence")
        .values_list("cursor", flat=True)
        .first()
    )
    return strictjson.read_jsonb(found) if found else None


def current_handle(call_id: UUID) -> Handle | None:
    """The newest handle of a call behind which work may still go on."""
    return (
        Handle.objects.filter(call=call_id, lost_at__isnull=True, ended_at__isnull=True)
        .order_by("-id")
        .first()
    )


INSERT_ATTEMPTS = (
    "INSERT INTO ledger_attempt (id, workspace_id, call_id, fence, kind, worker_id, fence_kind, "
    "effect_key, granted_by, lease_until, outcome, cause, means, error_type, error_message, "
    "finding, dead_proof) SELECT id, workspace_id, call_id, fence, kind, %s, %s, effect_key, "
    "granted_by, clock_timestamp() + lease_s * interval '1 second', '', '', '', '', '', '', '' "
    "FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::int[], %s::text[], %s::text[], "
    "%s::text[], %s::float8[]) AS v(id, workspace_id, call_id, fence, kind, effect_key, "
    "granted_by, lease_s)"
)


def _insert_attempts(claims: Sequence[Claim], calls: Sequence[Due], holder: Holder) -> None:
    rows = [
        (
            each.attempt_id,
            each.workspace_id,
            each.call_id,
            each.fence,
            str(each.kind),
            each.effect_key,
            "first" if each.fence == 1 else call.reason or str(each.kind),
            each.lease_s,
        )
        for each, call in zip(claims, calls, strict=True)
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(INSERT_ATTEMPTS, [holder.id, str(holder.fence_kind), *columns])


def _claim_move(claim: Claim, call: Due, holder: Holder) -> Move:
    arm: dict[Deadline, float | None] = {Deadline.HEARTBEAT: claim.lease_s}
    columns: dict[str, Any] = {"fence": claim.fence}
    if claim.kind is AttemptKind.RUN:
        arm[Deadline.START_TO_CLOSE] = claim.start_to_close_s
        columns |= {"attempts_used": claim.run_number, "ring_at": None, "rings": 0}
    return Move(
        call=call,
        kind=CLAIM_EVENT[claim.kind],
        by=Actor.WORKER,
        by_id=holder.id.hex,
        fence=claim.fence,
        lease_s=claim.lease_s,
        facts={"worker": holder.id.hex, "attempt": claim.run_number},
        arm=arm,
        columns=columns,
    )


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
    lease_s = _policy_of(held.call).timeouts.heartbeat_s
    if held.lease_left_s < min(MIN_WINDOW_S, lease_s / 5):
        raise FenceLost(fence=fence)
    if held.call.cancel_requested_at is not None:
        raise CancelRequested()
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


def _policy_of(call: ToolCall) -> CallPolicy:
    _read_immutables([call])
    return _policies[call.policy_id]


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
    lease_s = _policy_of(held.call).timeouts.heartbeat_s
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HandleToStore:
    """A handle as an executor reported it. Seconds from now."""

    value: str
    kind: str = "http"
    endpoint: str = ""
    poll_after_s: float | None = None
    expires_in_s: float | None = None


FIRST_POLL_S, POLL_FACTOR, POLL_CAP_S = 5.0, 1.5, 60.0


def poll_wait_s(hint_s: float | None, polls: int) -> float:
    """Seconds to the next poll: the hint within 1 to 60 s, else 5 s growing to 60 s."""
    if hint_s is not None:
        return min(max(hint_s, 1.0), POLL_CAP_S)
    return min(FIRST_POLL_S * POLL_FACTOR ** min(polls, 20), POLL_CAP_S)


@repeatable
def store_handle(*, call_id: UUID, fence: int, handle: HandleToStore) -> None:
    """Commit a handle the moment it is known, before any wait (R72). Raises FenceLost."""
    held = hold(call_id=call_id, fence=fence)
    if remember_handle(held.call, fence, handle):
        journal.append([_handle_move(held.call, "handle_stored", fence, handle)])


def remember_handle(call: ToolCall, fence: int, handle: HandleToStore) -> bool:
    """Store the handle if it is new for this call; True if it was."""
    key = {
        "workspace_id": call.workspace_id,
        "kind": handle.kind,
        "endpoint": handle.endpoint,
        "value_hmac": secrets.keyed_hash(handle.value),
    }
    known = Handle.objects.filter(**key).first()
    if known is not None and known.call_id == call.id:
        return False
    stored = Handle.objects.create(
        **key,
        call=call,
        fence=fence,
        value_encrypted=secrets.encrypt(handle.value),
        poll_after_s=handle.poll_after_s,
    )
    if handle.expires_in_s is not None:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE ledger_handle SET expires_at = stored_at + %s * interval '1 second' "
                "WHERE id = %s",
                [handle.expires_in_s, stored.id],
            )
    return True


def _handle_move(call: ToolCall, kind: str, fence: int, handle: HandleToStore, **more: Any) -> Move:
    return Move(
        call=call,
        kind=kind,
        by=Actor.WORKER,
        fence=fence,
        facts={
            "handle_kind": handle.kind,
            "handle": secrets.keyed_hash(handle.value).hex()[:16],
            "endpoint": handle.endpoint,
        },
        **more,
    )


@repeatable
def park(*, call_id: UUID, fence: int, handle: HandleToStore) -> None:
    """End the attempt: the work runs elsewhere (R73). For a poll: it is not done yet.

    Raises FenceLost. The next poll is dated, and no worker is held meanwhile.
    """
    held = hold(call_id=call_id, fence=fence)
    remember_handle(held.call, fence, handle)
    stored = current_handle(call_id)
    polls = stored.polls if stored else 0
    arm: dict[Deadline, float | None] = {
        Deadline.NEXT_POLL: poll_wait_s(handle.poll_after_s, polls),
        Deadline.HEARTBEAT: None,
    }
    end(held.attempt, outcome="parked")
    if held.call.state is CallState.PARKED:
        Handle.objects.filter(call=call_id, lost_at__isnull=True).update(
            polls=polls + 1, poll_after_s=handle.poll_after_s
        )
        journal.append(
            [Move(call=held.call, kind="poll_ended", by=Actor.WORKER, fence=fence, arm=arm)]
        )
        return
    limit = _handle_bound(held.call, handle)
    columns = {"reason": ""}
    if limit is not None:
        arm[Deadline.SCHEDULE_TO_CLOSE] = limit
    journal.append([_handle_move(held.call, "parked", fence, handle, arm=arm, columns=columns)])


def _handle_bound(call: ToolCall, handle: HandleToStore) -> float | None:
    """A device code lives no longer than it says; the cap is the policy's (semantics, 2.2)."""
    if call.recovery_class is not RecoveryClass.PROVIDER_AUTH or handle.expires_in_s is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM schedule_to_close_at - clock_timestamp())::float8 "
            "FROM ledger_toolcall WHERE id = %s",
            [call.id],
        )
        left: float = cursor.fetchone()[0]
    return max(0.0, min(left, handle.expires_in_s))


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
    """Give back an attempt that has not crossed; it spends no budget. Raises FenceLost."""
    held = hold(call_id=call_id, fence=fence)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """A tool's success as its worker reports it; `stored` comes from `strictjson.storable`."""

    claim: Claim
    stored: strictjson.Stored
    media_type: str
    changed_nothing: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)


def settle(settlements: Sequence[Settlement]) -> list[None | Exception]:
    """Settle calls with their results; each answer is None, or FenceLost for that one alone.

    What a lost fence brings is kept as evidence in the same transaction (I14).
    """
    return _settle(settlements)


@repeatable
def _settle(settlements: Sequence[Settlement]) -> list[None | Exception]:
    held = _hold_many([(s.claim.call_id, s.claim.fence) for s in settlements])
    good = [s for s in settlements if (s.claim.call_id, s.claim.fence) in held]
    if good:
        with pipelined():
            _insert_results(good, held)
            _end_many([s.claim.attempt_id for s in good])
            journal.append([_success(s, held[s.claim.call_id, s.claim.fence]) for s in good])
            waiting.tell([s.claim.call_id for s in good])
    answers: list[None | Exception] = []
    for each in settlements:
        if (each.claim.call_id, each.claim.fence) in held or _is_settled_by(each):
            answers.append(None)
            continue
        keep_late(each.claim, each.stored, each.media_type, cause=None)
        answers.append(FenceLost(fence=each.claim.fence))
    return answers


def _hold_many(wanted: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], Position]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.id, c.workspace_id, c.state, c.effect, c.seq, c.fence FROM ledger_toolcall c "
            "JOIN unnest(%s::uuid[], %s::int[]) AS w(id, fence) ON w.id = c.id "
            "JOIN ledger_attempt a ON a.call_id = c.id AND a.fence = w.fence "
            "WHERE c.fence = w.fence AND a.ended_at IS NULL AND a.fence_lost_at IS NULL "
            "ORDER BY c.id FOR UPDATE OF c, a",
            [[call_id for call_id, _ in wanted], [fence for _, fence in wanted]],
        )
        return {
            (row[0], row[5]): Position(row[0], row[1], CallState(row[2]), Effect(row[3]), row[4])
            for row in cursor.fetchall()
        }


INSERT_RESULTS = (
    "INSERT INTO ledger_result (call_id, workspace_id, fence, event_seq, is_error, media_type, "
    "body, sha256, size_bytes, truncated, why_not_json) SELECT * FROM unnest(%s::uuid[], "
    "%s::uuid[], %s::int[], %s::int[], %s::bool[], %s::text[], %s::bytea[], %s::text[], "
    "%s::bigint[], %s::bool[], %s::text[])"
)


def _insert_results(
    settlements: Sequence[Settlement], held: Mapping[tuple[UUID, int], Position]
) -> None:
    rows = [
        (
            s.claim.call_id,
            s.claim.workspace_id,
            s.claim.fence,
            held[s.claim.call_id, s.claim.fence].seq + 1,
            False,
            s.media_type[:200],
            s.stored.body,
            s.stored.sha256,
            s.stored.size_bytes,
            s.stored.truncated,
            s.stored.why_not_json[:300],
        )
        for s in settlements
    ]
    with connection.cursor() as cursor:
        cursor.execute(INSERT_RESULTS, [list(column) for column in zip(*rows, strict=True)])


def _end_many(attempt_ids: Sequence[UUID]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_attempt SET ended_at = clock_timestamp(), outcome = 'succeeded', "
            "means = 'known', dead_at = clock_timestamp(), "
            "dead_proof = CASE dead_proof WHEN '' THEN 'reported' ELSE dead_proof END "
            "WHERE id = ANY(%s)",
            [list(attempt_ids)],
        )


def _success(settlement: Settlement, position: Position) -> Move:
    effect = Effect.HAPPENED
    if position.effect is Effect.NONE:
        effect = Effect.NONE
    elif position.effect is not Effect.POSSIBLE or _changed_nothing(settlement):
        # The tool never came to its boundary, or says that it changed nothing.
        effect = Effect.DID_NOT_HAPPEN
    return Move(
        call=position,
        kind="succeeded",
        by=Actor.WORKER,
        effect=effect,
        fence=settlement.claim.fence,
        facts={"result_sha256": settlement.stored.sha256, **settlement.evidence},
    )


def _changed_nothing(settlement: Settlement) -> bool:
    """Whether the tool says so; what an earlier attempt may have changed it cannot deny."""
    return (
        settlement.changed_nothing
        and not Attempt.objects.filter(
            call=settlement.claim.call_id,
            fence__lt=settlement.claim.fence,
            crossed_at__isnull=False,
            disproved_at__isnull=True,
        )
        .exclude(means__in=(Meaning.NOT_BEGUN, Meaning.REFUSED))
        .exists()
    )


def _is_settled_by(settlement: Settlement) -> bool:
    """Whether this very report was committed before, its answer lost: the same answer then."""
    return Result.objects.filter(
        call=settlement.claim.call_id,
        fence=settlement.claim.fence,
        sha256=settlement.stored.sha256,
    ).exists()


@repeatable
def file_late(
    *,
    claim: Claim,
    stored: strictjson.Stored,
    media_type: str,
    cause: Cause | None,
    is_result: bool = True,
) -> None:
    """Keep what an attempt reports after it lost its fence. Never dropped, never a result (I14)."""
    keep_late(claim, stored, media_type, cause, is_result=is_result)


def keep_late(
    claim: Claim,
    stored: strictjson.Stored,
    media_type: str,
    cause: Cause | None,
    *,
    is_result: bool = True,
) -> None:
    """Store a late report as evidence, inside the caller's transaction.

    Only a result can be adopted: that work was parked, or why it ended, is none.
    """
    is_result = is_result and cause is None
    call = ToolCall.objects.locked(claim.call_id)
    evidence, new = Evidence.objects.get_or_create(
        attempt_id=claim.attempt_id,
        kind="late_result",
        sha256=stored.sha256,
        finding="happened" if is_result else "unknown",
        defaults={
            "call": call,
            "workspace_id": call.workspace_id,
            "media_type": media_type[:200],
            "body": stored.body,
            "size_bytes": stored.size_bytes,
            "truncated": stored.truncated,
            "why_not_json": stored.why_not_json[:300],
            "message": str(cause or ""),
            "adoptable": is_result and claim.arguments_sha256 == call.arguments_sha256,
        },
    )
    if not new:
        return
    undecided = call.state in (CallState.INTERRUPTED, CallState.AMBIGUOUS)
    arm = {Deadline.NEXT_STEP: 0.0} if undecided else {}
    columns = {"reason": "late_result"} if undecided else {}
    journal.append(
        [
            Move(
                call=call,
                kind="late_result",
                by=Actor.WORKER,
                fence=claim.fence,
                cause=cause,
                facts={"evidence": evidence.id.hex, "sha256": stored.sha256},
                arm=arm,
                columns=columns,
            )
        ]
    )
