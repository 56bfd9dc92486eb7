"""What a person answers to a hold: let the call run, or not (semantics, 6.2 and 10).

A hold that waits for another call's settlement may be ended earlier by an approver; one that
asks a person ends in no other way. A twin of a call that is under way cannot be let go: its
outcome is on its way. The same answer twice is one; another answer is refused.

Letting a repeat of a side effect run may do the effect a second time: it takes a login of the
last minutes and is confirmed by typing, as such a decision on an incident is (console, section 7).
"""

from uuid import UUID

from ledger import holds, interrupts, journal, waiting
from ledger.errors import (
    InterruptAnswered,
    InterruptExpired,
    Invalid,
    NotFound,
    NotHeld,
    refuse_unconfirmed,
)
from ledger.journal import Move
from ledger.models import Interrupt, ToolCall
from ledger.permissions import Person, need_fresh_login
from ledger.transactions import repeatable
from ledger.vocabulary import Actor, CallState, HoldReason, InterruptEnd, RecoveryClass

ANSWERS = ("approve", "reject")
REPEATS = frozenset(
    {HoldReason.TWIN_UNRESOLVED, HoldReason.TWIN_ABANDONED, HoldReason.REPEAT_INTENDED}
)
"""Holds of a call whose effect may have happened already, by another call."""


@repeatable
def answer_hold(
    *, call_id: UUID, answer: str, grounds: str, by: Person, confirm: str = ""
) -> ToolCall:
    """Let a held call run (`approve`) or settle it as rejected (`reject`), on grounds.

    Raises NotFound, NotHeld, InterruptAnswered for another answer than the one given before,
    InterruptExpired where it came too late, Invalid without grounds, and LoginStale and
    ConfirmationRequired for a side effect that may happen a second time.
    """
    if answer not in ANSWERS or not grounds.strip():
        raise Invalid(detail=f"An answer is {' or '.join(ANSWERS)}, with grounds in one sentence.")
    call = (
        ToolCall.objects.select_for_update(of=("self",))
        .filter(workspace=by.workspace_id, id=call_id)
        .first()
    )
    if call is None:
        raise NotFound(noun="call")
    hold = holds.pending(call)
    if hold is None:
        _check_same(call, answer)
        return call
    _refuse_under_way(call, hold)
    if answer == "approve":
        _refuse_unconfirmed(call, hold, by, confirm)
        holds.release(call, hold, by=Actor.OPERATOR, by_id=str(by.id), grounds=grounds)
    else:
        _reject(call, hold, by_id=str(by.id), grounds=grounds)
    call.refresh_from_db()
    return call


def _check_same(call: ToolCall, answer: str) -> None:
    """Whether a person gave this very answer before; the last hold of the call says."""
    last = Interrupt.objects.filter(call=call, name=holds.NAME).order_by("-asked_at").first()
    if last is None or last.ended_as == InterruptEnd.WITHDRAWN:
        raise NotHeld(state=str(call.state))
    if last.ended_as == InterruptEnd.EXPIRED:
        raise InterruptExpired()
    if (last.answer, last.answered_by) != (answer, str(Actor.OPERATOR)):
        raise InterruptAnswered(by=last.answered_by, answer=last.answer)


def _refuse_under_way(call: ToolCall, hold: Interrupt) -> None:
    other = hold.waits_for
    resolved = other is None or other.state in (CallState.INTERRUPTED, CallState.AMBIGUOUS)
    is_twin = hold.reason in (HoldReason.TWIN_OPEN, HoldReason.TWIN_UNRESOLVED)
    if is_twin and not resolved:
        raise NotHeld(state=str(call.state))


def confirm_of(call: ToolCall, hold: Interrupt) -> str:
    """What is typed to let a held call run; empty where it can do no effect a second time."""
    repeats = hold.reason in REPEATS and call.recovery_class == RecoveryClass.SIDE_EFFECT
    return f"{call.tool} 1" if repeats else ""


def _refuse_unconfirmed(call: ToolCall, hold: Interrupt, by: Person, confirm: str) -> None:
    wanted = confirm_of(call, hold)
    if wanted:
        need_fresh_login(by)
    refuse_unconfirmed(wanted, confirm)


def _reject(call: ToolCall, hold: Interrupt, *, by_id: str, grounds: str) -> None:
    journal.append(
        [
            Move(
                call=call,
                kind="rejected",
                by=Actor.OPERATOR,
                by_id=by_id,
                facts={"reason": "rejected_person", "grounds": grounds, "interrupt": hold.id},
                columns={"reason": "rejected_person"},
            )
        ]
    )
    interrupts.end(
        [call.id], ended_as=InterruptEnd.ANSWERED, by=str(Actor.OPERATOR), by_id=by_id,
        answer="reject", grounds=grounds,
    )  # fmt: skip
    waiting.tell([call.id])
