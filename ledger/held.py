"""A call that is held from its recording: its moves, its interrupt, and a twin's result.

All of it goes into the transaction that records the call, so that no held call is ever without
the question that it waits for (I28). A twin of a call that is done is answered right there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ledger import holds, interrupts
from ledger.interrupts import Raised
from ledger.journal import Move, Position
from ledger.repeats import Found
from ledger.twins import Ruling
from ledger.vocabulary import Actor, CallState, Deadline, Effect, HoldReason, Phase, RecoveryClass


@dataclass(frozen=True, slots=True)
class Held:
    """Why a new call does not run, which call it refers to, and how it is answered at once."""

    reason: HoldReason
    waits_for: UUID
    is_twin: bool
    answer: str = ""

    @property
    def state(self) -> CallState:
        """Where the call stands once it is recorded."""
        if self.answer:
            return CallState.SUCCEEDED if self.answer == "replayed" else CallState.CANCELLED
        return CallState.PAUSED


def held(ruling: Ruling | None, found: Found, recovery_class: RecoveryClass) -> Held | None:
    """How a new call is held: by the rule of twins, else by what its turn waits for."""
    if ruling is not None:
        other, is_twin = ruling.other, ruling.reason is not HoldReason.SAME_TARGET
        return Held(ruling.reason, other.id, is_twin, _answer(ruling))
    if found.blocked_by is not None and recovery_class is not RecoveryClass.READ_ONLY:
        return Held(HoldReason.WAITING_FOR_CALL, found.blocked_by, is_twin=False)
    return None


def _answer(ruling: Ruling) -> str:
    if ruling.reason is not HoldReason.TWIN_DONE:
        return ""
    other = ruling.other
    is_given = other.has_result and other.state is CallState.SUCCEEDED
    return "replayed" if is_given else "cancelled"


def moves(why: Held, after: Position) -> list[Move]:
    """The moves that follow `recorded`; `after` is where it led."""
    paused = Position(after.id, after.workspace_id, CallState.PAUSED, after.effect, after.seq + 1)
    raised = Move(
        call=after,
        kind="interrupt_raised",
        by=Actor.LEDGER,
        facts={
            "interrupt": interrupts.interrupt_id(Phase.BEFORE_TOOL, after.id, 1, holds.NAME),
            "phase": str(Phase.BEFORE_TOOL),
            "reason": str(why.reason),
            "waits_for": why.waits_for.hex,
        },
        arm={Deadline.INTERRUPT_EXPIRY: holds.EXPIRES_S},
        columns={"reason": str(why.reason)},
    )
    return [raised, _answered(why, paused)] if why.answer else [raised]


def _answered(why: Held, paused: Position) -> Move:
    facts = {"answer": why.answer, "twin_of": why.waits_for.hex}
    columns = {"reason": str(why.reason)}
    if why.answer == "cancelled":
        return Move(call=paused, kind="cancelled", by=Actor.LEDGER, facts=facts, columns=columns)
    return Move(
        call=paused,
        kind="interrupt_answered",
        to=CallState.SUCCEEDED,
        by=Actor.LEDGER,
        effect=holds.effect_of_twin(paused.effect or Effect.NOT_BEGUN),
        facts=facts,
        columns=columns,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A held call whose rows are still to be written beside its own."""

    call_id: UUID
    workspace_id: UUID
    why: Held
    tool: str
    tool_call_id: str
    arguments: Mapping[str, Any]
    policy_version: int
    left_s: float


EVENTS_UNTIL_ANSWERED = 3


def write(written: Sequence[Written], *, taken_at: datetime) -> None:
    """Write the interrupts, and the results of those that were answered at once."""
    interrupts.write([_raised(each, taken_at) for each in written])
    replayed = [each for each in written if each.why.answer == "replayed"]
    if replayed:
        holds.copy_results(
            [(each.call_id, each.why.waits_for, EVENTS_UNTIL_ANSWERED) for each in replayed]
        )


def _raised(each: Written, taken_at: datetime) -> Raised:
    return Raised(
        call_id=each.call_id,
        workspace_id=each.workspace_id,
        phase=Phase.BEFORE_TOOL,
        name=holds.NAME,
        reason=str(each.why.reason),
        waits_for=each.why.waits_for,
        expires_s=holds.EXPIRES_S,
        left_s=each.left_s,
        answer=each.why.answer,
        snapshot=interrupts.snapshot_of(
            call_id=each.call_id,
            phase=Phase.BEFORE_TOOL,
            policy_version=each.policy_version,
            tool=each.tool,
            arguments=each.arguments,
            tool_call_id=each.tool_call_id,
            taken_at=taken_at,
        ),
    )
