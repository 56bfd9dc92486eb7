"""The user interrupts a turn: what is settled is kept, and nothing new begins (R98 to R105).

`FATES` says row by row what becomes of a call (semantics, section 13). What runs before its
boundary is asked to stop and has a grace; the turn closes when that ends at the latest, by a
sweep of the watchdog (`recovery/turns.py`), so that it closes though whoever asked is gone. What
crossed its boundary is never touched, a call under a hand-off neither.

Locks: session, turn, then its calls in the order of their ids.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q

from ledger import dispatch, ids, interrupts, journal, messages, sessions, turn_events, waiting
from ledger.calls import AT_REST
from ledger.errors import TurnClosed
from ledger.journal import Move
from ledger.messages import Place
from ledger.models import HandOff, Interrupt, Session, ToolCall, Turn, TurnEvent
from ledger.models.calls import ToolCallQuerySet
from ledger.models.fields import ClockTimestamp
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    CallState,
    Deadline,
    Effect,
    HandOffEnd,
    InterruptEnd,
    Phase,
    TurnEventKind,
)

log = logging.getLogger(__name__)

GRACE_S = 10.0
GRACE_S_MAX = 30.0
REASON = "turn_interrupted"
"""Why a call that never ran, or had stopped, was cancelled."""


class Fate(StrEnum):
    """What an interruption does with one call."""

    KEPT = "kept"
    """Settled before: its result goes to the next turn."""

    CANCELLED = "cancelled"
    """Nothing ran that could have changed anything, so nothing will."""

    ASKED = "asked_to_stop"
    """It runs before its boundary: it may end within the grace, and is cancelled after it."""

    ASKED_OUTSIDE = "asked_outside"
    """Its work runs elsewhere, and the policy has that asked to end; the outside decides."""

    LEFT = "left"
    """It goes on, and its outcome goes to the next turn."""


class Standing(NamedTuple):
    """What the fate of a call depends on."""

    state: CallState
    effect: Effect
    after_tool: bool = False
    keep_running: bool = False
    cancel_parked: bool = False
    handed_over: bool = False


def fate_of(call: Standing) -> Fate:
    """The row of the table that a call falls under."""
    if call.state not in FATES:
        return Fate.KEPT
    return Fate.LEFT if call.handed_over else FATES[call.state](call)


def _at_rest(call: Standing) -> Fate:
    has_an_effect_behind_it = call.effect in (Effect.POSSIBLE, Effect.HAPPENED) or call.after_tool
    return Fate.LEFT if has_an_effect_behind_it or call.keep_running else Fate.CANCELLED


def _at_work(call: Standing) -> Fate:
    return Fate.LEFT if call.effect is Effect.POSSIBLE or call.keep_running else Fate.ASKED


def _elsewhere(call: Standing) -> Fate:
    return Fate.ASKED_OUTSIDE if call.cancel_parked else Fate.LEFT


def _in_doubt(call: Standing) -> Fate:
    return Fate.LEFT


FATES: dict[CallState, Callable[[Standing], Fate]] = {
    **dict.fromkeys(AT_REST, _at_rest),
    CallState.RUNNING: _at_work,
    CallState.PARKED: _elsewhere,
    CallState.INTERRUPTED: _in_doubt,
    CallState.AMBIGUOUS: _in_doubt,
}
"""By state; one that is not here is settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Who interrupts and why; `said_until` counts the characters that the user heard or read.

    `actor` is who is named in the events: the agent, unless a person interrupts it.
    """

    by: str = ""
    grounds: str = ""
    said_until: int | None = None
    grace_s: float = GRACE_S
    actor: Actor = Actor.AGENT
    actor_id: str = ""

    def named(self, agent_id: UUID) -> dict[str, Any]:
        """The actor as events take one."""
        by_agent = self.actor is Actor.AGENT
        return {"by": self.actor, "by_id": agent_id.hex if by_agent else self.actor_id}

    @property
    def facts(self) -> dict[str, object]:
        given = {"who": self.by, "grounds": self.grounds, "said_until": self.said_until}
        return {name: value for name, value in given.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A turn after its interruption: its calls by fate, each in the order of step and position."""

    turn: Turn
    calls: dict[Fate, list[UUID]] = field(default_factory=dict)
    new: bool = True

    @property
    def clean(self) -> bool:
        """Whether nothing is left of the turn's calls that the next turn has to hear of."""
        return not any(self.calls.get(fate) for fate in Fate if fate is not Fate.CANCELLED)


