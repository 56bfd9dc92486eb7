"""Handles: how work that goes on elsewhere is found again (R72; semantics, section 11).

A handle is committed the moment it is known; a parked call holds no worker, and its next poll
has a date. Values may be bearer secrets: encrypted at rest, never shown.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from ledger import attempts, journal, polls, secrets
from ledger.journal import Move
from ledger.models import (
    Handle,
    ToolCall,
)
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    CallState,
    Deadline,
    RecoveryClass,
)


def current_handle(call_id: UUID) -> Handle | None:
    """The newest handle of a call behind which work may still go on."""
    return (
        Handle.objects.filter(call=call_id, lost_at__isnull=True, ended_at__isnull=True)
        .order_by("-id")
        .first()
    )


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
    held = attempts.hold(call_id=call_id, fence=fence)
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


def attach(call: ToolCall, fence: int, handle: HandleToStore) -> None:
    """Follow a handle that a person found; one that was given up as lost is taken up again."""
    if not remember_handle(call, fence, handle):
        Handle.objects.filter(call=call, value_hmac=secrets.keyed_hash(handle.value)).update(
            lost_at=None, ended_at=None
        )


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

    Raises FenceLost. The next poll is dated, and no worker is held meanwhile. Repeated by the
    same fence it changes nothing.
    """
    held = attempts.hold_or_repeat(call_id=call_id, fence=fence, outcome="parked")
    if held is None:
        return
    remember_handle(held.call, fence, handle)
    stored = current_handle(call_id)
    asked = stored.polls if stored else 0
    next_s = poll_wait_s(handle.poll_after_s, asked)
    attempts.end(held.attempt, outcome="parked")
    if held.call.state is CallState.PARKED:
        Handle.objects.filter(call=call_id, lost_at__isnull=True).update(
            polls=asked + 1, poll_after_s=handle.poll_after_s
        )
        ended = polls.poll_ended(held.call, by=Actor.WORKER, fence=fence, next_s=next_s)
        ended.columns = {"reason": _known_now(held.call)}
        journal.append([ended])
        return
    arm: dict[Deadline, float | None] = {Deadline.NEXT_POLL: next_s, Deadline.HEARTBEAT: None}
    limit = _handle_bound(held.call, handle)
    columns = {"reason": ""}
    if limit is not None:
        arm[Deadline.SCHEDULE_TO_CLOSE] = limit
    journal.append([_handle_move(held.call, "parked", fence, handle, arm=arm, columns=columns)])


def _known_now(call: ToolCall) -> str:
    """The call's reason once the outside has known its handle: a pasted one is verified."""
    return "" if call.reason == "handle_unverified" else call.reason


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
