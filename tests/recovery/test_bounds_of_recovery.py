"""Recovery has bounds: ten steps, its window, ten leases, a person's word; each has its reason."""

from dataclasses import replace
from datetime import timedelta

import pytest

from ledger.errors import NotFound
from ledger.journal import events_of
from ledger.models import Attempt, ToolCall
from ledger.vocabulary import Cause, Deadline, ExhaustionReason, ProbeFinding, RecoveryClass
from recovery import aborts, deadlines, decisions
from recovery.decisions import STEPS_WITHOUT_PROGRESS, Act, decide
from recovery.models import Incident
from tests import builders
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme, Globex
from tests.recovery.test_decisions import NOW, case, later, probed
from tests.recovery.test_recovering import PROBED, answered, incident_of, interrupted

R = ExhaustionReason


def escalations(call: ToolCall) -> int:
    return [event.kind for event in events_of(call.id)].count("escalated")


# Pure


def test_after_ten_steps_without_news_an_operator_decides() -> None:
    spent = probed(steps_without_progress=STEPS_WITHOUT_PROGRESS)
    decision = decide(spent, now=NOW)
    assert (decision.act, decision.reason) == (Act.ESCALATE, R.MAX_ATTEMPTS_EXCEEDED)
    assert decide(replace(spent, steps_without_progress=9), now=NOW).act is Act.PROBE


def test_after_ten_steps_not_even_a_handle_is_followed_again() -> None:
    decision = decide(case(has_handle=True, steps_without_progress=10), now=NOW)
    assert decision.reason is R.MAX_ATTEMPTS_EXCEEDED


@pytest.mark.parametrize("recovery_class", [RecoveryClass.IDEMPOTENT_WRITE])
def test_after_ten_steps_no_key_is_repeated_again(recovery_class: RecoveryClass) -> None:
    decision = decide(case(recovery_class, steps_without_progress=10), now=NOW)
    assert decision.act is Act.ESCALATE


def test_what_is_in_hand_counts_after_ten_steps_too() -> None:
    spent = probed(steps_without_progress=10, finding=ProbeFinding.HAPPENED)
    assert decide(spent, now=NOW).act is Act.PROVED


def test_a_sign_in_waits_for_no_operator_after_ten_steps() -> None:
    decision = decide(case(RecoveryClass.PROVIDER_AUTH, steps_without_progress=10), now=NOW)
    assert decision.act is Act.EXPIRE


def test_an_attempt_that_is_not_proven_dead_is_waited_for_until_ten_leases() -> None:
    asked = probed(last_probe_at=NOW, probes_used=1, stable_by=later(150))
    decision = decide(asked, now=NOW)
    assert (decision.act, decision.until) == (Act.WAIT, later(150))


def test_an_attempt_that_cannot_be_proven_dead_ends_at_the_operator() -> None:
    asked = probed(last_probe_at=NOW, probes_used=1, stable_by=later(150))
    decision = decide(asked, now=later(150))
    assert (decision.act, decision.reason) == (Act.ESCALATE, R.STABLE_TIMEOUT)


def test_a_lost_handle_is_the_reason_whatever_ended_the_window() -> None:
    over = decisions.stopped(case(handle_was_lost=True), R.NO_PROGRESS_TIMEOUT, "Over.")
    assert decide(over, now=NOW).reason is R.HANDLE_LOST


# On the ledger


