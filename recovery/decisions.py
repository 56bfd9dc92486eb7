"""What to do next with a call, from facts alone. Pure: same rows, same decision (R61).

`after_report` judges what a worker said under its own fence; `decide` climbs the ladder for a
call that lost its attempt: stored result, live claim, handle, proof of non-start, probe, rule
of the recovery class, operator (semantics, section 6). Each answer carries its rule and its
grounds, and what was passed over on the way. No model is ever asked; nothing here reads a row
or a clock.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from ledger.policies import CallPolicy
from ledger.vocabulary import (
    Actor,
    BudgetScope,
    Cause,
    Effect,
    ExhaustionReason,
    Meaning,
    ProbeFinding,
    RecoveryClass,
    spoken,
)
from recovery.matrix import RULES, Rule

NO_EFFECT = frozenset({Effect.NONE, Effect.NOT_BEGUN, Effect.DID_NOT_HAPPEN})
TIME_OVER = frozenset({Cause.HANG, Cause.WORKER_LOST, Cause.RESOURCE_KILLED, Cause.GATEWAY_TIMEOUT})
KILLS_ITS_WORKER = 3
RETRY_AFTER_CAP_S = 300.0
STEPS_WITHOUT_PROGRESS = 10
STABLE_LEASES = 10
"""A lost attempt that is not proven dead within so many leases will not be (semantics, 7)."""

FOR_GOOD = frozenset({ExhaustionReason.MAX_ATTEMPTS_EXCEEDED, ExhaustionReason.RECOVERY_ABORTED})
"""After these the machine resumes nothing either; after a window it still follows a handle."""


class Act(StrEnum):
    """What a decision asks for."""

    ADOPT = "adopt"
    WAIT = "wait"
    RESUME = "resume"
    RETRY = "retry"
    PROBE = "probe"
    PROVED = "proved"
    FAIL = "fail"
    EXPIRE = "expire"
    CANCEL = "cancel"
    INTERRUPT = "interrupt"
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSnapshot:
    """The facts about one call. Instants are the database's.

    `earlier_crossing`: an attempt before the last one crossed and nothing has disproved it.
    `effect` already contains what the last report or finding proved. `finding` is the last
    probe's, `finding_counts` whether a negative one may be believed (an authoritative probe,
    the attempt proven dead, its in-flight grace over). `repeat_forbidden` says why a possible
    effect may not be repeated even where the class allows it. `stable_by` is when a lost attempt
    that is not proven dead yet is given up; `stopped_because` what ended the machine's turn.
    """

    recovery_class: RecoveryClass
    policy: CallPolicy
    effect: Effect
    cause: Cause | None = None
    attempts_used: int = 0
    attempts_allowed: int = 1
    workers_lost: int = 0
    repeats_not_begun: int = 0
    earlier_crossing: bool = False
    late_result: UUID | None = None
    lease_until: datetime | None = None
    has_handle: bool = False
    handle_was_lost: bool = False
    has_probe: bool = False
    probes_used: int = 0
    last_probe_at: datetime | None = None
    finding: ProbeFinding | None = None
    finding_counts: bool = False
    unlocks_at: datetime | None = None
    schedule_to_close_at: datetime | None = None
    recovery_window_at: datetime | None = None
    retry_after_s: float | None = None
    cancel_requested: bool = False
    repeat_forbidden: str = ""
    stopped: bool = False
    steps_without_progress: int = 0
    stable_by: datetime | None = None
    stopped_because: ExhaustionReason | None = None

    @property
    def rule(self) -> Rule:
        return RULES[self.recovery_class]

    @property
    def no_effect(self) -> bool:
        return self.effect in NO_EFFECT


@dataclass(frozen=True, slots=True)
class Passed:
    """A rung of the ladder that did not answer, and why."""

    rung: str
    grounds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The next step, the rule it follows, and the sentence that explains it (R62).

    `timer` is the deadline that led to it; `by` and `by_id` the person, where one ordered it.
    `scope` is the retry budget that had no room for a repeat, where that decided.
    """

    act: Act
    rule: str
    grounds: str
    rung: str = ""
    effect: Effect | None = None
    wait_s: float = 0.0
    until: datetime | None = None
    reason: ExhaustionReason | None = None
    deadline: str = ""
    scope: BudgetScope | None = None
    passed: tuple[Passed, ...] = ()
    timer: str = ""
    by: Actor = Actor.RECOVERY
    by_id: str = ""


