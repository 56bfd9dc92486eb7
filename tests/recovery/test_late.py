"""Late results: each row of the table of semantics, section 8. Kept always, never in the way."""

from dataclasses import replace

import pytest

from ledger import attempts, settlements, strictjson
from ledger.claims import Claim
from ledger.errors import FenceLost
from ledger.journal import events_of
from ledger.models import Attempt, Evidence, Examination, Result, ToolCall
from ledger.vocabulary import (
    CallState,
    Cause,
    Effect,
    IncidentKind,
    LateMeaning,
    ProbeFinding,
    RecoveryClass,
)
from recovery import late, watchdog
from recovery.late import Late
from recovery.models import Incident
from tests import builders
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme
from tests.recovery.test_decisions import policy
from tests.recovery.test_recovering import PROBED, answered, interrupted

WRITE, SIDE = "idempotent_write", "side_effect"


def a_lost_write(acme: Acme) -> tuple[ToolCall, Claim]:
    """A keyed write whose crossed attempt was lost, and which is to be repeated."""
    call = a_call(acme, "running", WRITE, crossed=True)
    first = builders.claim_of(call)
    builders.lost(call)
    past(call, "next_step")
    fire()
    return fresh(call), first


def published(call: ToolCall) -> ToolCall:
    past(call, "backoff")
    fire()
    return fresh(call)


def comes_late(claim: Claim, result: object = "late") -> None:
    answer = settlements.settle([builders.settlement(claim, {"said": result})])
    assert isinstance(answer[0], FenceLost)


def meaning() -> str:
    watchdog.examine_late()
    return Examination.objects.get().meaning


def contradictions(call: ToolCall) -> list[Incident]:
    return list(Incident.objects.filter(call=call, kind=IncidentKind.CONTRADICTION))


# Before the call is settled


@pytest.mark.parametrize("stands", ["backing_off", "scheduled", "running"])
def test_before_a_newer_attempt_crosses_the_late_result_is_adopted(acme: Acme, stands: str) -> None:
    call, first = a_lost_write(acme)
    if stands != "backing_off":
        published(call)
    if stands == "running":
        builders.claimed(call)
    assert fresh(call).state == stands
    comes_late(first)
    fire()
    call = fresh(call)
    assert (call.state, call.effect) == ("succeeded", "happened")
    assert b"late" in bytes(Result.objects.get(call=call).body)
    assert events_of(call.id)[-1].kind == "adopted"
    assert meaning() == "adopted"


def test_the_newer_attempt_is_fenced_before_the_late_result_is_adopted(acme: Acme) -> None:
    call, first = a_lost_write(acme)
    builders.claimed(published(call))
    comes_late(first)
    fire()
    second = Attempt.objects.get(call=call, fence=2)
    assert (second.outcome, second.cause) == ("lost", Cause.OVERTAKEN)
    kinds = [event.kind for event in events_of(call.id)]
    assert kinds[-2:] == ["fence_lost", "adopted"]


def test_with_a_late_result_in_hand_the_newer_attempt_may_not_cross(acme: Acme) -> None:
    call, first = a_lost_write(acme)
    second = builders.claimed(published(call))
    comes_late(first)
    with pytest.raises(FenceLost):
        attempts.cross(call_id=call.id, fence=second.fence)


def test_with_a_late_result_in_hand_nobody_claims_a_newer_attempt(acme: Acme) -> None:
    call, first = a_lost_write(acme)
    published(call)
    comes_late(first)
    with pytest.raises(AssertionError, match="could not be claimed"):
        builders.claimed(call)


def test_a_result_in_hand_comes_before_the_calls_own_time(acme: Acme) -> None:
    call, first = a_lost_write(acme)
    published(call)
    comes_late(first)
    past(call, "schedule_to_close")
    fire()
    assert fresh(call).state == "succeeded"


def test_after_a_newer_attempt_crossed_the_late_result_is_kept(acme: Acme) -> None:
    call, first = a_lost_write(acme)
    builders.claimed(published(call))
    builders.cross(call)
    comes_late(first)
    fire()
    assert (fresh(call).state, fresh(call).next_step_at) == ("running", None)
    assert Evidence.objects.get(call=call).kind == "late_result"
    assert Examination.objects.get().meaning == ""


def test_under_one_key_two_executions_are_one_effect(acme: Acme) -> None:
    call, first = a_lost_write(acme)
    builders.claimed(published(call))
    builders.cross(call)
    comes_late(first)
    builders.settle(call)
    assert meaning() == "confirms"
    assert not contradictions(call)


def test_a_result_for_other_arguments_is_marked_and_never_adopted(acme: Acme) -> None:
    call, first = a_lost_write(acme)
    comes_late(replace(first, arguments_sha256="0" * 64))
    published(call)
    builders.claimed(call)
    builders.cross(call)
    builders.settle(call)
    assert meaning() == "other_arguments"
    assert not Evidence.objects.get(call=call).adoptable


# Once it is settled


def denied(acme: Acme) -> tuple[ToolCall, Claim]:
    """A mail whose effect an authoritative probe denied, and which may be sent once more."""
    call = a_call(acme, "running", SIDE, crossed=True, policy=PROBED)
    first = builders.claim_of(call)
    builders.lost(call)
    past(call, "next_step")
    fire()
    builders.unlock_denial(call)
    return answered(fresh(call), ProbeFinding.DID_NOT_HAPPEN), first


def test_a_denial_that_was_wrong_is_caught_before_the_repeat_crosses(acme: Acme) -> None:
    call, first = denied(acme)
    builders.claimed(published(call))
    comes_late(first)
    fire()
    call = fresh(call)
    assert (call.state, call.effect) == ("succeeded", "happened")
    watchdog.examine_late()
    (incident,) = contradictions(call)
    assert incident.facts["late_attempt"] == 1


