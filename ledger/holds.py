"""Holds: calls that the ledger keeps from running until another call is known (R68, R46).

A new call is paused by an interrupt `hold` in the transaction that records it. One that was
scheduled before the doubt arose makes no move: while the hold is in force the claim passes it by
(`FREE`) and its schedule-to-start stands still. Nobody who settles a call knows of holds: a sweep
asks which have lost their reason, so that a crash in between costs one sweep and never a call.

Locks: the held call; the other one is only read, and what moves it later is the next sweep's.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from ledger import dispatch, interrupts, journal, pipelines, versions, waiting
from ledger.journal import Move
from ledger.models import Interrupt, Result, ToolCall
from ledger.vocabulary import (
    ASKS_PERSON,
    Actor,
    CallState,
    Deadline,
    Effect,
    HoldReason,
    InterruptEnd,
)

NAME = "hold"
EXPIRES_S = 24 * 3600.0
"""How long a hold waits for an answer (semantics, 12.13)."""

# A side effect that may have happened, with nobody at work who could say so. The policy is read
# only where a call matches, which is rare. Served by the partial index `call_holds_turn`.
BLOCKS = (
    "b.state IN ('interrupted', 'ambiguous') AND b.effect = 'possible' "
    "AND b.recovery_class = 'side_effect' AND b.turn_id IS NOT NULL AND NOT EXISTS "
    "(SELECT FROM ledger_policy p WHERE p.id = b.policy_id "
    "AND p.document ->> 'hold_dependents' = 'false')"
)
HOLDS_C = (
    "EXISTS (SELECT FROM ledger_toolcall b WHERE b.turn_id = c.turn_id "
    f"AND b.recorded_at < c.recorded_at AND {BLOCKS})"
)
FREE = f"(c.turn_id IS NULL OR c.recovery_class = 'read_only' OR NOT {HOLDS_C})"
"""A condition of the claim on the call `c`: no hold is in force on it."""

ENDS = (
    "CASE i.reason WHEN 'waiting_for_call' "
    f"THEN NOT EXISTS (SELECT FROM ledger_toolcall b WHERE b.id = i.waits_for_id AND {BLOCKS}) "
    "ELSE o.id IS NULL OR o.settled_at IS NOT NULL END"
)


def due(limit: int) -> list[UUID]:
    """The calls whose hold has lost its reason, in the order of their ids."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.call_id FROM ledger_interrupt i "  # noqa: S608 constants of this module
            "LEFT JOIN ledger_toolcall o ON o.id = i.waits_for_id "
            "WHERE i.ended_at IS NULL AND i.name = %s AND i.waits_for_id IS NOT NULL "
            f"AND i.reason <> ALL(%s) AND {ENDS} "
            "ORDER BY i.call_id LIMIT %s",
            [NAME, sorted(ASKS_PERSON), limit],
        )
        return [row[0] for row in cursor.fetchall()]


def pending(call: ToolCall) -> Interrupt | None:
    """The hold that a call waits in, if it does."""
    return Interrupt.objects.filter(call=call, name=NAME, ended_at__isnull=True).first()


def waited_for(call_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Which call each of these waits for in its hold, or waited for in its last one."""
    holds = Interrupt.objects.filter(call__in=call_ids, name=NAME, waits_for__isnull=False)
    return dict(holds.order_by("asked_at").values_list("call_id", "waits_for_id"))


def end(call: ToolCall) -> bool:
    """End the hold of a locked call if its reason is gone, seen again; False if it goes on."""
    hold = pending(call)
    if hold is None or hold.reason in ASKS_PERSON or hold.waits_for_id is None:
        return False
    if hold.reason == HoldReason.WAITING_FOR_CALL:
        return _end_dependence(call, hold)
    # Nothing keeps the other in place but this product: whoever waits for nobody is let go.
    other = ToolCall.objects.filter(id=hold.waits_for_id).first()
    if other is not None and not other.is_settled:
        return False
    if other is None or call.twin_of_id is None:
        release(call, hold, by=Actor.LEDGER)
    else:
        _answer_twin(call, other)
    return True


def _end_dependence(call: ToolCall, hold: Interrupt) -> bool:
    """Let a dependent call go, unless its turn waits for another by now."""
    blocker = blocker_of(call)
    if blocker is None:
        release(call, hold, by=Actor.LEDGER)
        return True
    if blocker == hold.waits_for_id:
        return False
    Interrupt.objects.filter(id=hold.id).update(waits_for=blocker)
    return True


def blocker_of(call: ToolCall) -> UUID | None:
    """The earliest call that this one's turn waits for."""
    return _blocker(call.turn_id, "AND b.recorded_at < %s", [call.recorded_at])


def blocker_in(turn_id: UUID) -> UUID | None:
    """The call on whose account no turn may go on by itself (semantics, 6.2)."""
    return _blocker(turn_id, "", [])


def _blocker(turn_id: UUID | None, more: str, parameters: Sequence[Any]) -> UUID | None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT b.id FROM ledger_toolcall b WHERE b.turn_id = %s {more} AND {BLOCKS} "  # noqa: S608 constants of this module
            "ORDER BY b.recorded_at LIMIT 1",
            [turn_id, *parameters],
        )
        row = cursor.fetchone()
        return row[0] if row else None


