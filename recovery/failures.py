"""A row that the watchdog cannot move: written down, and after the third time given up.

The failed transaction left nothing behind, so the line is written in one of its own: an event
`step_failed` on the call, a line on its incident. At the third it is given up: to an operator
where an effect is possible, else expired. A give-up whose own write fails is tried again at the
next sweep, whole; meanwhile an incident `unbounded_wait` says that the call cannot be moved.
"""

import logging
import traceback
from uuid import UUID

from django.db import Error, transaction

from ledger import clock, journal
from ledger.journal import Move
from ledger.models import Event, ToolCall
from ledger.policies import PRESETS, CallPolicy
from ledger.vocabulary import (
    Actor,
    CallState,
    Cause,
    ExhaustionReason,
    IncidentKind,
    RecoveryClass,
)
from recovery import acts, ageing, decisions, fences, incidents
from recovery.decisions import Act, CallSnapshot, Decision

BROKEN_TIMES = 3

log = logging.getLogger(__name__)


def write_down(call_id: UUID, error: Exception) -> None:
    """Write that a step of this call broke; give the call up at the third time."""
    with transaction.atomic():
        call = (
            ToolCall.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(id=call_id, settled_at__isnull=True)
            .first()
        )
        if call is None:
            return
        times = _times(call)
        if times < BROKEN_TIMES:
            times += 1
            _write(call, named(error), times)
        if times >= BROKEN_TIMES:
            _give_up_or_tell(call)


def log_it(act: str, call_id: UUID, error: Exception) -> None:
    """Log where it broke; never the text of a database error, which quotes the row."""
    where = "".join(traceback.format_tb(error.__traceback__))
    text = "" if isinstance(error, Error) else f" {error}"
    log.error("%s call=%s error=%s%s\n%s", act, call_id, named(error), text, where)


def named(error: Exception) -> str:
    """The error by its type and SQLSTATE: its text may quote a row, and so a secret."""
    state = getattr(error.__cause__, "sqlstate", "") if isinstance(error, Error) else ""
    return f"{type(error).__name__} {state or ''}".strip()


def _times(call: ToolCall) -> int:
    """How often a step broke since the call last moved."""
    last = (
        Event.objects.filter(call=call)
        .exclude(kind="step_failed")
        .order_by("-seq")
        .values_list("seq", flat=True)
        .first()
    )
    return Event.objects.filter(call=call, kind="step_failed", seq__gt=last or 0).count()


def _write(call: ToolCall, error: str, times: int) -> None:
    facts = {"error": error, "times": times}
    journal.append([Move(call=call, kind="step_failed", by=Actor.WATCHDOG, facts=facts)])
    incidents.note(
        call,
        rung="error",
        rule=str(ExhaustionReason.RECOVERY_ERROR),
        facts=facts,
        grounds=f"The step that was due broke ({error}), {times} of {BROKEN_TIMES} times. "
        "Nothing of it was kept; it is tried again.",
    )


def _give_up_or_tell(call: ToolCall) -> None:
    try:
        with transaction.atomic():
            _give_up(call)
    except Exception as error:
        log_it("watchdog.give_up_failed", call.id, error)
        _tell_once(ToolCall.objects.get(id=call.id), named(error))


def _give_up(call: ToolCall) -> None:
    """End the machine's turn by the shortest way, reading as little as possible."""
    if call.state is CallState.AMBIGUOUS:
        _only_wait(call)
        return
    fences.take(call, Cause.INTERNAL)
    case = _case(call)
    decision = decisions.broken(case)
    if decision.act is Act.ESCALATE and call.state is not CallState.INTERRUPTED:
        call.cause = call.cause or Cause.INTERNAL
        grounds = decision.grounds
        acts.carry_out(call, case, Decision(act=Act.INTERRUPT, rule=decision.rule, grounds=grounds))
    acts.carry_out(call, case, decision)


def _only_wait(call: ToolCall) -> None:
    """It is the operator's turn already: take no further step by a timer."""
    incident = incidents.current(call)
    ToolCall.objects.filter(id=call.id).update(next_step_at=None)
    if incident is not None and call.review_at is not None and call.review_at <= clock.now():
        ageing.deadline(call, incident)


def _case(call: ToolCall) -> CallSnapshot:
    return CallSnapshot(
        recovery_class=RecoveryClass(call.recovery_class), policy=_policy(call), effect=call.effect
    )


def _policy(call: ToolCall) -> CallPolicy:
    """The call's policy, or its class's preset where that is what cannot be read."""
    try:
        return call.policy.call_policy
    except Exception:
        return PRESETS[RecoveryClass(call.recovery_class)]


def _tell_once(call: ToolCall, error: str) -> None:
    """Open `unbounded_wait`, once: nothing that the machine may do moves this call."""
    known = call.incidents.filter(kind=IncidentKind.UNBOUNDED_WAIT, closed_at__isnull=True)
    if not known.exists():
        incidents.report(
            call,
            IncidentKind.UNBOUNDED_WAIT,
            grounds=f"A deadline of this call has passed and no step can be taken: {error}. "
            "It is tried again at each sweep. Read the watchdog's log.",
            facts={"error": error, "due_at": str(call.due_at)},
        )
