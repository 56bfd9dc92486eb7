"""Decisions: each rung of the ladder, each row of the retry and error tables; facts in, act out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from ledger.policies import CallPolicy, policy_for
from ledger.vocabulary import (
    Cause,
    Effect,
    ExhaustionReason,
    Meaning,
    ProbeFinding,
    RecoveryClass,
)
from recovery.decisions import Act, CallSnapshot, after_report, decide
from recovery.matrix import RULES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
C, E, M = RecoveryClass, Effect, Meaning
WRITES = [c for c in C if c is not C.READ_ONLY]
classes = pytest.mark.parametrize("recovery_class", list(C), ids=str)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def policy(recovery_class: RecoveryClass, **knobs: Any) -> CallPolicy:
    document: dict[str, Any] = {"recovery_class": str(recovery_class), **knobs}
    document["retry"] = {"jitter": False, **knobs.get("retry", {})}
    if recovery_class is C.IDEMPOTENT_WRITE:
        document["key_template"] = "path:{path}"
    return policy_for(document)


def case(recovery_class: RecoveryClass = C.SIDE_EFFECT, **facts: Any) -> CallSnapshot:
    """A call whose first attempt crossed and is gone, with all its time left."""
    knobs = facts.pop("knobs", {})
    effect = E.NONE if recovery_class is C.READ_ONLY else E.POSSIBLE
    return CallSnapshot(
        **{
            "recovery_class": recovery_class,
            "policy": policy(recovery_class, **knobs),
            "effect": effect,
            "cause": Cause.WORKER_LOST,
            "attempts_used": 1,
            "attempts_allowed": policy(recovery_class, **knobs).retry.attempts,
            "schedule_to_close_at": later(3600),
            "recovery_window_at": later(300),
            **facts,
        }
    )


def probed(**facts: Any) -> CallSnapshot:
    recovery_class = facts.pop("recovery_class", C.SIDE_EFFECT)
    return case(recovery_class, knobs={"probe": {"authoritative": True}}, has_probe=True, **facts)


# The ladder (semantics, section 6)


@classes
def test_rung_1_a_late_result_of_the_only_crossed_attempt_is_adopted(
    recovery_class: RecoveryClass,
) -> None:
    decision = decide(case(recovery_class, late_result=uuid4()), now=NOW)
    assert (decision.act, decision.rule) == (Act.ADOPT, "late_result")


@classes
def test_rung_2_a_live_claim_is_waited_for(recovery_class: RecoveryClass) -> None:
    decision = decide(case(recovery_class, lease_until=later(9)), now=NOW)
    assert (decision.act, decision.until) == (Act.WAIT, later(9))


@classes
def test_rung_3_a_handle_is_resumed(recovery_class: RecoveryClass) -> None:
    assert decide(case(recovery_class, has_handle=True), now=NOW).act is Act.RESUME


def test_rung_3_a_handle_is_not_resumed_after_the_calls_time() -> None:
    decision = decide(case(C.LONG_RUNNING, has_handle=True, schedule_to_close_at=NOW), now=NOW)
    assert decision.act is Act.ESCALATE


@pytest.mark.parametrize("effect", [E.NOT_BEGUN, E.DID_NOT_HAPPEN])
@pytest.mark.parametrize("recovery_class", WRITES, ids=str)
def test_rung_4_proof_of_non_start_repeats(recovery_class: RecoveryClass, effect: Effect) -> None:
    decision = decide(case(recovery_class, effect=effect), now=NOW)
    assert (decision.act, decision.rule, decision.effect) == (Act.RETRY, "proven_safe", effect)


def test_rung_4_a_side_effect_that_never_began_is_repeated_once() -> None:
    again = case(effect=E.NOT_BEGUN, repeats_not_begun=1, attempts_allowed=9)
    assert decide(again, now=NOW).act is Act.EXPIRE


def test_rung_5_the_outside_is_asked_at_once() -> None:
    decision = decide(probed(), now=NOW)
    assert (decision.act, decision.until) == (Act.PROBE, NOW)


@pytest.mark.parametrize("recovery_class", WRITES, ids=str)
def test_rung_5_a_positive_answer_always_counts(recovery_class: RecoveryClass) -> None:
    decision = decide(
        probed(recovery_class=recovery_class, finding=ProbeFinding.HAPPENED, probes_used=1),
        now=NOW,
    )
    assert (decision.act, decision.effect) == (Act.PROVED, E.HAPPENED)


def test_rung_5_a_negative_answer_that_does_not_count_asks_again() -> None:
    early = probed(finding=ProbeFinding.DID_NOT_HAPPEN, probes_used=1, last_probe_at=NOW,
                   unlocks_at=later(35))  # fmt: skip
    decision = decide(early, now=NOW)
    assert (decision.act, decision.until) == (Act.PROBE, later(35))


def test_rung_5_a_negative_answer_that_counts_repeats() -> None:
    decision = decide(
        probed(finding=ProbeFinding.DID_NOT_HAPPEN, finding_counts=True, probes_used=2), now=NOW
    )
    assert (decision.act, decision.effect) == (Act.RETRY, E.DID_NOT_HAPPEN)


@pytest.mark.parametrize("finding", [ProbeFinding.UNKNOWN, ProbeFinding.IN_PROGRESS])
def test_rung_5_no_proof_asks_again_at_the_probes_interval(finding: ProbeFinding) -> None:
    decision = decide(
        probed(finding=finding, probes_used=1, last_probe_at=NOW, unlocks_at=later(-60)), now=NOW
    )
    assert (decision.act, decision.until) == (Act.PROBE, later(30))


def test_rung_5_ends_after_five_probes() -> None:
    decision = decide(
        probed(finding=ProbeFinding.UNKNOWN, probes_used=5, last_probe_at=NOW,
               unlocks_at=later(-60)), now=NOW,
    )  # fmt: skip
    assert decision.act is Act.ESCALATE


def test_rung_5_ends_with_the_recovery_window() -> None:
    decision = decide(
        probed(finding=ProbeFinding.UNKNOWN, probes_used=1, last_probe_at=NOW,
               unlocks_at=later(-60), recovery_window_at=later(29)), now=NOW,
    )  # fmt: skip
    assert decision.act is Act.ESCALATE


def test_rung_5_keeps_a_probe_for_the_time_after_the_unlock() -> None:
    """A lease of 15 s, 5 s of grace and 30 s in flight: denial unlocks after 50 s."""
    now, seen = NOW, probed()
    while now < later(50) and (step := decide(seen, now=now)).act is Act.PROBE and step.until:
        now = max(now, step.until)
        seen = replace(seen, probes_used=seen.probes_used + 1, last_probe_at=now,
                       finding=ProbeFinding.DID_NOT_HAPPEN,
                       unlocks_at=later(50) if now >= later(20) else None)  # fmt: skip
    assert decide(replace(seen, unlocks_at=later(50)), now=later(50)).act is Act.PROBE


@pytest.mark.parametrize(
    ("recovery_class", "act"),
    [(C.READ_ONLY, Act.RETRY), (C.IDEMPOTENT_WRITE, Act.RETRY), (C.SIDE_EFFECT, Act.ESCALATE),
     (C.LONG_RUNNING, Act.ESCALATE), (C.PROVIDER_AUTH, Act.RETRY)],
    ids=str,
)  # fmt: skip
def test_rung_6_the_rule_of_the_class(recovery_class: RecoveryClass, act: Act) -> None:
    decision = decide(case(recovery_class), now=NOW)
    assert decision.act is act
    if recovery_class is not C.READ_ONLY:
        assert decision.rule == RULES[recovery_class].code


def test_rung_7_an_operator_is_asked_with_every_rung_passed_named() -> None:
    decision = decide(case(), now=NOW)
    assert (decision.act, decision.rung) == (Act.ESCALATE, "operator")
    assert [each.rung for each in decision.passed] == [
        "late_result", "live_claim", "handle", "non_start", "probe", "class_rule",
    ]  # fmt: skip
    assert all(each.grounds.endswith(".") for each in decision.passed)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [({}, ExhaustionReason.NO_PROOF), ({"handle_was_lost": True}, ExhaustionReason.HANDLE_LOST)],
    ids=["no_proof", "handle_lost"],
)
def test_the_operator_is_told_why_the_machine_is_done(
    facts: dict[str, Any], reason: ExhaustionReason
) -> None:
    assert decide(case(C.LONG_RUNNING, **facts), now=NOW).reason is reason


def test_an_earlier_rung_answers_before_a_later_one() -> None:
    full = probed(recovery_class=C.LONG_RUNNING, late_result=uuid4(), lease_until=later(9),
                  has_handle=True, finding=ProbeFinding.HAPPENED)  # fmt: skip
    acts = [decide(full, now=NOW).act]
    for gone in ({"late_result": None}, {"lease_until": None}, {"has_handle": False}):
        full = replace(full, **gone)  # type: ignore[arg-type]
        acts.append(decide(full, now=NOW).act)
    assert acts == [Act.ADOPT, Act.WAIT, Act.RESUME, Act.PROVED]


# What a worker reports (semantics, section 5)


@classes
def test_known_not_begun_is_repeated(recovery_class: RecoveryClass) -> None:
    effect = E.NONE if recovery_class is C.READ_ONLY else E.NOT_BEGUN
    reported = case(recovery_class, effect=effect, cause=Cause.CONNECT_FAILED)
    assert after_report(reported, M.NOT_BEGUN, now=NOW).act is Act.RETRY


@pytest.mark.parametrize(
    "cause", [Cause.AUTH, Cause.PERMISSION, Cause.VALIDATION, Cause.NOT_FOUND, Cause.TOOL_UNKNOWN]
)
def test_a_refusal_that_does_not_pass_fails_the_call(cause: Cause) -> None:
    decision = after_report(case(effect=E.DID_NOT_HAPPEN, cause=cause), M.REFUSED, now=NOW)
    assert (decision.act, decision.effect) == (Act.FAIL, E.DID_NOT_HAPPEN)
    assert "not retried" in decision.grounds


@classes
def test_too_many_requests_are_repeated(recovery_class: RecoveryClass) -> None:
    effect = E.NONE if recovery_class is C.READ_ONLY else E.DID_NOT_HAPPEN
    refused = case(recovery_class, effect=effect, cause=Cause.RATE_LIMITED)
    assert after_report(refused, M.REFUSED, now=NOW).act is Act.RETRY


@pytest.mark.parametrize(
    "cause",
    [Cause.CONNECTION_LOST, Cause.HANG, Cause.GATEWAY_TIMEOUT, Cause.SERVER_ERROR,
     Cause.CONFLICT, Cause.WORKER_LOST, Cause.RESOURCE_KILLED, Cause.INTERNAL],
)  # fmt: skip
@pytest.mark.parametrize("recovery_class", WRITES, ids=str)
def test_an_unknown_outcome_after_the_boundary_interrupts(
    recovery_class: RecoveryClass, cause: Cause
) -> None:
    decision = after_report(case(recovery_class, cause=cause), M.UNKNOWN, now=NOW)
    assert decision.act is Act.INTERRUPT


def test_an_unknown_outcome_of_a_read_repeats_it() -> None:
    assert after_report(case(C.READ_ONLY), M.UNKNOWN, now=NOW).act is Act.RETRY


@pytest.mark.parametrize(
    ("means", "act", "effect"),
    [("no_effect", Act.FAIL, E.DID_NOT_HAPPEN), ("effect_unknown", Act.INTERRUPT, None)],
)
def test_a_tools_error_means_what_the_policy_says(
    means: str, act: Act, effect: Effect | None
) -> None:
    known = case(cause=Cause.TOOL_ERROR, knobs={"tool_error_means": means})
    decision = after_report(known, M.KNOWN, now=NOW)
    assert (decision.act, decision.effect) == (act, effect)


def test_a_tools_error_is_repeated_only_where_the_policy_says_so() -> None:
    knobs = {"tool_error_means": "no_effect", "retries_tool_errors": True}
    known = case(cause=Cause.TOOL_ERROR, knobs=knobs)
    assert after_report(known, M.KNOWN, now=NOW).act is Act.RETRY


@pytest.mark.parametrize("effect", [E.NOT_BEGUN, E.DID_NOT_HAPPEN])
def test_a_wish_to_cancel_ends_what_changed_nothing(effect: Effect) -> None:
    wished = case(effect=effect, cancel_requested=True)
    assert after_report(wished, M.NOT_BEGUN, now=NOW).act is Act.CANCEL


def test_a_wish_to_cancel_proves_nothing_after_the_boundary() -> None:
    decision = after_report(case(cancel_requested=True), M.UNKNOWN, now=NOW)
    assert decision.act is Act.INTERRUPT


# When no further attempt is made (semantics, section 4)


def spent(recovery_class: RecoveryClass = C.READ_ONLY, **facts: Any) -> tuple[Act, str]:
    effect = E.NONE if recovery_class is C.READ_ONLY else E.NOT_BEGUN
    decision = decide(case(recovery_class, **{"effect": effect, **facts}), now=NOW)
    return decision.act, decision.grounds


def test_the_attempts_of_the_policy_are_a_ceiling() -> None:
    act, grounds = spent(attempts_used=5)
    assert act is Act.EXPIRE
    assert grounds == "All 5 attempts are spent."


def test_a_known_last_cause_fails_and_a_timeout_expires() -> None:
    assert spent(attempts_used=5, cause=Cause.SERVER_ERROR)[0] is Act.FAIL
    assert spent(attempts_used=5, cause=Cause.HANG)[0] is Act.EXPIRE


def test_the_last_attempt_still_happens() -> None:
    assert spent(attempts_used=4)[0] is Act.RETRY


def test_three_attempts_that_killed_their_worker_are_enough() -> None:
    act, grounds = spent(attempts_used=3, workers_lost=3)
    assert act is Act.EXPIRE
    assert "killed their worker" in grounds


def test_two_are_not() -> None:
    assert spent(attempts_used=2, workers_lost=2)[0] is Act.RETRY


def test_an_attempt_that_would_begin_after_the_calls_time_is_not_waited_for() -> None:
    assert spent(attempts_used=1, schedule_to_close_at=later(0.9))[0] is Act.EXPIRE
    assert spent(attempts_used=1, schedule_to_close_at=later(1.1))[0] is Act.RETRY


@pytest.mark.parametrize(
    ("retry_after_s", "act"),
    [(20.0, Act.RETRY), (300.0, Act.RETRY), (301.0, Act.FAIL), (-5.0, Act.RETRY)],
)
def test_retry_after_is_obeyed_up_to_its_cap(retry_after_s: float, act: Act) -> None:
    limited = case(C.READ_ONLY, cause=Cause.RATE_LIMITED, retry_after_s=retry_after_s)
    assert after_report(limited, M.REFUSED, now=NOW).act is act


def test_retry_after_beyond_the_calls_time_settles_it_now() -> None:
    limited = case(C.READ_ONLY, cause=Cause.RATE_LIMITED, retry_after_s=60.0,
                   schedule_to_close_at=later(59))  # fmt: skip
    assert after_report(limited, M.REFUSED, now=NOW).act is Act.FAIL


@pytest.mark.parametrize(("used", "wait_s"), [(1, 1), (2, 2), (3, 4), (4, 8)])
def test_the_wait_grows_with_the_attempts(used: int, wait_s: float) -> None:
    failed = case(C.READ_ONLY, attempts_used=used, cause=Cause.SERVER_ERROR)
    assert decide(failed, now=NOW).wait_s == wait_s


@pytest.mark.parametrize(("workers_lost", "wait_s"), [(1, 0), (2, 2)])
def test_a_worker_that_died_once_is_no_reason_to_wait(workers_lost: int, wait_s: float) -> None:
    lost = case(C.READ_ONLY, attempts_used=workers_lost, workers_lost=workers_lost)
    assert decide(lost, now=NOW).wait_s == wait_s


@pytest.mark.parametrize(
    ("recovery_class", "act"),
    [(C.IDEMPOTENT_WRITE, Act.ESCALATE), (C.PROVIDER_AUTH, Act.EXPIRE)],
    ids=str,
)
def test_spent_with_a_possible_effect_is_never_failed(
    recovery_class: RecoveryClass, act: Act
) -> None:
    decision = decide(case(recovery_class, attempts_used=9), now=NOW)
    assert decision.act is act
    assert decision.reason is ExhaustionReason.WORK_BUDGET_EXCEEDED


def test_an_undisputed_side_effect_is_never_repeated_however_many_attempts_are_left() -> None:
    knobs = {"retry": {"attempts": 4}, "probe": {}}
    generous = case(knobs=knobs, attempts_allowed=9)
    assert decide(generous, now=NOW).act is Act.ESCALATE


def test_a_decision_is_the_same_for_the_same_facts() -> None:
    facts = probed(finding=ProbeFinding.UNKNOWN, probes_used=2, last_probe_at=NOW)
    assert decide(facts, now=NOW) == decide(facts, now=NOW)
