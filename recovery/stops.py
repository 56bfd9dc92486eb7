"""Stopping a session: no new attempt, and nothing past its boundary is touched (R50).

What is at rest is cancelled; with an effect possible it goes up the ladder, which repeats nothing
while the session is stopped. What runs is asked to stop before its boundary. Settled results stay,
and new calls are recorded and rejected at once, since each tool call id needs an answer.

Locks: session, then its calls in the order of their ids, then appends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from ledger import calls, interrupts, journal, unresolved, waiting
from ledger.errors import Invalid, NotFound
from ledger.journal import Move
from ledger.models import Attempt, Session, SessionChange, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.transactions import repeatable
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    Deadline,
    Effect,
    FailurePoint,
    InterruptEnd,
    Phase,
)
from recovery import incidents


@dataclass(frozen=True, slots=True)
class Person:
    """Who stops a session, and why."""

    id: str
    name: str
    grounds: str


@repeatable
def stop(*, workspace_id: UUID, session_id: UUID, by: Person) -> Session:
    """Stop a session; stopping it again changes nothing. Raises NotFound, and Invalid."""
    session = _locked(workspace_id, session_id, by)
    if session.stopped_at is not None:
        return session
    _note(session, "stopped", by, stopped_at=ClockTimestamp())
    found = (
        ToolCall.objects.open()
        .filter(unresolved.owned_by(session.id))
        .order_by("id")
        .select_for_update(of=("self",))
    )
    for call in found:
        _stop_call(call, by)
    return session


@repeatable
def resume(*, workspace_id: UUID, session_id: UUID, by: Person) -> Session:
    """Let a stopped session take calls again. What was cancelled stays so. Raises as `stop`."""
    session = _locked(workspace_id, session_id, by)
    if session.stopped_at is not None:
        _note(session, "resumed", by, stopped_at=None)
    return session


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What `stop` would do with a session's open calls now; those it leaves alone go on."""

    cancelled: list[ToolCall]
    to_the_ladder: list[ToolCall]
    asked: list[ToolCall]
    left: list[ToolCall]


def foresee(session: Session) -> Foreseen:
    """Sort the open calls as `stop` does; nothing is locked or changed."""
    found = Foreseen([], [], [], [])
    lists: dict[Callable[[ToolCall, Person], None], list[ToolCall]] = {
        _cancel: found.cancelled,
        _interrupt: found.to_the_ladder,
        _ask_to_stop: found.asked,
    }
    for call in ToolCall.objects.open().filter(unresolved.owned_by(session.id)).order_by("id"):
        act = _act_of(call)
        if act is None or act is _ask_to_stop and _has_crossed(call):
            found.left.append(call)
        else:
            lists[act].append(call)
    return found


def _locked(workspace_id: UUID, session_id: UUID, by: Person) -> Session:
    if not by.grounds.strip():
        raise Invalid(detail="Every change needs grounds: say why in one sentence.")
    session = (
        Session.objects.select_for_update(no_key=True, of=("self",))
        .filter(workspace=workspace_id, id=session_id)
        .first()
    )
    if session is None:
        raise NotFound(noun="session", about=session_id)
    return session


def _note(session: Session, kind: str, by: Person, **change: object) -> None:
    Session.objects.filter(id=session.id).update(**change)
    SessionChange.objects.create(
        workspace_id=session.workspace_id,
        session=session,
        kind=kind,
        by_id=by.id,
        by_name=by.name,
        grounds=by.grounds,
    )
    session.refresh_from_db()


def _stop_call(call: ToolCall, by: Person) -> None:
    act = _act_of(call)
    if act is not None:
        act(call, by)


def _act_of(call: ToolCall) -> Callable[[ToolCall, Person], None] | None:
    """What a stop does with an open call; None where it is left to end."""
    if call.state in calls.AT_REST and _is_before_the_tool(call):
        return _interrupt if call.effect is Effect.POSSIBLE else _cancel
    if call.state is CallState.RUNNING and call.cancel_requested_at is None:
        return _ask_to_stop
    return None


def _is_before_the_tool(call: ToolCall) -> bool:
    """An interrupt inside or after the tool has an effect behind it: that call goes on."""
    return not (
        call.state is CallState.PAUSED
        and call.interrupts.filter(ended_at__isnull=True).exclude(phase=Phase.BEFORE_TOOL).exists()
    )


def _cancel(call: ToolCall, by: Person) -> None:
    _move(call, "cancelled", by, columns={"reason": "stopped"})
    interrupts.end(
        [call.id], ended_as=InterruptEnd.WITHDRAWN, by=str(Actor.OPERATOR), by_id=by.id,
        grounds=by.grounds,
    )  # fmt: skip
    waiting.tell([call.id])


def _interrupt(call: ToolCall, by: Person) -> None:
    """Up the ladder: what the attempts before this rest did is not known."""
    cause = call.cause or Cause.INTERNAL
    point = FailurePoint.DURING_EXECUTION
    window_s = call.policy.call_policy.armed_window_s
    _move(
        call,
        "interrupted",
        by,
        cause=cause,
        facts={"failure_point": str(point), "rule": "session_stopped"},
        arm={Deadline.NEXT_STEP: 0.0, Deadline.RECOVERY_WINDOW: window_s},
        columns={"failure_point": str(point), "reason": ""},
    )
    incidents.open_for(call, cause=cause, failure_point=point)


def _ask_to_stop(call: ToolCall, by: Person) -> None:
    if _has_crossed(call):
        return
    _move(call, "cancel_requested", by)
    ToolCall.objects.filter(id=call.id).update(cancel_requested_at=ClockTimestamp())


def _has_crossed(call: ToolCall) -> bool:
    live = Attempt.objects.filter(call=call, ended_at__isnull=True)
    return live.filter(crossed_at__isnull=False).exists()


def _move(call: ToolCall, kind: str, by: Person, **more: object) -> None:
    facts = {"grounds": by.grounds} | dict(more.pop("facts", {}))  # type: ignore[call-overload]
    journal.append(
        [Move(call=call, kind=kind, by=Actor.OPERATOR, by_id=by.id, facts=facts, **more)]  # type: ignore[arg-type]
    )
