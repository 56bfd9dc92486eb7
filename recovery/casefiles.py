"""Reads the rows of one call into the frozen facts that `rulings.py` judges."""

from datetime import datetime, timedelta

from django.conf import settings

from ledger import clock, ids, secrets
from ledger.handles import HandleToStore
from ledger.models import Attempt, Evidence, Handle, ToolCall
from ledger.vocabulary import AttemptKind, Deadline, FenceKind, RecoveryClass, ResolutionStage
from recovery import changes, snapshots, stages
from recovery.models import Incident, Resolution
from recovery.rulings import Crossing, Decided, Facts, Piece

QUOTED_CHARACTERS_MAX = 4096


def of(call: ToolCall, incident: Incident | None, handle: HandleToStore | None = None) -> Facts:
    """The facts about a call and the decision on it that waits, if any.

    `handle` is one that a person wants to attach. To decide, hold the call's lock.
    """
    policy = call.policy.call_policy
    return Facts(
        now=clock.now(),
        call=ids.shown("call", call.id),
        tool=call.tool,
        recovery_class=RecoveryClass(call.recovery_class),
        policy=policy,
        state=call.state,
        effect=call.effect,
        cause=call.cause or None,
        attempts_used=call.attempts_used,
        attempts_allowed=call.attempts_allowed,
        fence=call.fence,
        queue=call.queue,
        effect_key=call.effect_key,
        arguments=call.arguments,
        has_probe=call.tool_version.probes and policy.probe is not None,
        takes_handles=call.tool_version.handles,
        handle_of_another=handle is not None and _is_of_another(call, handle),
        armed=frozenset(each for each in Deadline if getattr(call, f"{each}_at") is not None),
        crossings=tuple(_crossings(call, policy.in_flight_grace_s)),
        evidence=tuple(map(_piece, Evidence.objects.filter(call=call).order_by("at"))),
        decided=_decided(incident),
        decision_version=changes.version_after(changes.of(call.id)),
    )


def _crossings(call: ToolCall, grace_s: float) -> list[Crossing]:
    runs = Attempt.objects.filter(call=call, kind=AttemptKind.RUN, crossed_at__isnull=False)
    return [
        crossing(each, grace_s) for each in runs.order_by("fence") if snapshots.is_undisproved(each)
    ]


def crossing(attempt: Attempt, grace_s: float) -> Crossing:
    """An attempt that crossed, as a denial judges it; `grace_s` is its in-flight grace."""
    ends = attempt.lease_until + timedelta(seconds=settings.ENVIRONMENT.grace_s)
    fenced = attempt.fence_kind is FenceKind.KERNEL and not attempt.dead_proof
    return Crossing(
        attempt_id=attempt.id,
        fence=attempt.fence,
        lease_until=attempt.lease_until,
        dead_proof=str(attempt.dead_proof or ""),
        unlocks_at=unlocks_at(attempt, grace_s),
        dead_by=ends if fenced else None,
    )


def unlocks_at(attempt: Attempt, grace_s: float) -> datetime | None:
    """When denial of an attempt's effect unlocks; None while it is not proven dead.

    One that ended by its own report, parked perhaps, has its proof and no instant written yet.
    """
    written: datetime | None = attempt.unlocks_at
    died_at: datetime | None = attempt.dead_at
    if written is not None or not attempt.dead_proof or died_at is None:
        return written
    return died_at + timedelta(seconds=grace_s)


def _piece(row: Evidence) -> Piece:
    body = bytes(row.body[:QUOTED_CHARACTERS_MAX]).decode("utf-8", "replace")
    return Piece(
        id=row.id,
        kind=row.kind,
        finding=row.finding,
        by=row.by_name,
        adoptable=row.adoptable and row.kind == "late_result",
        text=body,
        size_bytes=row.size_bytes,
    )


def _decided(incident: Incident | None) -> Decided | None:
    pending = incident.pending if incident is not None else None
    if pending is None or is_dead_request(pending):
        return None
    return Decided(
        id=pending.id,
        by=pending.by_name,
        answer=str(pending.answer),
        at=pending.at,
        is_request=stages.of(pending) is ResolutionStage.REQUESTED,
    )


def is_dead_request(resolution: Resolution) -> bool:
    """Whether it waits for a second person although the file has moved since it was recorded."""
    if stages.of(resolution) is not ResolutionStage.REQUESTED:
        return False
    return any(
        each.at > resolution.at and each.id != resolution.id
        for each in changes.of(resolution.call_id)
    )


def _is_of_another(call: ToolCall, handle: HandleToStore) -> bool:
    return (
        Handle.objects.filter(
            workspace=call.workspace_id,
            kind=handle.kind,
            endpoint=handle.endpoint,
            value_hmac=secrets.keyed_hash(handle.value),
        )
        .exclude(call=call)
        .exists()
    )
