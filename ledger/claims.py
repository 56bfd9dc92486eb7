"""Claims: winning due attempts of a queue, in one commit, as many as there are free slots.

Runs, polls and probes are claimed alike: each claim is an attempt with a fence and a lease.
What a claim needs of the call travels with it, so that executing reads nothing more.

Locks: the calls that are due, skipping those that somebody else holds; then appends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from ledger import gates, handles, ids, journal, strictjson, traces, versions
from ledger.holds import FREE
from ledger.journal import Move
from ledger.models import (
    Attempt,
    Handle,
    ToolVersion,
)
from ledger.pipelines import pipelined, rows, write
from ledger.policies import CallPolicy
from ledger.tables import table
from ledger.vocabulary import (
    Actor,
    AttemptKind,
    CallState,
    Deadline,
    Effect,
)
from ledger.workers import Holder


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
    attempts_left: int = 0
    cancel_requested: bool = False
    traceparent: str | None = None


CLAIMABLE = {
    AttemptKind.RUN: (
        "c.state = 'scheduled' AND c.queue = %s "
        "AND c.schedule_to_start_at > clock_timestamp() "
        # A late result waits to be adopted: a new attempt would only repeat what happened.
        f"AND c.next_step_at IS NULL AND {FREE} AND {gates.PASSES} ORDER BY c.published_at"
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
    known = versions.read([(call.tool_version_id, call.policy_id) for call in calls])
    claims = [_claimed(call, kind, *read) for call, read in zip(calls, known, strict=True)]
    with pipelined(commit=True):
        _insert_attempts(claims, calls, holder)
        journal.append(
            [_claim_move(each, call, holder) for each, call in zip(claims, calls, strict=True)]
        )
    return claims


def are_due(queue: str) -> bool:
    """Whether runs of this queue wait for a worker."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT EXISTS (SELECT FROM ledger_toolcall c WHERE {CLAIMABLE[AttemptKind.RUN]})",  # noqa: S608 a constant of this module
            [queue],
        )
        return bool(cursor.fetchone()[0])


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
    attempts_allowed: int
    cancel_requested_at: datetime | None
    reason: str
    traceparent: str | None
    left_s: float | None


DUE_COLUMNS = ", ".join(f"c.{name}" for name in Due._fields if name != "left_s")


def _due(queue: str, kind: AttemptKind, limit: int) -> list[Due]:
    found = rows(
        f"SELECT {DUE_COLUMNS}, "  # noqa: S608 constants of this module
        "extract(epoch FROM c.schedule_to_close_at - clock_timestamp())::float8 "
        f"FROM ledger_toolcall c WHERE {CLAIMABLE[kind]} LIMIT %s FOR UPDATE OF c SKIP LOCKED",
        [queue, limit] if kind is AttemptKind.RUN else [limit],
    )
    due = [Due(*row) for row in found]
    return [row._replace(state=CallState(row.state), effect=Effect(row.effect)) for row in due]


def _claimed(call: Due, kind: AttemptKind, version: ToolVersion, policy: CallPolicy) -> Claim:
    run_s = policy.probe.timeout_s if kind is AttemptKind.PROBE and policy.probe else None
    again = call.fence > 0
    attempt_id = ids.new()
    return Claim(
        call_id=call.id,
        attempt_id=attempt_id,
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
        handle=handles.current_handle(call.id) if again else None,
        lease_s=policy.timeouts.heartbeat_s,
        start_to_close_s=run_s or policy.timeouts.start_to_close_s,
        schedule_to_close_s=call.left_s or 0.0,
        run_number=call.attempts_used + (kind is AttemptKind.RUN),
        attempts_left=max(0, call.attempts_allowed - call.attempts_used - 1),
        cancel_requested=call.cancel_requested_at is not None,
        traceparent=traces.of_attempt(call.traceparent, attempt_id),
    )


def _last_cursor(call: Due) -> Any:
    found = (
        Attempt.objects.filter(call=call.id, cursor__isnull=False)
        .order_by("-fence")
        .values_list("cursor", flat=True)
        .first()
    )
    return strictjson.read_jsonb(found) if found else None


ATTEMPT_COLUMNS = (
    ("id", "uuid"),
    ("workspace_id", "uuid"),
    ("call_id", "uuid"),
    ("fence", "integer"),
    ("kind", "text"),
    ("effect_key", "text"),
    ("granted_by", "text"),
    ("lease_s", "double precision"),
)
INSERT_ATTEMPTS = (
    "INSERT INTO ledger_attempt (id, workspace_id, call_id, fence, kind, worker_id, fence_kind, "
    "effect_key, granted_by, lease_until, outcome, cause, means, error_type, error_message, "
    "finding, dead_proof) SELECT id, workspace_id, call_id, fence, kind, %s, %s, effect_key, "
    "granted_by, clock_timestamp() + lease_s * interval '1 second', '', '', '', '', '', '', '' "
    "FROM {}"
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
    text, parameters = table(ATTEMPT_COLUMNS, rows)
    write(INSERT_ATTEMPTS.format(text), [holder.id, str(holder.fence_kind), *parameters])


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
