"""Taking the fence of a live attempt: from then on it can neither cross nor settle (R31).

What follows is decided elsewhere. Runs in its caller's transaction, under the call's lock.
"""

from collections.abc import Iterable
from uuid import UUID

from ledger import journal
from ledger.journal import Move
from ledger.models import Attempt, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import Actor, Cause, Deadline, Meaning


def held(call_ids: Iterable[UUID]) -> set[UUID]:
    """Those of these calls that a live attempt holds: `take` would take its fence."""
    found = Attempt.objects.filter(call__in=list(call_ids), ended_at__isnull=True)
    return set(found.values_list("call_id", flat=True))


def take(
    call: ToolCall, cause: Cause, *, of_workers: list[UUID] | None = None
) -> tuple[Attempt, Meaning] | None:
    """Take the fence of a call's live attempt; None if there is none (of these workers) any more.

    Returns the attempt as it was, and what its loss proves: crossed means unknown.
    """
    attempt = Attempt.objects.filter(call=call, ended_at__isnull=True).first()
    if attempt is None or (of_workers is not None and attempt.worker_id not in of_workers):
        return None
    means = Meaning.UNKNOWN if attempt.crossed_at else Meaning.NOT_BEGUN
    Attempt.objects.filter(id=attempt.id).update(
        ended_at=ClockTimestamp(),
        fence_lost_at=ClockTimestamp(),
        outcome="lost",
        cause=cause,
        means=means,
    )
    journal.append(
        [
            Move(
                call=call,
                kind="fence_lost",
                by=Actor.WATCHDOG,
                fence=attempt.fence,
                cause=cause,
                arm={Deadline.HEARTBEAT: None, Deadline.START_TO_CLOSE: None},
            )
        ]
    )
    return attempt, means
