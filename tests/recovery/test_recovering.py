"""Recovery from end to end: the interrupted is explained, proved, repeated once or handed over."""

import pytest

from ledger import handles, settlements
from ledger.errors import FenceLost
from ledger.journal import events_of
from ledger.models import Attempt, Evidence, Handle, Result, ToolCall
from ledger.vocabulary import Cause, FailurePoint, Meaning, ProbeFinding
from recovery.models import Incident
from tests import builders
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme

PROBED = {"probe": {"authoritative": True}}


def interrupted(acme: Acme, recovery_class: str = "side_effect", **policy: object) -> ToolCall:
    """A crossed call whose worker fell silent, with the first step of the ladder taken."""
    call = a_call(acme, "interrupted", recovery_class, policy=policy)
    past(call, "next_step")
    fire()
    return fresh(call)


def answered(call: ToolCall, finding: ProbeFinding) -> ToolCall:
    """The due probe answers, and recovery takes its next step."""
    past(call, "next_step")
    if fresh(call).reason != "probe_due":
        fire()
        past(call, "next_step")
    builders.probe(call, finding)
    fire()
    return fresh(call)


def incident_of(call: ToolCall) -> Incident:
    return Incident.objects.get(call=call)


# To the operator


def test_a_crossed_side_effect_that_is_lost_becomes_interrupted(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    assert (call.effect, call.failure_point) == ("possible", FailurePoint.DURING_EXECUTION)
    assert call.cause == "worker_lost"
    assert incident_of(call).state == "detected"


def test_without_a_probe_it_becomes_ambiguous_with_an_incident_that_tells_why(
    acme: Acme,
) -> None:
    call = interrupted(acme)
    incident = incident_of(call)
    assert call.state == "ambiguous"
    assert (incident.state, incident.reason) == ("exhausted", "no_proof")
    assert (incident.cause, incident.failure_point) == ("worker_lost", "during_execution")
    assert incident.closed_at is None


def test_the_incident_names_every_rung_and_the_one_that_answered(acme: Acme) -> None:
    steps = list(incident_of(interrupted(acme)).steps.order_by("id"))
    assert [step.rung for step in steps if not step.taken] == [
        "late_result", "live_claim", "handle", "non_start", "probe", "class_rule",
    ]  # fmt: skip
    assert [step.rung for step in steps if step.taken] == ["report", "operator"]
    assert all(step.grounds and step.rule and step.policy_version == 1 for step in steps)
    assert [step.timer for step in steps] == ["", *["next_step"] * 7]
    assert {step.facts["effect"] for step in steps} == {"possible"}


def test_a_lost_attempt_is_not_repeated_by_any_number_of_sweeps(acme: Acme) -> None:
    call = interrupted(acme)
    for _ in range(5):
        fire()
    assert fresh(call).attempts_used == 1
    assert Attempt.objects.filter(call=call).count() == 1


# By probe


def test_a_probe_that_finds_the_effect_settles_the_call(acme: Acme) -> None:
    call = answered(interrupted(acme, **PROBED), ProbeFinding.HAPPENED)
    assert (call.state, call.effect) == ("succeeded", "happened")
    assert events_of(call.id)[-1].kind == "proved_done"
    assert incident_of(call).closed_at is not None
    assert not Result.objects.filter(call=call).exists()


def test_what_a_probe_found_is_kept_as_evidence(acme: Acme) -> None:
    call = answered(interrupted(acme, **PROBED), ProbeFinding.HAPPENED)
    evidence = Evidence.objects.get(call=call)
    assert (evidence.kind, evidence.finding) == ("probe", "happened")


def test_a_probe_is_not_an_attempt(acme: Acme) -> None:
    call = answered(interrupted(acme, **PROBED), ProbeFinding.UNKNOWN)
    assert call.attempts_used == 1


def test_a_no_before_denial_unlocks_counts_nothing(acme: Acme) -> None:
    call = answered(interrupted(acme, **PROBED), ProbeFinding.DID_NOT_HAPPEN)
    assert (call.state, call.effect) == ("interrupted", "possible")


def test_a_no_after_denial_unlocked_repeats_the_call_once(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    builders.unlock_denial(call)
    call = answered(call, ProbeFinding.DID_NOT_HAPPEN)
    assert (call.state, call.effect) == ("backing_off", "did_not_happen")
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.cross(call)
    builders.settle(call)
    assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")
    assert fresh(call).attempts_used == 2


def test_the_repeat_after_a_no_is_the_last(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    builders.unlock_denial(call)
    call = answered(call, ProbeFinding.DID_NOT_HAPPEN)
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.cross(call)
    builders.lost(call)
    past(call, "next_step")
    fire()
    builders.unlock_denial(call)
    call = answered(call, ProbeFinding.DID_NOT_HAPPEN)
    assert call.state in ("expired", "failed")
    assert (call.effect, call.attempts_used) == ("did_not_happen", 2)


def test_a_no_of_a_probe_that_is_not_authoritative_proves_nothing(acme: Acme) -> None:
    call = interrupted(acme, probe={"authoritative": False, "attempts": 1})
    builders.unlock_denial(call)
    call = answered(call, ProbeFinding.DID_NOT_HAPPEN)
    assert (call.state, call.effect) == ("ambiguous", "possible")


def test_probes_without_proof_end_at_the_operator(acme: Acme) -> None:
    call = interrupted(acme, probe={"authoritative": True, "attempts": 2})
    builders.unlock_denial(call)
    for _ in range(2):
        assert call.state == "interrupted"
        call = answered(call, ProbeFinding.UNKNOWN)
    assert call.state == "ambiguous"


def test_a_worker_lost_during_a_probe_costs_only_the_probe(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    builders.claimed(call)
    past(call, "heartbeat")
    fire()
    call = fresh(call)
    assert (call.state, call.effect, call.attempts_used) == ("interrupted", "possible", 1)
    assert events_of(call.id)[-1].kind == "probe_ended"


@pytest.mark.parametrize("passed", ["next_step", "recovery_window"])
def test_a_probe_whose_lease_ended_before_its_date_is_lost_before_anything_is_decided(
    acme: Acme, passed: str
) -> None:
    # The lease is counted from the attempt's row, the date from the call's, written after it.
    call = interrupted(acme, "idempotent_write", **PROBED)
    builders.claimed(call)
    builders.end_lease(call)
    past(call, passed)
    fire()
    assert Attempt.objects.get(call=call, kind="probe").outcome == "lost"
    assert fresh(call).state == "interrupted"


def test_after_an_unknown_end_the_probe_can_be_claimed_at_once(acme: Acme) -> None:
    call = a_call(acme, "running", crossed=True, policy=PROBED)
    builders.report(call, Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    assert fresh(call).heartbeat_at is None
    fire()
    assert builders.claimed(call).kind == "probe"


def test_a_keyed_write_is_probed_on_a_timer_while_an_operator_is_asked(acme: Acme) -> None:
    call = interrupted(acme, "idempotent_write", probe={"attempts": 1}, retry={"attempts": 1})
    call = answered(call, ProbeFinding.UNKNOWN)
    assert (call.state, call.reason) == ("ambiguous", "probe_due")
    call = answered(call, ProbeFinding.HAPPENED)
    assert (call.state, call.effect) == ("succeeded", "happened")


# By the rule of the class


def test_a_keyed_write_is_repeated_under_the_same_key(acme: Acme) -> None:
    call = interrupted(acme, "idempotent_write")
    assert (call.state, call.effect) == ("backing_off", "possible")
    past(call, "backoff")
    fire()
    builders.claimed(call)
    keys = set(Attempt.objects.filter(call=call).values_list("effect_key", flat=True))
    assert keys == {"path:report.txt"}
    assert Attempt.objects.filter(call=call).count() == 2


def test_a_keyed_write_with_a_probe_is_asked_after_before_it_is_repeated(acme: Acme) -> None:
    call = interrupted(acme, "idempotent_write", **PROBED)
    assert call.reason == "probe_due"
    assert answered(call, ProbeFinding.HAPPENED).state == "succeeded"


def test_a_read_is_repeated_within_its_attempts_and_then_expires(acme: Acme) -> None:
    call = a_call(acme, "running", "read_only", policy={"retry": {"attempts": 2}})
    builders.lost(call)
    past(call, "backoff")
    fire()
    builders.claimed(call)
    assert builders.lost(call).state == "expired"
    assert fresh(call).attempts_used == 2


def test_three_workers_killed_by_one_call_are_enough(acme: Acme) -> None:
    call = a_call(acme, "running", "read_only")
    for killed in (1, 2):
        builders.lost(call)
        assert (fresh(call).state, fresh(call).workers_lost) == ("backing_off", killed)
        past(call, "backoff")
        fire()
        builders.claimed(call)
    call = builders.lost(call)
    assert (call.state, call.workers_lost, call.attempts_used) == ("expired", 3, 3)


def test_a_wait_that_the_outside_asked_for_is_dated(acme: Acme) -> None:
    call = a_call(acme, "running", "read_only")
    builders.report(call, Cause.RATE_LIMITED, Meaning.REFUSED, retry_after_s=20.0)
    call = fresh(call)
    assert call.state == "backing_off"
    wait = call.backoff_at - events_of(call.id)[-1].at  # type: ignore[operator]
    assert 19.9 <= wait.total_seconds() <= 22.1


def test_a_wait_beyond_its_cap_settles_the_call_with_the_known_refusal(acme: Acme) -> None:
    call = a_call(acme, "running", "read_only")
    builders.report(call, Cause.RATE_LIMITED, Meaning.REFUSED, retry_after_s=301.0)
    assert (fresh(call).state, fresh(call).cause) == ("failed", "rate_limited")


def test_a_sign_in_gets_one_fresh_flow_and_then_expires(acme: Acme) -> None:
    call = interrupted(acme, "provider_auth")
    assert (call.state, call.effect) == ("backing_off", "possible")
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.cross(call)
    builders.lost(call)
    past(call, "next_step")
    fire()
    assert (fresh(call).state, fresh(call).effect) == ("expired", "possible")


# By handle


def test_a_lost_long_job_with_a_handle_is_parked_again_without_an_attempt(acme: Acme) -> None:
    call = a_call(acme, "running", "long_running", crossed=True)
    handles.store_handle(call_id=call.id, fence=1, handle=handles.HandleToStore(value="run-7"))
    builders.lost(call)
    past(call, "next_step")
    fire()
    assert (fresh(call).state, fresh(call).attempts_used) == ("parked", 1)
    assert builders.poll(call).kind == "poll"
    builders.settle(call)
    assert fresh(call).state == "succeeded"


def test_a_handle_that_the_outside_does_not_know_ends_at_the_operator(acme: Acme) -> None:
    call = a_call(acme, "parked", "long_running")
    builders.poll(call)
    builders.report(call, Cause.VANISHED, Meaning.UNKNOWN)
    fire()
    assert fresh(call).state == "ambiguous"
    assert incident_of(call).reason == "handle_lost"
    assert Handle.objects.get(call=call).lost_at is not None


def test_a_poll_lost_with_its_worker_is_polled_again(acme: Acme) -> None:
    call = a_call(acme, "parked", "long_running")
    builders.poll(call)
    past(call, "heartbeat")
    fire()
    assert fresh(call).state == "parked"
    assert builders.poll(call).fence == 3


def test_a_poll_without_an_answer_changes_nothing_but_its_date(acme: Acme) -> None:
    call = a_call(acme, "parked", "long_running")
    builders.poll(call)
    builders.report(call, Cause.GATEWAY_TIMEOUT, Meaning.UNKNOWN)
    assert (fresh(call).state, fresh(call).effect) == ("parked", "possible")
    assert fresh(call).next_poll_at is not None


def test_a_job_that_ended_in_error_is_not_polled_for_ever(acme: Acme) -> None:
    call = a_call(acme, "parked", "long_running")
    builders.poll(call)
    builders.report(call, Cause.TOOL_ERROR, Meaning.KNOWN, message="The job failed.")
    for _ in range(3):
        fire()
    assert fresh(call).state == "ambiguous"


# Late results (semantics, section 8)


def late(call: ToolCall) -> None:
    with pytest.raises(FenceLost):
        builders.settle(call, {"late": True})


def test_a_late_result_of_the_only_crossed_attempt_is_adopted(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    late(call)
    fire()
    call = fresh(call)
    result = Result.objects.get(call=call)
    assert (call.state, call.effect) == ("succeeded", "happened")
    assert b"late" in bytes(result.body)
    event = events_of(call.id)[-1]
    assert (event.kind, event.seq, event.facts_json["rule"]) == (
        "adopted", result.event_seq, "late_result",
    )  # fmt: skip
    assert incident_of(call).state == "skipped"


def test_a_late_result_settles_an_ambiguous_call_too(acme: Acme) -> None:
    call = a_call(acme, in_state="ambiguous")
    late(call)
    fire()
    assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")


def test_a_late_result_is_never_a_reason_to_repeat(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    late(call)
    for _ in range(3):
        fire()
    assert fresh(call).attempts_used == 1


def test_a_late_result_of_a_settled_call_is_kept_and_overwrites_nothing(acme: Acme) -> None:
    call = a_call(acme, "running", "idempotent_write", crossed=True)
    first = builders.claim_of(call)
    builders.lost(call)
    past(call, "next_step")
    fire()
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.cross(call)
    builders.settle(call, {"attempt": 2})
    answer = settlements.settle([builders.settlement(first, {"attempt": 1})])
    assert isinstance(answer[0], FenceLost)
    assert b"2" in bytes(Result.objects.get(call=call).body)
    assert Evidence.objects.get(call=call).attempt_id == first.attempt_id


def test_a_refused_job_says_nothing_of_the_crossing_before_it(acme: Acme) -> None:
    call = a_call(acme, "running", "idempotent_write", crossed=True)
    builders.report(call, Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    for deadline in ("next_step", "backoff"):
        past(call, deadline)
        fire()
    builders.claimed(call)
    builders.cross(call)
    builders.park(call)
    builders.poll(call)
    builders.report(call, Cause.VALIDATION, Meaning.REFUSED)
    assert (fresh(call).state, fresh(call).effect) == ("interrupted", "possible")
