"""Another policy tried on what happened: what it would have decided, call by call. Pure.

Both policies, the one a call kept and the candidate, are asked by the code that decides
(`decisions.py`) on the recorded facts of each lost attempt, and their time-outs are held against
the measured lengths. A call is compared up to the first point at which the two differ; what
would have followed is not simulated. Where the ledger lacks what the candidate's rule needs, the
answer is `cannot_say`: it is counted, never guessed. Source: console, section 16.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from ledger.policies import CallPolicy
from ledger.vocabulary import Cause, Effect, ExhaustionReason, Meaning, ProbeFinding, RecoveryClass
from recovery import decisions
from recovery.decisions import Act, CallSnapshot, Decision

DISPROVES = frozenset({Meaning.NOT_BEGUN, Meaning.REFUSED})
KILLERS = frozenset({Cause.WORKER_LOST, Cause.RESOURCE_KILLED})


class Column(StrEnum):
    """What the candidate would have done with a call, the gravest first."""

    REPEATED = "repeated"
    """A new attempt by itself, of a call whose effect had happened: level 4."""

    RETRIES = "retries"
    """A new attempt by itself, where the present policy held or ended the call."""

    ASKS_PERSON = "asks_person"
    """Up to an operator, where the present policy went on by itself."""

    CUT_EARLIER = "cut_earlier"
    """A time-out would have ended a wait or an attempt that the present one allowed."""

    CUT_LATER = "cut_later"
    """A wait or an attempt that the present policy ended would have been left longer."""

    SPENT = "spent"
    """No attempt or no time would have been left for a repeat that was made."""

    SETTLES = "settles"
    """Ended or proved by itself, in another way than the present policy's."""

    SAME = "same"
    """The same at every point that the ledger knows."""

    CANNOT_SAY = "cannot_say"
    """The ledger lacks what the candidate's rule needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One answered probe after a lost attempt."""

    claimed_at: datetime
    finding: ProbeFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt as it went. `means` is None where it succeeded, parked or has not ended.

    `queued_s`: from its publishing to its claim. `is_run` is False for a poll that ended the
    following of a handle. `disproved_at`: when somebody proved that its effect did not happen.
    """

    claimed_at: datetime
    ended_at: datetime | None = None
    crossed_at: datetime | None = None
    disproved_at: datetime | None = None
    dead_at: datetime | None = None
    cause: Cause | None = None
    means: Meaning | None = None
    queued_s: float | None = None
    parked: bool = False
    is_run: bool = True
    probes: tuple[Asked, ...] = ()

    def is_open_crossing(self, at: datetime) -> bool:
        """Whether its effect is possible at this instant."""
        disproved = self.disproved_at is not None and self.disproved_at <= at
        return self.crossed_at is not None and self.means not in DISPROVES and not disproved


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the ledger knows of one call. Instants are the database's.

    `begun_at` is when its time began to count: at its publishing, since a hold counts nothing.
    `happened`: a result, a probe or a person proved the effect. `granted` are attempts by people.
    """

    call_id: UUID
    policy: CallPolicy
    begun_at: datetime
    read_at: datetime
    happened: bool = False
    expired_by: str = ""
    granted: int = 0
    has_probe: bool = False
    cancel_requested_at: datetime | None = None
    stopped_at: datetime | None = None
    tries: tuple[Try, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One call: its column, the sentence that says why, and the seconds where a length decided."""

    call_id: UUID
    column: Column
    sentence: str = ""
    measured_s: float | None = None


def compare(history: History, candidate: CallPolicy) -> Compared:
    """Say what the candidate would have done at the first point where it differs."""
    for point in _points(history, candidate):
        if point is not None:
            return point
    return Compared(call_id=history.call_id, column=Column.SAME)


def _points(history: History, candidate: CallPolicy) -> Iterator[Compared | None]:
    for number, each in enumerate(history.tries):
        yield _cut(history, each, candidate)
        if each.means is None or each.ended_at is None:
            continue
        yield _boundary_unknown(history, candidate)
        present, other = (_fate(history, number, it) for it in (history.policy, candidate))
        yield _difference(history, number, present, other)
        if present.act is not Act.RETRY:
            return  # a person or the end: no later attempt is the machine's own
    yield _kept_waiting(history, candidate)


# Time-outs


def _cut(history: History, each: Try, candidate: CallPolicy) -> Compared | None:
    """Whether a time-out of either policy, and not of the other, ended this attempt or its wait."""
    if not each.is_run:
        return None
    old, new = history.policy.timeouts, candidate.timeouts
    end = each.ended_at or history.read_at
    ran_s = (end - each.claimed_at).total_seconds()
    whole_s = (end - history.begun_at).total_seconds()
    reschedules = candidate.schedule_to_start_reschedules
    lengths = (
        ("in the queue", "schedule-to-start", None if reschedules else each.queued_s,
         old.schedule_to_start_s, new.schedule_to_start_s),
        ("in one attempt", "start-to-close", ran_s, old.start_to_close_s, new.start_to_close_s),
        ("over all", "schedule-to-close", None if each.parked else whole_s,
         old.schedule_to_close_s, new.schedule_to_close_s),
    )  # fmt: skip
    for where, name, took_s, before_s, after_s in lengths:
        if took_s is not None and after_s < took_s and after_s < before_s:
            return Compared(
                call_id=history.call_id,
                column=Column.CUT_EARLIER,
                sentence=f"It took {took_s:.1f} s {where}; {name} would be {after_s:g} s.",
                measured_s=took_s,
            )
    if each.cause is Cause.HANG and new.start_to_close_s > old.start_to_close_s <= ran_s:
        return Compared(
            call_id=history.call_id,
            column=Column.CUT_LATER,
            sentence=f"It was cut off after {ran_s:.1f} s; start-to-close would be "
            f"{new.start_to_close_s:g} s.",
            measured_s=ran_s,
        )
    return None


def _kept_waiting(history: History, candidate: CallPolicy) -> Compared | None:
    """Whether a call that expired at rest would have been waited for longer."""
    name = history.expired_by
    if name not in ("schedule_to_start", "schedule_to_close"):
        return None
    before_s: float = getattr(history.policy.timeouts, f"{name}_s")
    after_s: float = getattr(candidate.timeouts, f"{name}_s")
    if after_s <= before_s:
        return None
    return Compared(
        call_id=history.call_id,
        column=Column.CUT_LATER,
        sentence=f"It expired by {name.replace('_', '-')} after {before_s:g} s; it would be "
        f"{after_s:g} s.",
        measured_s=before_s,
    )


# Decisions


def _boundary_unknown(history: History, candidate: CallPolicy) -> Compared | None:
    """Where an attempt was lost, the rule asks whether it crossed the candidate's boundary."""
    old, new = history.policy, candidate
    if new.recovery_class is RecoveryClass.READ_ONLY:
        return None
    if old.recovery_class is RecoveryClass.READ_ONLY:
        why = "It was recorded as a read, so no boundary was marked."
    elif old.boundary is not new.boundary:
        why = f"Its boundary was marked {old.boundary}, the rule asks for {new.boundary}."
    else:
        return None
    return Compared(call_id=history.call_id, column=Column.CANNOT_SAY, sentence=why)


def _fate(history: History, number: int, policy: CallPolicy) -> Decision:
    """What a policy decides about a lost attempt; PROBE where nobody knows what it would find."""
    lost = history.tries[number]
    now = lost.ended_at or history.read_at
    case = _case(history, number, policy)
    decision = decisions.after_report(case, lost.means or Meaning.UNKNOWN, now=now)
    if decision.act is not Act.INTERRUPT:
        return decision
    decision = decisions.decide(case, now=now)
    if decision.act is not Act.PROBE or not lost.probes:
        return decision
    return decisions.decide(_after_probes(case, lost), now=now)


def _case(history: History, number: int, policy: CallPolicy) -> CallSnapshot:
    """The facts as they stood when this attempt was lost, under a policy."""
    lost = history.tries[number]
    now = lost.ended_at or history.read_at
    runs = [each for each in history.tries[: number + 1] if each.is_run]
    crossed = [each for each in runs if each.is_open_crossing(now)]
    vanished = lost.cause is Cause.VANISHED and not lost.is_run
    is_auth = policy.recovery_class is RecoveryClass.PROVIDER_AUTH
    return CallSnapshot(
        recovery_class=policy.recovery_class,
        policy=policy,
        effect=_effect(runs, crossed, lost, policy),
        cause=lost.cause,
        attempts_used=len(runs),
        attempts_allowed=policy.retry.attempts + history.granted,
        workers_lost=sum(each.cause in KILLERS for each in runs),
        repeats_not_begun=max(0, sum(each.crossed_at is None for each in runs) - 1),
        earlier_crossing=any(each is not runs[-1] for each in crossed),
        handle_was_lost=vanished,
        has_probe=history.has_probe and policy.probe is not None,
        schedule_to_close_at=history.begun_at
        + timedelta(seconds=policy.timeouts.schedule_to_close_s),
        cancel_requested=_is_before(history.cancel_requested_at, now),
        stopped=_is_before(history.stopped_at, now),
        repeat_forbidden="The sign-in can no longer be followed." if vanished and is_auth else "",
    )


def _effect(runs: list[Try], crossed: list[Try], lost: Try, policy: CallPolicy) -> Effect:
    """The strongest that the attempts so far leave open (semantics, section 5)."""
    if policy.recovery_class is RecoveryClass.READ_ONLY:
        return Effect.NONE
    if crossed:
        return Effect.POSSIBLE
    if lost.means is Meaning.REFUSED or any(each.crossed_at for each in runs):
        return Effect.DID_NOT_HAPPEN
    return Effect.NOT_BEGUN


def _after_probes(case: CallSnapshot, lost: Try) -> CallSnapshot:
    """The case once the probes have answered; a no counts as far as this policy believes it."""
    found = [each.finding for each in lost.probes]
    last = lost.probes[-1]
    probe = case.policy.probe
    grace = timedelta(seconds=case.policy.in_flight_grace_s)
    is_late = lost.dead_at is not None and last.claimed_at >= lost.dead_at + grace
    return replace(
        case,
        finding=ProbeFinding.HAPPENED if ProbeFinding.HAPPENED in found else last.finding,
        finding_counts=probe is not None and probe.authoritative and is_late,
        probes_used=len(found),
        has_probe=False,
    )


def _difference(
    history: History, number: int, present: Decision, other: Decision
) -> Compared | None:
    if present.act is other.act:
        return None
    column, sentence = _column(history, number, present, other)
    return Compared(call_id=history.call_id, column=column, sentence=sentence)


def _column(
    history: History, number: int, present: Decision, other: Decision
) -> tuple[Column, str]:
    said = f"Now: {DEEDS[present.act]}. Then: {DEEDS[other.act]}. {other.grounds}"
    if other.act is Act.PROBE:
        return Column.CANNOT_SAY, "It would ask the outside, which nobody did then."
    if other.act is Act.RETRY:
        return _repeats(history, number, said)
    if other.act is Act.ESCALATE:
        return Column.ASKS_PERSON, said
    if present.act is Act.RETRY and other.reason is ExhaustionReason.WORK_BUDGET_EXCEEDED:
        return Column.SPENT, said
    return Column.SETTLES, said


def _repeats(history: History, number: int, said: str) -> tuple[Column, str]:
    """A repeat: of what had happened, if an attempt up to here crossed and was never disproved."""
    had = any(
        each.is_open_crossing(history.read_at) for each in history.tries[: number + 1]
    )  # as it is known today, not as it stood then
    return (Column.REPEATED if had and history.happened else Column.RETRIES), said


def _is_before(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now


DEEDS: dict[Act, str] = {
    Act.ADOPT: "adopts the late result",
    Act.WAIT: "waits",
    Act.RESUME: "follows the handle",
    Act.RETRY: "repeats by itself",
    Act.PROBE: "asks the outside",
    Act.PROVED: "settles by the probe's proof",
    Act.FAIL: "settles as failed",
    Act.EXPIRE: "settles as expired",
    Act.CANCEL: "settles as cancelled",
    Act.INTERRUPT: "finds out",
    Act.ESCALATE: "waits for a person",
}
"""What a decision does, as a verb with the policy as its subject."""
