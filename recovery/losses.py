"""A lost attempt: its fence is taken, then follows what that means for a run, a poll, a probe.

Runs in its caller's transaction, under the call's lock.
"""

from collections.abc import Callable
from uuid import UUID

from ledger import dispatch, journal, polls
from ledger.models import Attempt, ToolCall
from ledger.vocabulary import Actor, AttemptKind, Cause, Meaning, ProbeFinding, spoken
from recovery import acts, decisions, fences, incidents, reports, snapshots


def lose(call: ToolCall, cause: Cause, *, of_workers: list[UUID] | None = None) -> bool:
    """Take the fence of a call's live attempt, then decide. False if there is none any more."""
    taken = fences.take(call, cause, of_workers=of_workers)
    if taken is None:
        return False
    attempt, means = taken
    _AFTER_LOSS[attempt.kind](call, attempt, cause, means)
    return True


def _lost_run(call: ToolCall, attempt: Attempt, cause: Cause, means: Meaning) -> None:
    reports.note_cause(call, cause, "")
    effect = snapshots.effect_after(call, attempt, means)
    case, now = snapshots.of(call, effect=effect)
    # No attempt holds the call any more, so there is no report to wait for.
    acts.carry_out(call, case, decisions.after_report(case, means, now=now))


def _lost_poll(call: ToolCall, attempt: Attempt, cause: Cause, means: Meaning) -> None:
    journal.append([polls.poll_ended(call, by=Actor.WATCHDOG, next_s=0.0, cause=cause)])
    dispatch.ring_after_commit(["control"], call.id)


def _lost_probe(call: ToolCall, attempt: Attempt, cause: Cause, means: Meaning) -> None:
    why = spoken(cause)
    incidents.note(call, rung="probe", grounds=f"The probe brought no answer: {why}.")
    incidents.answered(call)
    journal.append(
        [polls.probe_ended(call, by=Actor.WATCHDOG, finding=ProbeFinding.UNKNOWN, cause=cause)]
    )


_AFTER_LOSS: dict[AttemptKind, Callable[[ToolCall, Attempt, Cause, Meaning], None]] = {
    AttemptKind.RUN: _lost_run,
    AttemptKind.RESUME: _lost_run,
    AttemptKind.POLL: _lost_poll,
    AttemptKind.PROBE: _lost_probe,
}