@repeatable
def interrupt(place: Place, wish: Wish) -> Interrupted:
    """Interrupt an open turn; asking again changes nothing and answers the same.

    Raises NotFound, and TurnClosed where the turn had ended otherwise before.
    """
    session, _ = messages.held(place)
    # Submits hold the turn's row, shared: what is committed before is seen, the rest refused.
    turn = Turn.objects.select_for_update(no_key=True).get(id=place.turn_id)
    if turn.interrupted_at is not None:
        return _as_before(turn)
    if turn.closed_at is not None:
        raise TurnClosed()
    calls = list(_calls_of(turn).order_by("id").select_for_update(of=("self",)))
    fates = _fates(session, calls)
    for call in calls:
        _ACTS[fates[call.id]](call, wish)
    _begin(turn, wish)
    by_fate = _sorted(calls, fates)
    _write(turn, wish, by_fate)
    close_if_over(session, turn)
    waiting.tell([call.id for call in calls if fates[call.id] is not Fate.KEPT])
    turn.refresh_from_db()
    return Interrupted(turn, by_fate)


def foresee(turn: Turn) -> dict[Fate, list[ToolCall]]:
    """What `interrupt` would do with the turn's calls now, by the same table; changes nothing."""
    calls = list(_calls_of(turn).select_related("policy").order_by("model_step", "position", "id"))
    fates = _fates(turn.session, calls)
    return {fate: [each for each in calls if fates[each.id] is fate] for fate in Fate}


def _calls_of(turn: Turn) -> ToolCallQuerySet:
    return ToolCall.objects.filter(session=turn.session_id, turn=turn)


# Which fate


def _fates(session: Session, calls: Iterable[ToolCall]) -> dict[UUID, Fate]:
    left = [call.id for call in calls if not call.is_settled]
    after = set(
        Interrupt.objects.filter(
            call__in=left, ended_at__isnull=True, phase=Phase.AFTER_TOOL
        ).values_list("call_id", flat=True)
    )
    given = handed_over(session, left)
    return {call.id: fate_of(_standing(call, call.id in after, call.id in given)) for call in calls}


def _standing(call: ToolCall, after_tool: bool, handed_over: bool) -> Standing:
    if call.is_settled:
        return Standing(call.state, call.effect)
    policy = call.policy.call_policy
    return Standing(
        call.state,
        call.effect,
        after_tool,
        policy.keep_running,
        policy.cancel_parked,
        handed_over,
    )


def handed_over(session: Session, call_ids: list[UUID]) -> set[UUID]:
    """Those of a session's open calls that a hand-off holds: offered by it, or taken by another."""
    is_offered = HandOff.objects.filter(from_session=session, ended_at__isnull=True).exists()
    if is_offered or not call_ids:
        return set(call_ids)
    taken = HandOff.objects.filter(calls__overlap=call_ids, ended_as=HandOffEnd.ACCEPTED)
    return {call_id for each in taken for call_id in each.calls} & set(call_ids)


# What is done


def _leave(call: ToolCall, wish: Wish) -> None:
    """Nothing is done to it."""


def _cancel(call: ToolCall, wish: Wish) -> None:
    _move(call, "cancelled", wish, columns={"reason": REASON})
    named = wish.named(call.agent_id)
    interrupts.end([call.id], ended_as=InterruptEnd.WITHDRAWN, by=str(named["by"]),
                   by_id=named["by_id"])  # fmt: skip


def _ask(call: ToolCall, wish: Wish) -> None:
    if call.cancel_requested_at is None:
        _move(call, "cancel_requested", wish)
        ToolCall.objects.filter(id=call.id).update(cancel_requested_at=ClockTimestamp())


def _ask_outside(call: ToolCall, wish: Wish) -> None:
    """Have the outside asked at once; a poll under way is not disturbed and asks the next time."""
    if call.cancel_requested_at is None:
        arm = {} if call.heartbeat_at is not None else {Deadline.NEXT_POLL: 0.0}
        _move(call, "cancel_requested", wish, arm=arm)
        ToolCall.objects.filter(id=call.id).update(cancel_requested_at=ClockTimestamp())
        dispatch.ring_after_commit(["control"], call.id)