def after_report(case: CallSnapshot, means: Meaning, *, now: datetime) -> Decision:
    """Choose after a worker reported something other than a plain success.

    Known not to have begun and refused end or repeat the call; a known error settles it where
    the policy says what it means; an unknown one after the boundary goes up the ladder.
    """
    if (case.cancel_requested or case.stopped) and case.no_effect:
        return Decision(
            act=Act.CANCEL,
            rule="session_stopped" if case.stopped else "cancel_requested",
            effect=case.effect,
            grounds="A person stopped the session; nothing was changed."
            if case.stopped
            else "A cancellation was asked for; nothing was changed.",
        )
    if means is Meaning.KNOWN:
        return _known_error(case, now=now)
    if case.recovery_class is RecoveryClass.READ_ONLY or case.no_effect:
        return _repeat_or_settle(case, _not_begun_grounds(case), now=now)
    cause = spoken(case.cause).capitalize()
    return Decision(
        act=Act.INTERRUPT,
        rule=case.rule.code,
        grounds=f"{cause} after the boundary: whether the effect happened is not known.",
    )


def _known_error(case: CallSnapshot, *, now: datetime) -> Decision:
    # An error proves nothing about an earlier attempt that crossed under the same key.
    denies = case.policy.tool_error_means == "no_effect" and not case.earlier_crossing
    if case.no_effect or denies:
        effect = Effect.DID_NOT_HAPPEN if case.effect is Effect.POSSIBLE else case.effect
        known = replace(case, effect=effect)
        if case.policy.retries_tool_errors:
            return _repeat_or_settle(known, "The policy repeats this tool's errors.", now=now)
        return Decision(
            act=Act.FAIL,
            rule="known_result",
            effect=effect,
            grounds="The tool's error is a known result.",
        )
    return Decision(
        act=Act.INTERRUPT,
        rule=case.rule.code,
        grounds="The tool ended with an error after its boundary; the policy says that "
        "its effect is unknown then.",
    )


def _not_begun_grounds(case: CallSnapshot) -> str:
    if case.recovery_class is RecoveryClass.READ_ONLY:
        return "The tool only reads, so repeating is safe."
    if case.effect is Effect.DID_NOT_HAPPEN:
        return "The outside refused, so the effect did not happen."
    return "No attempt crossed the boundary, and a lost one cannot cross any more."


def decide(case: CallSnapshot, *, now: datetime) -> Decision:
    """Climb the ladder for a call that lost its attempt; the first rung that answers decides."""
    if case.stopped_because is None and case.steps_without_progress >= STEPS_WITHOUT_PROGRESS:
        case = stopped(
            case,
            ExhaustionReason.MAX_ATTEMPTS_EXCEEDED,
            f"{case.steps_without_progress} recovery steps brought no new evidence.",
        )
    passed: list[Passed] = []
    for rung in (_late_result, _live_claim, _handle, _non_start, _probe, _class_rule):
        answer = rung(case, now)
        if isinstance(answer, Decision):
            return replace(answer, rung=rung.__name__[1:], passed=tuple(passed))
        passed.append(Passed(rung.__name__[1:], answer))
    return replace(_escalate(case, now), rung="operator", passed=tuple(passed))


def stopped(case: CallSnapshot, reason: ExhaustionReason, grounds: str) -> CallSnapshot:
    """The case once a bound of recovery has passed: what is in hand still counts, no more steps."""
    return replace(case, has_probe=False, repeat_forbidden=grounds, stopped_because=reason)