def release(
    call: ToolCall, hold: Interrupt, *, by: Actor, by_id: str = "", grounds: str = ""
) -> None:
    """Let a held call run: published anew, with the rest of its schedule-to-close.

    A twin that a person lets run is an intent of its own from then on.
    """
    times = versions.policy_of(call).timeouts
    facts = {"answer": "approve", "interrupt": hold.id, "reason": hold.reason}
    _move(
        call,
        kind="interrupt_answered",
        to=CallState.SCHEDULED,
        by=by,
        by_id=by_id,
        facts=facts | ({"grounds": grounds} if grounds else {}),
        arm={
            Deadline.SCHEDULE_TO_START: times.schedule_to_start_s,
            Deadline.SCHEDULE_TO_CLOSE: hold.left_s,
        },
        columns={"reason": "", "twin_of_id": None, "ring_at": dispatch.RING_AGAIN_S[0]},
    )
    _move(call, kind="scheduled", by=Actor.LEDGER, facts={"attempt": 1})
    interrupts.end(
        [call.id], ended_as=InterruptEnd.ANSWERED, by=str(by), by_id=by_id, answer="approve",
        grounds=grounds,
    )  # fmt: skip
    dispatch.ring_after_commit([call.queue], call.id)


def _answer_twin(call: ToolCall, other: ToolCall) -> None:
    """Settle a twin with the other's result, or as cancelled with the other's text (R46)."""
    has_result = other.state is CallState.SUCCEEDED and Result.objects.filter(call=other).exists()
    answer = "replayed" if has_result else "cancelled"
    facts = {"answer": answer, "twin_of": other.id.hex, "outcome": str(other.state)}
    if has_result:
        _move(call, kind="interrupt_answered", to=CallState.SUCCEEDED, by=Actor.LEDGER,
              effect=effect_of_twin(call.effect), facts=facts)  # fmt: skip
        copy_results([(call.id, other.id, call.seq)])
    else:
        _move(call, kind="cancelled", by=Actor.LEDGER, facts=facts)
    interrupts.end([call.id], ended_as=InterruptEnd.ANSWERED, by=str(Actor.LEDGER), answer=answer)
    waiting.tell([call.id])


def effect_of_twin(effect: Effect) -> Effect:
    """What a twin that was answered with a result changed: nothing, since it never ran."""
    return Effect.NONE if effect is Effect.NONE else Effect.DID_NOT_HAPPEN


def copy_results(copies: Sequence[tuple[UUID, UUID, int]]) -> None:
    """Give twins the results of others: (twin, other, number of the settling event).

    A row of its own, so that each reader finds the result of a call in one place, and erasing
    one call's payload does not reach into another's. Fence 0: no attempt brought it.
    """
    pipelines.write(
        "INSERT INTO ledger_result (call_id, workspace_id, fence, event_seq, is_error, "
        "media_type, body, sha256, size_bytes, truncated, why_not_json) "
        "SELECT v.twin, r.workspace_id, 0, v.seq, r.is_error, r.media_type, r.body, r.sha256, "
        "r.size_bytes, r.truncated, r.why_not_json FROM unnest(%s::uuid[], %s::uuid[], "
        "%s::int[]) AS v(twin, other, seq) JOIN ledger_result r ON r.call_id = v.other",
        [list(column) for column in zip(*copies, strict=True)],
    )


def expire(call: ToolCall) -> bool:
    """Settle a locked call that was held for too long: nobody answered, and nobody said no."""
    hold = pending(call)
    if hold is None:
        return False
    _move(
        call,
        kind="expired",
        by=Actor.WATCHDOG,
        facts={"deadline": str(Deadline.INTERRUPT_EXPIRY), "interrupt": hold.id},
        columns={"reason": "held"},
    )
    interrupts.end([call.id], ended_as=InterruptEnd.EXPIRED, by=str(Actor.WATCHDOG))
    waiting.tell([call.id])
    return True


def _move(call: ToolCall, **move: Any) -> None:
    journal.append([Move(call=call, **move)])


STAND_STILL = f"""
    WITH newly AS (
        SELECT c.id FROM ledger_toolcall b JOIN ledger_toolcall c
            ON c.session_id = b.session_id AND c.turn_id = b.turn_id
         WHERE {BLOCKS} AND c.state = 'scheduled' AND c.recovery_class <> 'read_only'
           AND c.recorded_at > b.recorded_at
           AND (c.held_at IS NULL OR c.held_at < c.published_at)
         ORDER BY c.id LIMIT %(limit)s FOR UPDATE OF c SKIP LOCKED)
    UPDATE ledger_toolcall SET held_at = clock_timestamp() FROM newly
     WHERE ledger_toolcall.id = newly.id"""  # noqa: S608 constants of this module
GO_ON = f"""
    WITH free AS (
        SELECT c.id FROM ledger_toolcall c
         WHERE c.state = 'scheduled' AND c.held_at IS NOT NULL AND NOT {HOLDS_C}
         ORDER BY c.id LIMIT %(limit)s FOR UPDATE OF c SKIP LOCKED)
    UPDATE ledger_toolcall c SET held_at = NULL,
        schedule_to_start_at = schedule_to_start_at + CASE WHEN held_at >= published_at
            THEN clock_timestamp() - held_at ELSE interval '0' END
      FROM free WHERE c.id = free.id RETURNING c.queue"""  # noqa: S608 constants of this module


def stand_still(limit: int) -> int:
    """Stop the schedule-to-start of scheduled calls that are held, and let it go on afterwards.

    What a call had left when the sweep first found it held, it has again when it is free.
    """
    with connection.cursor() as cursor:
        cursor.execute(STAND_STILL, {"limit": limit})
        stopped = int(cursor.rowcount)
        cursor.execute(GO_ON, {"limit": limit})
        queues = {row[0] for row in cursor.fetchall()}
    if queues:
        dispatch.ring_after_commit(queues)
    return stopped + len(queues)
