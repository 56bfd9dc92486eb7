"""Writes a plan as rows: turns, messages, calls with their first and only event, results.

In the caller's transaction. The statements are a constant number for each thousand rows. Calls
come before the results that point to their events; every row is new, so nothing is locked.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import orjson

from ledger import clock, journal, strictjson
from ledger.conversations import CONSUMER
from ledger.imports.plans import Plan, PlannedCall, PlannedMessage, PlannedTurn
from ledger.imports.tools import Keeping, Keepings
from ledger.journal import Move, Position
from ledger.models import Delivery, Message, Offer, Session, ToolCall, Turn
from ledger.models.fields import ClockTimestamp
from ledger.pipelines import write
from ledger.settlements import INSERT_RESULTS, RESULT_COLUMNS
from ledger.tables import table
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    Deadline,
    DeliveryKind,
    DeliveryMode,
    Effect,
    FailurePoint,
)

BATCH = 1000
UNKNOWN_POINT = FailurePoint.DURING_EXECUTION
"""Where an unanswered call is taken to have broken: the strictest reading, since nothing proves
another."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose session the rows go to, and who brought them, from which file."""

    session: Session
    by: Actor
    by_id: str
    file_sha256: str


@dataclass(frozen=True, slots=True)
class Kept:
    """One planned call with what it is kept under and where it stands."""

    call: PlannedCall
    turn: PlannedTurn
    step: int
    keeping: Keeping

    @property
    def state(self) -> CallState:
        answer = self.call.answer
        if answer is None:
            return CallState.INTERRUPTED
        return CallState.FAILED if answer.is_error else CallState.SUCCEEDED

    @property
    def effect(self) -> Effect:
        """What may be said of its effect (decision 0029).

        The tool's own answer says that it ran. An error says that nothing happened only where the
        policy says so; else it counts as happened, so that nothing repeats it unasked.
        """
        if self.keeping.reads:
            return Effect.NONE
        if self.state is CallState.INTERRUPTED:
            return Effect.POSSIBLE
        denies = self.keeping.policy.tool_error_means == "no_effect"
        if self.state is CallState.FAILED and denies:
            return Effect.DID_NOT_HAPPEN
        return Effect.HAPPENED


def write_plan(plan: Plan, owner: Owner, keepings: Keepings) -> list[UUID]:
    """Write everything; return the ids of the calls that are interrupted."""
    kept = list(_kept(plan, keepings))
    closed_as = _ends(plan, kept)
    for turns in _batches(plan.turns):
        Turn.objects.bulk_create([_turn(each, owner, closed_as[each.id]) for each in turns])
    for messages in _batches(plan.messages):
        Message.objects.bulk_create([_message(turn, each, owner) for turn, each in messages])
    for calls in _batches(kept):
        journal.record(
            [_row(each, owner) for each in calls], [_move(each, owner) for each in calls]
        )
        _write_results([each for each in calls if each.call.answer is not None], owner)
    _write_deliveries([each for each in kept if each.call.answer is not None], owner)
    Session.objects.filter(id=owner.session.id).update(version=plan.changes)
    return [each.call.id for each in kept if each.state is CallState.INTERRUPTED]


def _batches(rows: Sequence[T]) -> Iterator[list[T]]:
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        yield batch


def _kept(plan: Plan, keepings: Keepings) -> Iterator[Kept]:
    for turn, message in plan.messages:
        for call in message.calls:
            answered = call.answer is not None
            fits = not call.cut_off or answered
            found = keepings.of(call.name, call.arguments, answered=answered)
            usable = fits and found.effect_key(call.id, call.arguments) is not None
            yield Kept(call, turn, message.model_step or 0, found if usable else keepings.other)


def _ends(plan: Plan, kept: Sequence[Kept]) -> dict[UUID, str]:
    """How each turn ended: answered only if every call of it is settled (semantics, 13.1)."""
    unsettled = {each.turn.id for each in kept if each.state is CallState.INTERRUPTED}
    broken = {turn.id for turn, message in plan.messages if message.failed}
    return {
        turn.id: "interrupted" if turn.id in unsettled | broken else "answered"
        for turn in plan.turns
    }


def _turn(turn: PlannedTurn, owner: Owner, closed_as: str) -> Turn:
    return Turn(
        id=turn.id,
        workspace_id=owner.session.workspace_id,
        session=owner.session,
        number=turn.number,
        model=owner.session.model,
        closed_at=ClockTimestamp(),
        closed_as=closed_as,
    )


def _message(turn: PlannedTurn, message: PlannedMessage, owner: Owner) -> Message:
    return Message(
        id=message.id,
        workspace_id=owner.session.workspace_id,
        session=owner.session,
        turn_id=turn.id,
        position=message.position,
        role=message.role,
        model_step=message.model_step,
        format=message.format,
        parts=json.dumps(message.parts, ensure_ascii=False, separators=(",", ":")),
        stop_reason=message.stop_reason[:60],
        failed=message.failed,
        sha256=message.sha256,
    )


