"""Whatever the facts, a decision keeps the promises of its class. No database, no clock."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.machine import pair_is_allowed
from ledger.policies import CallPolicy, policy_for
from ledger.vocabulary import CallState, Cause, Effect, Meaning, ProbeFinding, RecoveryClass
from recovery.decisions import Act, CallSnapshot, Decision, after_report, decide

NOW = datetime(2026, 1, 1, tzinfo=UTC)
instants = st.one_of(
    st.none(), st.floats(-600, 600).map(lambda seconds: NOW + timedelta(seconds=seconds))
)
LEADS_TO = {
    Act.RETRY: CallState.BACKING_OFF,
    Act.FAIL: CallState.FAILED,
    Act.EXPIRE: CallState.EXPIRED,
    Act.CANCEL: CallState.CANCELLED,
    Act.ADOPT: CallState.SUCCEEDED,
    Act.PROVED: CallState.SUCCEEDED,
}


def _policy(recovery_class: RecoveryClass, means: str, repeats: bool) -> CallPolicy:
    keyed = recovery_class is RecoveryClass.IDEMPOTENT_WRITE
    return policy_for(
        {"recovery_class": recovery_class, "key_template": "k" if keyed else "", "probe": {},
         "tool_error_means": means, "retries_tool_errors": repeats}
    )  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> CallSnapshot:
    """Any facts that a call which lost or ended an attempt can have."""
    recovery_class = draw(st.sampled_from(RecoveryClass))
    means = draw(st.sampled_from(["no_effect", "effect_unknown"]))
    reads = recovery_class is RecoveryClass.READ_ONLY
    effects = [Effect.NONE] if reads else [
        Effect.NOT_BEGUN, Effect.POSSIBLE, Effect.DID_NOT_HAPPEN]  # fmt: skip
    flags: dict[str, Any] = {
        name: draw(st.booleans())
        for name in ("has_handle", "handle_was_lost", "has_probe", "finding_counts",
                     "cancel_requested")
    }  # fmt: skip
    instants_of = ("lease_until", "last_probe_at", "unlocks_at", "schedule_to_close_at",
                   "recovery_window_at")  # fmt: skip
    return CallSnapshot(
        recovery_class=recovery_class,
        policy=_policy(recovery_class, means, draw(st.booleans())),
        effect=draw(st.sampled_from(effects)),
        cause=draw(st.one_of(st.none(), st.sampled_from(Cause))),
        attempts_used=draw(st.integers(0, 21)),
        attempts_allowed=draw(st.integers(1, 20)),
        workers_lost=draw(st.integers(0, 4)),
        repeats_not_begun=draw(st.integers(0, 3)),
        late_result=draw(st.one_of(st.none(), st.just(UUID(int=7)))),
        probes_used=draw(st.integers(0, 6)),
        finding=draw(st.one_of(st.none(), st.sampled_from(ProbeFinding))),
        retry_after_s=draw(st.one_of(st.none(), st.floats(-10, 1000))),
        **flags,
        **{name: draw(instants) for name in instants_of},
    )


def _keeps_its_promise(case: CallSnapshot, decision: Decision) -> None:
    possible = case.effect is Effect.POSSIBLE
    disproved = case.finding is ProbeFinding.DID_NOT_HAPPEN and case.finding_counts
    assert decision.grounds
    assert decision.rule
    if decision.act is Act.RETRY and possible and decision.effect is Effect.POSSIBLE:
        assert case.rule.repeats_when_possible
    if decision.act is Act.RETRY:
        assert case.attempts_used < case.attempts_allowed
        assert case.workers_lost < 3
        assert decision.wait_s >= 0
    if decision.act in (Act.FAIL, Act.CANCEL) and possible:
        assert decision.effect is not Effect.POSSIBLE
        assert disproved or case.policy.tool_error_means == "no_effect"
    if decision.act is Act.ESCALATE:
        assert possible
        assert decision.reason is not None
    target = LEADS_TO.get(decision.act)
    if target is not None:
        effect = decision.effect or case.effect
        assert pair_is_allowed(target, effect, case.recovery_class), (target, effect)


@given(cases())
@settings(max_examples=400, deadline=None)
def test_the_ladder_keeps_every_promise(case: CallSnapshot) -> None:
    _keeps_its_promise(case, decide(case, now=NOW))


@given(cases(), st.sampled_from(Meaning))
@settings(max_examples=400, deadline=None)
def test_a_report_keeps_every_promise(case: CallSnapshot, means: Meaning) -> None:
    _keeps_its_promise(case, after_report(case, means, now=NOW))


@given(cases())
@settings(max_examples=200, deadline=None)
def test_a_passed_probe_leaves_its_reason(case: CallSnapshot) -> None:
    decision = decide(case, now=NOW)
    assert decision.rung
    assert decision.rung not in {each.rung for each in decision.passed}
    assert all(each.grounds for each in decision.passed)


@given(cases())
@settings(max_examples=200, deadline=None)
def test_a_side_effect_is_repeated_only_on_proof(case: CallSnapshot) -> None:
    if case.recovery_class is not RecoveryClass.SIDE_EFFECT or case.effect is not Effect.POSSIBLE:
        return
    decision = decide(case, now=NOW)
    if decision.act is Act.RETRY:
        assert case.finding is ProbeFinding.DID_NOT_HAPPEN
        assert case.finding_counts
