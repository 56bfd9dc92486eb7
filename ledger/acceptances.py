"""Acceptances: a hand-off takes place, whole or not at all (R108, R109).

The set is fixed under both sessions' locks and those of the calls, and the owner of each call
changes in the same transaction, with an event on it. Nothing else of a call changes: attempts,
leases, deadlines, budgets, interrupts and deliveries stay, and no running attempt is fenced. What
comes later, a late result too, goes to the owner of the day (`ledger/unresolved.py`).

Locks: sessions in the order of their ids, hand-off, turn, calls in the order of their ids, appends.
"""

from uuid import UUID

from django.db.models import F

from ledger import bindings, faults, journal, registered, unresolved
from ledger.errors import BindingDrift, HandOffRefused, Invalid, NotFound
from ledger.handoffs import Receiver, end, locked, offered_to, refuse_ended
from ledger.journal import Move
from ledger.models import HandOff, Session, ToolCall, Turn
from ledger.models.fields import ClockTimestamp
from ledger.transactions import repeatable
from ledger.vocabulary import Actor, HandOffEnd, spoken

NEEDED_SCOPE = "calls:submit"
"""Who owns a call must be allowed to use its tool."""


class HandOffLoses(RuntimeError):
    """An acceptance leaves a call behind. A fault of ours; nothing was written."""


@repeatable
def accept(*, hand_off_id: UUID, by: Receiver) -> tuple[HandOff, bool]:
    """Take over every unresolved call of the sender; accepting twice is one, and gives False.

    The sender's open turn closes as `handed_off`, its epoch rises, and both transcripts' versions.
    Raises NotFound, HandOffEnded, HandOffRefused, StaleEpoch and BindingDrift: the sender keeps
    its calls then, and the offer stands.
    """
    offered = offered_to(hand_off_id, by)
    session_id = by.session_id or offered.to_session_id
    if session_id is None:
        raise Invalid(detail="An acceptance names the session that takes the calls.")
    sessions = locked({offered.from_session_id, session_id}, by.workspace_id)
    row = HandOff.objects.select_for_update(of=("self",)).get(id=offered.id)
    receiver, sender = sessions[session_id], sessions[row.from_session_id]
    if receiver.agent_id != row.to_agent_id or receiver.id == sender.id:
        raise NotFound(noun="session")
    if row.ended_as == HandOffEnd.ACCEPTED and row.to_session_id == receiver.id:
        return row, False
    refuse_ended(row)
    _refuse_receiver(row, receiver, by)
    turn = _open_turn(sender)
    calls = unresolved.held(sender.id)
    _refuse_place(sender, receiver, calls)
    end(row, HandOffEnd.ACCEPTED, to_session_id=receiver.id, calls=[call.id for call in calls])
    _change_owner(row, calls, by)
    _go_on(sender, receiver, turn)
    _compare(row, calls)
    first = calls[0] if calls else None
    faults.point("during_handoff", first.id if first else None, first.tool if first else "")
    return row, True


def _refuse_receiver(row: HandOff, receiver: Session, by: Receiver) -> None:
    bindings.check_epoch(receiver, by.epoch)
    if row.to_session_id not in (None, receiver.id):
        raise HandOffRefused(
            why="The calls were offered to another session of this agent.",
            remedy="Accept it from that one, or have it declined and offered anew.",
        )
    if row.to_model and row.to_model != receiver.model:
        raise BindingDrift(field="model")
    if receiver.stopped_at is not None:
        raise HandOffRefused(
            why="A person stopped the receiving session.",
            remedy="Let it go on first, or take another session.",
        )
    if NEEDED_SCOPE not in by.scopes:
        raise HandOffRefused(
            why=f"The receiver's key lacks {NEEDED_SCOPE}, the right to use the tools of the set.",
            remedy="Accept it with a key that has it.",
        )


def _refuse_place(sender: Session, receiver: Session, calls: list[ToolCall]) -> None:
    """Tools that touch files or processes would go on in another place than asked for."""
    versions = [call.tool_version for call in calls]
    if all(registered.is_remote(each.executor, each.effect_kinds) for each in versions):
        return
    for name in ("working_directory", "host"):
        if getattr(sender, name) != getattr(receiver, name):
            raise BindingDrift(field=spoken(name))


def _open_turn(sender: Session) -> Turn | None:
    rows = Turn.objects.select_for_update(no_key=True)
    return rows.filter(session=sender, closed_at__isnull=True).first()


def _change_owner(row: HandOff, calls: list[ToolCall], by: Receiver) -> None:
    facts = {
        "hand_off": row.id.hex,
        "to_session": row.to_session_id.hex if row.to_session_id else "",
    }
    moves = [
        Move(
            call=call, kind="handed_off", by=Actor.AGENT, by_id=by.agent_id.hex, facts=facts,
            columns={"handed_off_id": row.id},
        )
        for call in sorted(calls, key=lambda each: each.id)
    ]  # fmt: skip
    if moves:
        journal.append(moves)


def _go_on(sender: Session, receiver: Session, turn: Turn | None) -> None:
    """Both transcripts went on; who still acts for the sender must read it again first."""
    if turn is not None:
        Turn.objects.filter(id=turn.id).update(closed_at=ClockTimestamp(), closed_as="handed_off")
    Session.objects.filter(id=sender.id).update(version=F("version") + 1, epoch=F("epoch") + 1)
    Session.objects.filter(id=receiver.id).update(version=F("version") + 1)


def _compare(row: HandOff, calls: list[ToolCall]) -> None:
    """Nothing is left behind, and every call of the set has come."""
    assert row.to_session_id is not None  # noqa: S101 it was accepted just now
    left = unresolved.of_session(row.from_session_id)
    come = {call.id for call in unresolved.of_session(row.to_session_id)}
    if left or not {call.id for call in calls} <= come:
        raise HandOffLoses(f"{len(left)} calls of hand-off {row.id} would have been left behind.")