def _move(call: ToolCall, kind: str, wish: Wish, **more: Any) -> None:
    facts = {"turn_interrupted": ids.shown("turn", call.turn_id)} if call.turn_id else {}
    named = wish.named(call.agent_id)
    journal.append([Move(call=call, kind=kind, facts=facts, **named, **more)])


_ACTS: dict[Fate, Callable[[ToolCall, Wish], None]] = {
    Fate.KEPT: _leave,
    Fate.CANCELLED: _cancel,
    Fate.ASKED: _ask,
    Fate.ASKED_OUTSIDE: _ask_outside,
    Fate.LEFT: _leave,
}


def _begin(turn: Turn, wish: Wish) -> None:
    """Date the end of the grace; from the commit on the turn takes no call."""
    Turn.objects.filter(id=turn.id).update(
        interrupted_at=ClockTimestamp(),
        grace_until=ClockTimestamp() + timedelta(seconds=wish.grace_s),
    )


def are_interrupted(turn_ids: Sequence[UUID]) -> list[bool]:
    """Whether each of these turns was interrupted."""
    found = Turn.objects.filter(id__in=turn_ids, interrupted_at__isnull=False)
    known = set(found.values_list("id", flat=True))
    return [turn_id in known for turn_id in turn_ids]


# The end of the grace


def still_stopping(turn: Turn) -> ToolCallQuerySet:
    """The calls that were asked to stop, and that the turn's end waits for."""
    return (
        _calls_of(turn)
        .open()
        .filter(cancel_requested_at__isnull=False, state__in=[CallState.RUNNING, *AT_REST])
        .filter(~Q(effect=Effect.POSSIBLE))
    )


def close_if_over(session: Session, turn: Turn) -> bool:
    """Close an interrupted turn that waits for nobody, under its locks; False while it does."""
    if still_stopping(turn).exists():
        return False
    close(session, turn)
    return True


def close(session: Session, turn: Turn) -> None:
    """Close an interrupted turn, and say which results its grace brought beside the kept ones."""
    kept = list(_kept(turn))
    known = {
        each
        for event in TurnEvent.objects.filter(turn=turn, kind=TurnEventKind.PRESERVED)
        for each in event.facts["calls"]
    }
    _preserved(turn, [each for each in kept if ids.shown("call", each) not in known], Actor.LEDGER)
    sessions.close_held(session, turn, "interrupted", by=Actor.LEDGER)


def _kept(turn: Turn) -> Iterable[UUID]:
    """The calls that brought a result or an error of their tool's own, in order."""
    found = _calls_of(turn).filter(state__in=[CallState.SUCCEEDED, CallState.FAILED])
    return found.order_by("model_step", "position", "id").values_list("id", flat=True)


# What is written of it


def _sorted(calls: Iterable[ToolCall], fates: dict[UUID, Fate]) -> dict[Fate, list[UUID]]:
    ordered = sorted(calls, key=lambda call: (call.model_step, call.position, call.id))
    return {fate: [call.id for call in ordered if fates[call.id] is fate] for fate in Fate}


def _write(turn: Turn, wish: Wish, by_fate: dict[Fate, list[UUID]]) -> None:
    named: dict[str, Any] = wish.named(turn.session.agent_id)
    facts: dict[str, Any] = wish.facts
    shown = {str(fate): turn_events.shown("call", found) for fate, found in by_fate.items()}
    turn_events.note(
        turn, TurnEventKind.INTERRUPTED, **named, grace_s=wish.grace_s, calls=shown, **facts
    )
    _preserved(turn, list(_kept(turn)), named["by"], named["by_id"])


def _preserved(turn: Turn, kept: list[UUID], by: Actor, by_id: str = "") -> None:
    if kept:
        calls = turn_events.shown("call", kept)
        turn_events.note(turn, TurnEventKind.PRESERVED, by=by, by_id=by_id, calls=calls)
        log.info("result.preserved turn=%s calls=%s", turn.id.hex, ",".join(calls))


def _as_before(turn: Turn) -> Interrupted:
    """What the interruption of this turn did, from its event."""
    event = TurnEvent.objects.get(turn=turn, kind=TurnEventKind.INTERRUPTED)
    found = event.facts["calls"]
    calls = {fate: [ids.read("call", each) for each in found[fate]] for fate in Fate}
    return Interrupted(turn, calls, new=False)