def _row(kept: Kept, owner: Owner) -> dict[str, Any]:
    call, keeping = kept.call, kept.keeping
    canonical = strictjson.canonical(call.arguments).decode()
    received = orjson.dumps(call.arguments).decode()
    key = keeping.effect_key(call.id, call.arguments) or call.id.hex
    return {
        "id": call.id,
        "workspace_id": owner.session.workspace_id,
        "agent_id": owner.session.agent_id,
        "session_id": owner.session.id,
        "turn_id": kept.turn.id,
        "tool_version_id": keeping.version_id,
        "policy_id": keeping.policy_id,
        "tool": call.name,
        "tool_call_id": call.provider_id,
        "model_step": kept.step,
        "position": call.position,
        "binding_epoch": owner.session.epoch,
        "arguments": canonical,
        "arguments_received": received if received != canonical else None,
        "arguments_sha256": strictjson.digest(call.arguments),
        "effect_key": key,
        "template_key": key if keeping.policy.key_template else None,
        "recovery_class": str(keeping.policy.recovery_class),
        "queue": "reads" if keeping.reads else "effects",
        "attempts_allowed": keeping.policy.retry.attempts,
    }


def _move(kept: Kept, owner: Owner) -> Move:
    facts: dict[str, Any] = {"file_sha256": owner.file_sha256, "entry": kept.call.entry}
    arm: dict[Deadline, float | None] = {}
    columns: dict[str, Any] = {}
    cause: Cause | None = None
    policy = kept.keeping.policy
    if kept.state is CallState.INTERRUPTED:
        cause = Cause.UNRECORDED
        facts |= {"failure_point": str(UNKNOWN_POINT), "cut_off": kept.call.cut_off}
        arm = {
            Deadline.NEXT_STEP: 0.0,
            Deadline.RECOVERY_WINDOW: policy.armed_window_s,
            Deadline.SCHEDULE_TO_CLOSE: policy.timeouts.schedule_to_close_s,
        }
        columns = {"cause": str(cause), "failure_point": str(UNKNOWN_POINT)}
    elif kept.call.answer is not None:
        facts |= {"answered_by": kept.call.answer.entry, "result_sha256": kept.call.answer.sha256}
        if kept.state is CallState.FAILED:
            cause = Cause.TOOL_ERROR
            columns = {"cause": str(cause), "error": kept.call.answer.text[:ERROR_CHARACTERS]}
    start = Position(kept.call.id, owner.session.workspace_id, None, kept.effect, 0)
    return Move(
        call=start, kind="imported", by=owner.by, by_id=owner.by_id, to=kept.state,
        effect=kept.effect, cause=cause, facts=facts, arm=arm, columns=columns,
    )  # fmt: skip


ERROR_CHARACTERS = 2000


def _write_results(kept: Sequence[Kept], owner: Owner) -> None:
    results = [
        (
            each.call.id,
            owner.session.workspace_id,
            0,
            1,
            answer.is_error,
            answer.media_type,
            answer.body,
            answer.sha256,
            len(answer.body),
            False,
            answer.why_not_json,
        )
        for each in kept
        if (answer := each.call.answer) is not None
    ]
    if results:
        text, parameters = table(RESULT_COLUMNS, results)
        write(INSERT_RESULTS.format(text), parameters)


def calls_of(ids: Sequence[UUID]) -> list[ToolCall]:
    """The calls of these ids, in their order, with their policies."""
    return list(ToolCall.objects.filter(id__in=ids).select_related("policy").order_by("id"))


def _write_deliveries(kept: Sequence[Kept], owner: Owner) -> None:
    """Note that each turn was shown its results: the transcript is what the model read (R96)."""
    now = clock.now()
    same = {"workspace_id": owner.session.workspace_id, "consumer": CONSUMER}
    moments = {"offered_at": now, "acknowledged_at": now}
    offers = {
        turn_id: Offer(session=owner.session, turn_id=turn_id, mode=DeliveryMode.APPEND_BOTH,
                       **same, **moments)
        for turn_id in dict.fromkeys(each.turn.id for each in kept)
    }  # fmt: skip
    for batch in _batches(list(offers.values())):
        Offer.objects.bulk_create(batch)
    for calls in _batches(kept):
        Delivery.objects.bulk_create(
            Delivery(
                offer=offers[each.turn.id],
                call_id=each.call.id,
                turn_id=each.turn.id,
                kind=DeliveryKind.REAL,
                sha256=each.call.answer.sha256 if each.call.answer else "",
                state=each.state,
                effect=each.effect,
                event_seq=1,
                **same,
                **moments,
            )
            for each in calls
        )
    ToolCall.objects.filter(id__in=[each.call.id for each in kept]).update(delivered_at=now)