def test_a_window_without_progress_says_so(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    past(call, "recovery_window")
    fire()
    assert fresh(call).state == "ambiguous"
    assert incident_of(call).reason == R.NO_PROGRESS_TIMEOUT
    assert escalations(call) == 1


def test_ten_leases_without_proof_of_death_say_so(acme: Acme) -> None:
    call = answered(interrupted(acme, **PROBED), ProbeFinding.UNKNOWN)
    lost = Attempt.objects.get(call=call, kind="run")
    assert call.next_step_at == lost.fence_lost_at + timedelta(seconds=150)  # type: ignore[operator]
    ago = timedelta(seconds=151)
    Attempt.objects.filter(id=lost.id).update(fence_lost_at=lost.fence_lost_at - ago)  # type: ignore[operator]
    past(call, "next_step")
    fire()
    assert incident_of(call).reason == R.STABLE_TIMEOUT


def test_new_evidence_begins_the_window_and_the_count_anew(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    Incident.objects.filter(call=call).update(steps_without_progress=9)
    past(call, "next_step")
    builders.probe(call, ProbeFinding.IN_PROGRESS)
    ends = past(call, "recovery_window").recovery_window_at
    fire()
    call = fresh(call)
    assert call.state == "interrupted"
    assert call.recovery_window_at > ends  # type: ignore[operator]
    assert incident_of(call).steps_without_progress == 1


def test_an_unknown_answer_is_no_progress(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    builders.probe(call, ProbeFinding.UNKNOWN)
    past(call, "recovery_window")
    fire()
    assert fresh(call).state == "ambiguous"


def test_no_window_ends_later_than_the_calls_time_and_one_window(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    builders.probe(call, ProbeFinding.IN_PROGRESS)
    past(call, "schedule_to_close", "recovery_window")
    fire()
    call = fresh(call)
    latest = call.schedule_to_close_at + timedelta(seconds=300)  # type: ignore[operator]
    assert call.recovery_window_at <= latest  # type: ignore[operator]


def test_steps_are_counted_over_all_interruptions_of_a_call(acme: Acme) -> None:
    call = interrupted(acme, "idempotent_write")
    Incident.objects.filter(call=call).update(steps_without_progress=10)
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.cross(call)
    builders.lost(call)
    past(call, "next_step")
    fire()
    last = Incident.objects.filter(call=call).latest("number")
    assert (fresh(call).state, last.reason) == ("ambiguous", R.MAX_ATTEMPTS_EXCEEDED)


# Stopped by a person


def stop(call: ToolCall, acme: Acme, grounds: str = "The shop is closed.") -> Incident:
    return aborts.stop(
        workspace_id=acme.workspace.id, incident_id=incident_of(call).id, by_id=str(acme.olga.pk),
        by_name="olga", grounds=grounds,
    )  # fmt: skip


def test_a_person_ends_the_machines_turn(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    incident = stop(call, acme)
    event = events_of(call.id)[-1]
    assert (fresh(call).state, incident.state, incident.reason) == (
        "ambiguous", "exhausted", R.RECOVERY_ABORTED,
    )  # fmt: skip
    assert (event.kind, event.actor, event.actor_id) == ("escalated", "operator", str(acme.olga.pk))
    assert incident.steps.latest("id").grounds == "olga stopped the machine: The shop is closed."


def test_stopping_twice_is_stopping_once(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    assert stop(call, acme) == stop(call, acme)
    assert escalations(call) == 1


def test_the_first_step_is_taken_before_the_machine_is_stopped(acme: Acme) -> None:
    call = a_call(acme, "interrupted", "idempotent_write")
    stop(call, acme)
    assert fresh(call).state == "backing_off"


def test_where_nothing_is_recovered_there_is_nothing_to_stop(acme: Acme) -> None:
    call = interrupted(acme)
    with pytest.raises(aborts.NotRecovering, match="takes no steps"):
        stop(call, acme)


def test_the_neighbour_finds_no_incident_to_stop(acme: Acme, globex: Globex) -> None:
    call = interrupted(acme, **PROBED)
    with pytest.raises(NotFound):
        aborts.stop(workspace_id=globex.workspace.id, incident_id=incident_of(call).id,
                   by_id="1", by_name="mallory", grounds="Mine.")  # fmt: skip


def test_a_probe_under_way_may_still_prove_it(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    claim = builders.claimed(call)
    stop(call, acme)
    builders.reports.probed(claim=claim, finding=ProbeFinding.HAPPENED)
    fire()
    assert fresh(call).state == "succeeded"


def test_the_bounds_are_fired_by_the_watchdog(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    past(call, "recovery_window")
    assert deadlines.fire(fresh(call))
    assert (fresh(call).cause, fresh(call).state) == (Cause.WORKER_LOST, "ambiguous")
    assert incident_of(call).steps.latest("id").timer == Deadline.RECOVERY_WINDOW
