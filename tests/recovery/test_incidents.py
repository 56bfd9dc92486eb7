"""Incidents: one state at a time, a root over all attempts of a call, a reason on every line."""

import pytest
from django.db import IntegrityError, transaction

from ledger.vocabulary import Cause, IncidentKind, Meaning, ProbeFinding
from recovery import decisions, incidents, snapshots
from recovery.models import Incident, Step
from tests import builders
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme
from tests.recovery.test_recovering import PROBED, answered, incident_of, interrupted


def test_a_loss_is_detected_with_its_cause_and_why_it_was_opened(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    incident = incident_of(call)
    assert incident.state == "detected"
    (step,) = incident.steps.all()
    assert (step.rung, step.rule, step.policy_version) == ("report", "side_effects_need_proof", 1)
    assert step.facts["cause"] == "worker_lost"


def test_a_dated_step_is_scheduled_and_a_claimed_probe_attempting(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    assert incident_of(call).state == "scheduled"
    builders.claimed(call)
    assert incident_of(call).state == "attempting"


def test_an_answered_probe_leaves_the_next_step_dated(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    builders.probe(call, ProbeFinding.UNKNOWN)
    assert incident_of(call).state == "scheduled"


def test_a_probe_lost_with_its_worker_leaves_the_next_step_dated(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    builders.claimed(call)
    past(call, "heartbeat")
    fire()
    assert incident_of(call).state == "scheduled"


def test_a_probe_by_timer_leaves_it_the_operators_turn(acme: Acme) -> None:
    call = interrupted(acme, "idempotent_write", probe={"attempts": 1}, retry={"attempts": 1})
    call = answered(call, ProbeFinding.UNKNOWN)
    past(call, "next_step")
    builders.claimed(call)
    assert incident_of(call).state == "exhausted"


@pytest.mark.parametrize(
    ("recovery_class", "state"), [("idempotent_write", "completed"), ("side_effect", "exhausted")]
)
def test_the_machine_completes_or_exhausts(acme: Acme, recovery_class: str, state: str) -> None:
    assert incident_of(interrupted(acme, recovery_class)).state == state


def test_a_resolution_closes_it_with_a_name_and_grounds(acme: Acme) -> None:
    incident = incident_of(a_call(acme, in_state="interrupted"))
    with transaction.atomic():
        incidents.resolved(incident, by="olga", grounds="Seen in the mailbox.")
        incident.refresh_from_db()
        assert (incident.state, incident.closed_at is None) == ("resolved", False)
        step = incident.steps.latest("id")
        assert (step.facts, step.grounds) == ({"by": "olga"}, "Seen in the mailbox.")
        transaction.set_rollback(True)  # the call itself is still interrupted


def test_the_database_refuses_a_closed_incident_that_says_it_is_open(acme: Acme) -> None:
    incident = incident_of(a_call(acme, in_state="interrupted"))
    with pytest.raises(IntegrityError, match="incident_state_says_closed"), transaction.atomic():
        Incident.objects.filter(id=incident.id).update(state="resolved")


def test_a_second_interruption_has_the_root_and_the_count_of_the_first(acme: Acme) -> None:
    call = interrupted(acme, "idempotent_write")
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.cross(call)
    builders.lost(call)
    first, second = Incident.objects.filter(call=call).order_by("number")
    assert (first.number, first.root, first.steps_without_progress) == (1, None, 1)
    assert (second.number, second.root, second.steps_without_progress) == (2, first, 1)


def test_the_same_rows_give_the_same_decision(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    case, now = snapshots.of(call)
    again, _ = snapshots.of(fresh(call))
    assert again == case
    assert decisions.decide(again, now=now) == decisions.decide(case, now=now)


def test_two_effects_of_one_call_are_an_incident_of_their_own(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    builders.probe(call, ProbeFinding.HAPPENED, effects=2)
    fire()
    assert fresh(call).state == "succeeded"
    double = Incident.objects.get(call=call, kind=IncidentKind.REPEATED_SEND)
    assert (double.closed_at, double.facts["effects"]) == (None, 2)


def test_one_effect_is_none(acme: Acme) -> None:
    call = interrupted(acme, **PROBED)
    builders.probe(call, ProbeFinding.HAPPENED)
    assert not Incident.objects.filter(kind=IncidentKind.REPEATED_SEND).exists()


def test_a_report_without_a_loss_opens_none(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    builders.report(call, Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert not Step.objects.exists()
