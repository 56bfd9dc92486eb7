"""The end of an interrupted turn: when nobody is waited for any more, or when its grace is over.

Whoever interrupted may be gone, and a worker need not know of turns: the date is a column, and a
sweep asks. What was asked to stop and has not ended by then loses its fence and is cancelled; it
had not crossed, and without its fence it cannot (I9).

Locks: session, turn, then its calls in the order of their ids.
"""

import logging
from uuid import UUID

from django.db import OperationalError, connection, transaction

from ledger import interruptions, interrupts, journal, waiting
from ledger.journal import Move
from ledger.models import Session, ToolCall, Turn
from ledger.vocabulary import Actor, CallState, Cause, Effect, InterruptEnd
from recovery import losses

DUE = (
    "SELECT t.id FROM ledger_turn t WHERE t.interrupted_at IS NOT NULL AND t.closed_at IS NULL "
    "AND (t.grace_until <= clock_timestamp() OR NOT EXISTS (SELECT FROM ledger_toolcall c "
    "WHERE c.session_id = t.session_id AND c.turn_id = t.id AND c.settled_at IS NULL "
    "AND c.cancel_requested_at IS NOT NULL AND c.effect <> 'possible')) "
    "ORDER BY t.grace_until LIMIT %s"
)
"""Served by the partial index `turn_in_grace`; the calls by `call_of_session`."""

log = logging.getLogger(__name__)


def close_due(limit: int) -> int:
    """Close the interrupted turns that wait for nobody, or have waited long enough."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [limit])
        due = [row[0] for row in cursor.fetchall()]
    return sum(map(_one, due))


def _one(turn_id: UUID) -> bool:
    """Close one turn. One that cannot be closed must not stop all others."""
    try:
        with transaction.atomic():
            return _close(turn_id)
    except Exception as error:
        if connection.connection is None or connection.connection.closed:
            raise
        level = logging.WARNING if isinstance(error, OperationalError) else logging.ERROR
        log.log(level, "watchdog.turn_failed turn=%s", turn_id.hex, exc_info=error)
        return False


def _close(turn_id: UUID) -> bool:
    session = (
        Session.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
        .filter(turns__id=turn_id)
        .first()
    )
    if session is None:
        return False
    turn = Turn.objects.select_for_update(no_key=True).get(id=turn_id)
    # Another watchdog may have closed it between our look and our lock.
    if turn.closed_at is not None:
        return False
    if _is_over(turn):
        for call in interruptions.still_stopping(turn).order_by("id").select_for_update():
            _end(call)
    return interruptions.close_if_over(session, turn)


def _is_over(turn: Turn) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s <= clock_timestamp()", [turn.grace_until])
        return bool(cursor.fetchone()[0])


def _end(call: ToolCall) -> None:
    """Cancel a call that did not stop in time, or was given back meanwhile."""
    if call.state is CallState.RUNNING:
        losses.lose(call, Cause.OVERTAKEN)
        return
    if call.effect in (Effect.POSSIBLE, Effect.HAPPENED):
        return
    journal.append([Move(call=call, kind="cancelled", by=Actor.LEDGER,
                         columns={"reason": interruptions.REASON})])  # fmt: skip
    interrupts.end([call.id], ended_as=InterruptEnd.WITHDRAWN, by=str(Actor.LEDGER))
    waiting.tell([call.id])