def aborted(case: CallSnapshot, *, by_id: str, grounds: str) -> Decision:
    """End the machine's turn because a person says so (`recovery_aborted`)."""
    return Decision(
        act=_act_of_giving_up(case, Act.CANCEL),
        rule="recovery_aborted",
        rung="operator",
        grounds=grounds,
        effect=case.effect,
        by=Actor.OPERATOR,
        by_id=by_id,
        reason=ExhaustionReason.RECOVERY_ABORTED,
        deadline="recovery_window",
    )


def broken(case: CallSnapshot) -> Decision:
    """Give up a call whose own step broke three times (`recovery_error`)."""
    return Decision(
        act=_act_of_giving_up(case, Act.EXPIRE),
        rule="recovery_error",
        rung="operator",
        grounds="The step that was due broke three times.",
        effect=case.effect,
        reason=ExhaustionReason.RECOVERY_ERROR,
        deadline="recovery_window",
    )


def _act_of_giving_up(case: CallSnapshot, without_effect: Act) -> Act:
    if case.no_effect:
        return without_effect
    return Act.EXPIRE if case.rule.ends_open else Act.ESCALATE


def _late_result(case: CallSnapshot, now: datetime) -> Decision | str:
    if case.late_result is None:
        return "No result and no late result of the only crossed attempt is in hand."
    return Decision(
        act=Act.ADOPT,
        rule="late_result",
        grounds="The only crossed attempt reported its result after it lost its fence.",
        effect=Effect.NONE if case.effect is Effect.NONE else Effect.HAPPENED,
    )


def _live_claim(case: CallSnapshot, now: datetime) -> Decision | str:
    if case.lease_until is None or case.lease_until <= now:
        return "No attempt holds a live lease."
    return Decision(
        act=Act.WAIT,
        rule="live_claim",
        until=case.lease_until,
        grounds="A live claim may still report.",
    )


def _handle(case: CallSnapshot, now: datetime) -> Decision | str:
    if case.has_handle and case.stopped_because in FOR_GOOD:
        return case.repeat_forbidden
    if not case.has_handle:
        return "The outside does not know its handle." if case.handle_was_lost else "No handle."
    if _is_past(case.schedule_to_close_at, now):
        return "There is a handle, but the call's time is over."
    return Decision(
        act=Act.RESUME, rule="resume_by_handle", grounds="The work is found again by its handle."
    )


def _non_start(case: CallSnapshot, now: datetime) -> Decision | str:
    if not case.no_effect:
        return "An attempt crossed the boundary."
    return _repeat_or_settle(case, _not_begun_grounds(case), now=now)


def _probe(case: CallSnapshot, now: datetime) -> Decision | str:
    if case.finding is ProbeFinding.HAPPENED:
        return Decision(
            act=Act.PROVED,
            rule="probe_happened",
            effect=Effect.HAPPENED,
            grounds="A probe found the effect outside.",
        )
    if case.finding is ProbeFinding.DID_NOT_HAPPEN and case.finding_counts:
        denied = replace(case, effect=Effect.DID_NOT_HAPPEN)
        return _repeat_or_settle(
            denied, "An authoritative probe of a dead attempt found no effect.", now=now
        )
    return _ask_again(case, now)


def _ask_again(case: CallSnapshot, now: datetime) -> Decision | str:
    probe = case.policy.probe
    if case.stopped_because is not None:
        return case.repeat_forbidden
    if not case.has_probe or probe is None:
        return "The policy names no probe."
    if case.probes_used >= probe.attempts:
        return f"{case.probes_used} probes brought no proof."
    if case.last_probe_at is not None and _repeats_without_proof(case):
        return "The outside was asked once, and this class repeats without proof."
    if case.last_probe_at is not None and case.unlocks_at is None:
        if _is_past(case.stable_by, now):
            return f"The attempt could not be proven dead within {STABLE_LEASES} leases."
        # A second question proves nothing new before the attempt is proven dead.
        bounds = [each for each in (case.stable_by, case.recovery_window_at) if each is not None]
        return Decision(
            act=Act.WAIT,
            rule="probe",
            until=min(bounds, default=now + timedelta(seconds=probe.interval_s)),
            grounds="The outside was asked; it is asked again when the attempt is proven dead.",
        )
    at = _next_probe_at(case, now)
    if case.recovery_window_at is not None and at > case.recovery_window_at:
        return "The recovery window ends before the next probe."
    return Decision(
        act=Act.PROBE,
        rule="probe",
        until=at,
        grounds="The outside can be asked whether the effect happened.",
    )