def test_two_effects_by_a_wrong_denial_are_a_contradiction_with_both_attempts(
    acme: Acme,
) -> None:
    call, first = denied(acme)
    builders.claimed(published(call))
    builders.cross(call)
    comes_late(first)
    builders.settle(call, {"said": "on time"})
    assert meaning() == "contradicts"
    (incident,) = contradictions(call)
    assert incident.facts["attempts"] == [1, 3]
    assert b"on time" in bytes(Result.objects.get(call=call).body)


def test_success_after_a_settled_failure_proposes_a_correction(acme: Acme) -> None:
    call = a_call(acme, "running", SIDE, crossed=True, policy=PROBED | {"retry": {"attempts": 1}})
    first = builders.claim_of(call)
    builders.lost(call)
    past(call, "next_step")
    fire()
    builders.unlock_denial(call)
    call = answered(fresh(call), ProbeFinding.DID_NOT_HAPPEN)
    settled = call.state
    assert settled in ("failed", "expired")
    comes_late(first)
    assert meaning() == "contradicts"
    (incident,) = contradictions(call)
    assert incident.facts["proposed"] == "happened"
    assert incident.review_at is not None
    assert (fresh(call).state, fresh(call).effect) == (settled, "did_not_happen")


def test_a_contradiction_is_examined_once(acme: Acme) -> None:
    test_success_after_a_settled_failure_proposes_a_correction(acme)
    assert watchdog.examine_late() == 0


def test_a_late_success_of_what_was_proved_already_confirms_it(acme: Acme) -> None:
    call = a_call(acme, "running", SIDE, crossed=True, policy=PROBED)
    first = builders.claim_of(call)
    builders.lost(call)
    past(call, "next_step")
    fire()
    answered(fresh(call), ProbeFinding.HAPPENED)
    comes_late(first)
    assert meaning() == "confirms"
    assert not contradictions(call)


# Probes that answer too late


def asked_twice(acme: Acme, finding: ProbeFinding) -> ToolCall:
    """The first probe loses its fence, then answers."""
    call = interrupted(acme, **PROBED)
    claim = builders.claimed(call)
    past(call, "heartbeat")
    fire()
    settlements.file_late_answer(
        claim=claim, finding=finding, stored=strictjson.storable({"found": 1}), media_type="",
        message="",
    )  # fmt: skip
    return fresh(call)


def test_a_late_positive_probe_still_settles_the_call(acme: Acme) -> None:
    call = asked_twice(acme, ProbeFinding.HAPPENED)
    fire()
    assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")


def test_a_late_negative_probe_is_kept_and_proves_nothing(acme: Acme) -> None:
    call = asked_twice(acme, ProbeFinding.DID_NOT_HAPPEN)
    fire()
    assert (fresh(call).state, fresh(call).effect) == ("interrupted", "possible")
    assert Evidence.objects.get(call=call).finding == "did_not_happen"


# The table itself


def a_late(**facts: object) -> Late:
    return Late(
        **{  # type: ignore[arg-type]
            "recovery_class": RecoveryClass.SIDE_EFFECT,
            "policy": policy(RecoveryClass.SIDE_EFFECT),
            "state": CallState.SUCCEEDED,
            "effect": Effect.HAPPENED,
            "finding": "happened",
            "is_result": True,
            **facts,
        }
    )


S, E, M = CallState, Effect, LateMeaning
KEYED = {"recovery_class": RecoveryClass.IDEMPOTENT_WRITE}
READ = {"recovery_class": RecoveryClass.READ_ONLY, "effect": E.NONE, "crossed": False}


@pytest.mark.parametrize(
    ("facts", "means"),
    [
        ({}, M.CONFIRMS),
        ({"is_the_result": True}, M.ADOPTED),
        ({"finding": "unknown"}, M.SAYS_NOTHING),
        ({"adoptable": False}, M.OTHER_ARGUMENTS),
        ({"other_attempt_did_it": True}, M.CONTRADICTS),
        ({"other_attempt_did_it": True, "crossed": False}, M.CONFIRMS),
        ({"other_attempt_did_it": True, **KEYED}, M.CONFIRMS),
        ({"is_the_result": True, "ruled_out": True}, M.CONTRADICTS),
        ({"state": S.FAILED, "effect": E.DID_NOT_HAPPEN}, M.CONTRADICTS),
        ({"state": S.FAILED, "effect": E.HAPPENED}, M.CONTRADICTS),
        ({"state": S.FAILED, "effect": E.HAPPENED, "is_result": False}, M.CONFIRMS),
        ({"state": S.EXPIRED, "effect": E.DID_NOT_HAPPEN}, M.CONTRADICTS),
        ({"state": S.EXPIRED, "effect": E.NOT_BEGUN, "crossed": False}, M.SAYS_NOTHING),
        ({"state": S.ABANDONED, "effect": E.POSSIBLE}, M.CONTRADICTS),
        ({"state": S.SUCCEEDED, **READ}, M.CONFIRMS),
        ({"state": S.EXPIRED, **READ}, M.SAYS_NOTHING),
    ],
    ids=str,
)
def test_each_row_of_the_table(facts: dict[str, object], means: LateMeaning) -> None:
    assert late.meaning_of(a_late(**facts)) is means


def test_a_late_refusal_contradicts_nothing(acme: Acme) -> None:
    call, first = a_lost_write(acme)
    builders.claimed(published(call))
    builders.cross(call)
    builders.settle(call)
    settlements.file_late(
        claim=first, stored=strictjson.storable({"message": "no"}), media_type="",
        cause=Cause.VALIDATION,
    )  # fmt: skip
    assert meaning() == "says_nothing"
