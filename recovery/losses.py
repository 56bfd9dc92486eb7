"""Taking the fence of a lost attempt, and what follows for a run, a poll and a probe.

The fence is taken before anything is decided (R31): from then on the attempt can neither cross
nor settle, whatever it still does. Runs in its caller's transaction, under the call's lock.
"""

from uuid import UUID

from ledger import dispatch, journal
from ledger.journal import Move
from ledger.models import Attempt, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import (
    Actor,
    AttemptKind,
    Cause,
    Deadline,
    Meaning,
)
from recovery import acts, decisions, incidents, reports, snapshots


def lose(call: ToolCall, cause: Cause, *, of_workers: list[UUID] | None = None) -> bool:
    """Take the fence of a call's live attempt, then decide. False if there is none any more.

    The fence is taken before anything is decided (R31): from here on the attempt can neither
    cross nor settle, whatever it still does.
    """
    attempt = Attempt.objects.filter(call=call, ended_at__isnull=True).first()
    if attempt is None or (of_workers is not None and attempt.worker_id not in of_workers):
        return False
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
    _after_loss[attempt.kind](call, attempt, cause, means)
    return True


def _lost_run(call: ToolCall, attempt: Attempt, cause: Cause, means: Meaning) -> None:
    reports.note_cause(call, cause, "")
    effect = snapshots.effect_after(call, attempt, means)
    case, now = snapshots.of(call, effect=effect)
    # No attempt holds the call any more, so there is no report to wait for.
    acts.carry_out(call, case, decisions.after_report(case, means, now=now))


def _lost_poll(call: ToolCall, attempt: Attempt, cause: Cause, means: Meaning) -> None:
    journal.append(
        [
            Move(
                call=call,
                kind="poll_ended",
                by=Actor.WATCHDOG,
                cause=cause,
                arm={Deadline.NEXT_POLL: 0.0, Deadline.HEARTBEAT: None},
            )
        ]
    )
    dispatch.ring_after_commit(["control"], call.id)


def _lost_probe(call: ToolCall, attempt: Attempt, cause: Cause, means: Meaning) -> None:
    incidents.note(call, rung="probe", grounds=f"The probe brought no answer: {cause}.")
    journal.append(
        [
            Move(
                call=call,
                kind="probe_ended",
                by=Actor.WATCHDOG,
                cause=cause,
                facts={"finding": "unknown"},
                arm={Deadline.NEXT_STEP: 0.0, Deadline.HEARTBEAT: None},
                columns={"reason": "probed"},
            )
        ]
    )


_after_loss = {
    AttemptKind.RUN: _lost_run,
    AttemptKind.RESUME: _lost_run,
    AttemptKind.POLL: _lost_poll,
    AttemptKind.PROBE: _lost_probe,
}