def _repeats_without_proof(case: CallSnapshot) -> bool:
    """Whether waiting for more proof would only delay a repeat that is safe anyway."""
    return case.rule.repeats_when_possible and not (case.repeat_forbidden or case.stopped)


def _next_probe_at(case: CallSnapshot, now: datetime) -> datetime:
    """At once; when denial unlocks; then at the probe's interval (semantics, 6, rule 1)."""
    probe = case.policy.probe
    if case.last_probe_at is None or case.unlocks_at is None or probe is None:
        return now
    if case.last_probe_at < case.unlocks_at:
        return max(case.unlocks_at, now)
    return max(case.last_probe_at + timedelta(seconds=probe.interval_s), now)


def _class_rule(case: CallSnapshot, now: datetime) -> Decision | str:
    rule = case.rule
    if case.repeat_forbidden:
        return _end_open(case) if rule.ends_open else case.repeat_forbidden
    if case.recovery_class is RecoveryClass.LONG_RUNNING and case.policy.repeat_start:
        return _repeat_or_settle(case, "A second start under this key finds the first.", now=now)
    if not rule.repeats_when_possible:
        return rule.sentence
    return _repeat_or_settle(case, rule.sentence, now=now)


def _end_open(case: CallSnapshot) -> Decision:
    """Settle a call whose class does not wait for an operator, with its effect possible."""
    return Decision(
        act=Act.EXPIRE,
        rule=case.rule.code,
        grounds=case.repeat_forbidden,
        effect=case.effect,
        deadline="recovery_window",
    )


def _repeat_or_settle(case: CallSnapshot, grounds: str, *, now: datetime) -> Decision:
    """Repeat within attempts and time; where they are spent, settle or escalate.

    Whoever asked for the call's end is not given another attempt, once no effect is left to doubt.
    """
    if case.cancel_requested and case.no_effect:
        return Decision(
            act=Act.CANCEL,
            rule="cancel_requested",
            effect=case.effect,
            grounds="A cancellation was asked for; nothing was changed.",
        )
    spent = _why_spent(case, now=now)
    if spent is None:
        return Decision(
            act=Act.RETRY,
            rule=case.rule.code if case.effect is Effect.POSSIBLE else "proven_safe",
            effect=case.effect,
            wait_s=_wait_s(case),
            grounds=grounds,
        )
    return _settle_spent(case, spent, now)


def _wait_s(case: CallSnapshot) -> float:
    """Spare an outside that failed. A worker that died once says nothing of it: repeat at once."""
    if case.cause is Cause.WORKER_LOST and case.workers_lost <= 1:
        return 0.0
    return case.policy.retry.wait_s(max(1, case.attempts_used), retry_after_s=case.retry_after_s)


@dataclass(frozen=True, slots=True)
class Spent:
    """Why no further attempt is made."""

    reason: ExhaustionReason
    sentence: str
    time_over: bool = False
    scope: BudgetScope | None = None


def _why_spent(case: CallSnapshot, *, now: datetime) -> Spent | None:
    retry = case.policy.retry
    exceeded = ExhaustionReason.MAX_ATTEMPTS_EXCEEDED
    if case.stopped:
        return Spent(ExhaustionReason.RECOVERY_ABORTED, "A person stopped the session.")
    if case.workers_lost >= KILLS_ITS_WORKER:
        return Spent(
            ExhaustionReason.OUT_OF_MEMORY,
            f"{case.workers_lost} attempts of this call killed their worker.",
        )
    if case.cause in retry.not_retried:
        return Spent(exceeded, f"{case.cause} is not retried.")
    if case.attempts_used >= case.attempts_allowed:
        return Spent(
            ExhaustionReason.WORK_BUDGET_EXCEEDED,
            f"All {case.attempts_allowed} attempts are spent.",
            scope=BudgetScope.CALL,
        )
    limit = case.rule.repeats_not_begun
    if (
        limit is not None
        and case.no_effect
        and case.repeats_not_begun >= limit
        and (case.effect is Effect.NOT_BEGUN)
    ):
        return Spent(exceeded, "A call of this class is repeated once without an effect.")
    wait_s = retry.longest_wait_s(max(1, case.attempts_used))
    if case.retry_after_s is not None:
        if case.retry_after_s > RETRY_AFTER_CAP_S:
            return Spent(exceeded, f"The outside asks to wait {case.retry_after_s:g} s, too long.")
        wait_s = max(wait_s, case.retry_after_s)
    if _is_past(case.schedule_to_close_at, now + timedelta(seconds=wait_s)):
        return Spent(
            ExhaustionReason.WORK_BUDGET_EXCEEDED,
            "The next attempt would begin after schedule-to-close.",
            time_over=True,
        )
    return None


def _settle_spent(case: CallSnapshot, spent: Spent, now: datetime) -> Decision:
    if case.effect is Effect.POSSIBLE:
        if case.rule.ends_open:
            return Decision(
                act=Act.EXPIRE,
                rule=case.rule.code,
                grounds=spent.sentence,
                effect=case.effect,
                reason=spent.reason,
                deadline="attempts",
                scope=spent.scope,
            )
        return _escalate(case, now, spent)
    by_time = spent.time_over and case.cause is None
    if by_time or case.cause in TIME_OVER or case.cause is None:
        return Decision(
            act=Act.EXPIRE,
            rule="spent",
            grounds=spent.sentence,
            effect=case.effect,
            reason=spent.reason,
            deadline="schedule_to_close" if spent.time_over else "start_to_close",
            scope=spent.scope,
        )
    return Decision(
        act=Act.FAIL,
        rule="spent",
        grounds=spent.sentence,
        effect=case.effect,
        reason=spent.reason,
        scope=spent.scope,
    )


def without_budget(
    case: CallSnapshot, wanted: Decision, scope: BudgetScope, sentence: str, *, now: datetime
) -> Decision:
    """Choose in the place of a repeat that a spent turn, session or tool refuses (R48).

    The table's line "spent" (semantics, section 3), with the rungs that led to the repeat.
    """
    spent = Spent(ExhaustionReason.WORK_BUDGET_EXCEEDED, sentence, scope=scope)
    decision = _settle_spent(replace(case, effect=wanted.effect or case.effect), spent, now)
    rule = decision.rule if decision.act is Act.ESCALATE else "budget_spent"
    return replace(decision, rule=rule, rung=wanted.rung, passed=wanted.passed)


def _escalate(case: CallSnapshot, now: datetime, spent: Spent | None = None) -> Decision:
    grounds = "No rung of the ladder brought proof."
    if spent is not None:
        grounds = spent.sentence
    elif case.stopped_because is not None:
        grounds = case.repeat_forbidden
    return Decision(
        act=Act.ESCALATE,
        rule=case.rule.code,
        reason=spent.reason if spent else _exhausted_because(case, now),
        grounds=f"{grounds} An operator decides.",
        scope=spent.scope if spent else None,
    )


def _exhausted_because(case: CallSnapshot, now: datetime) -> ExhaustionReason:
    if case.stopped_because in FOR_GOOD:
        return case.stopped_because
    if case.handle_was_lost:
        return ExhaustionReason.HANDLE_LOST
    if case.unlocks_at is None and case.probes_used and _is_past(case.stable_by, now):
        return ExhaustionReason.STABLE_TIMEOUT
    return case.stopped_because or ExhaustionReason.NO_PROOF


def _is_past(deadline: datetime | None, moment: datetime) -> bool:
    return deadline is not None and deadline <= moment
