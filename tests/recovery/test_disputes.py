"""Disputes: two people say different things of one call, and neither decides between them."""

from typing import Any

import pytest

from ledger.errors import LedgerError, LoginStale, NotFound, PermissionMissing
from ledger.models import ToolCall
from ledger.permissions import Person
from ledger.vocabulary import ResolutionAnswer
from recovery import changes, corrections, disputed, disputes, resolutions, stages
from recovery.disputes import NotDisputable
from recovery.models import Dispute, Incident, Resolution, Step
from recovery.refusals import ThirdPersonRequired
from recovery.rulings import Wish
from tests import threads
from tests.builders import fresh
from tests.cast import Acme, Globex, a_person, as_decider
from tests.recovery.deciding import (
    AT_ONCE,
    a_decision,
    ambiguous,
    decide,
    delay_over,
    fall_due,
    found,
    incident_of,
    version_of,
)

pytestmark = pytest.mark.django_db

WAITS = {"delivery_delay_s": 60}


@pytest.fixture
def omar(acme: Acme) -> Person:
    return as_decider(a_person("omar", acme.workspace, "operator"))


@pytest.fixture
def third(acme: Acme) -> Person:
    return as_decider(a_person("tess", acme.workspace, "operator"))


def dispute(
    resolution: Resolution, by: Person, answer: str = "did_not_happen", then: str = "close"
) -> Dispute:
    wish = Wish(answer=ResolutionAnswer(answer), then=then, grounds="The bank has nothing.")
    return disputes.begin(resolution_id=resolution.id, wish=wish, by=by)


def stage(resolution: Resolution) -> str:
    return str(stages.of(Resolution.objects.get(id=resolution.id)))


def correct(call: ToolCall, answer: str, by: Person) -> Resolution:
    decision = a_decision(call, answer, evidence=(found(call, answer, by).id,))
    return corrections.correct(call_id=call.id, decision=decision, by=by)


# What waits


def test_a_dispute_stops_what_is_not_carried_out_and_keeps_both_answers(
    acme: Acme, omar: Person
) -> None:
    call = ambiguous(acme, **WAITS)
    hers = decide(acme, call, "happened")
    made = dispute(hers, omar)
    assert resolutions.carry_out_due() == 0
    assert (stage(hers), fresh(call).state) == ("taken_back", "ambiguous")
    assert incident_of(call).closed_at is None
    assert (made.resolution.answer, made.answer) == ("happened", "did_not_happen")
    told = Step.objects.get(incident=incident_of(call), rung="disputed").grounds
    assert told == (
        "omar disputes what olga recorded (happened) and says did not happen, close: The bank has "
        "nothing."
    )


def test_neither_side_decides_until_a_third_person_has(
    acme: Acme, omar: Person, third: Person
) -> None:
    call = ambiguous(acme, **WAITS)
    made = dispute(decide(acme, call, "happened"), omar)
    for party in (as_decider(acme.olga), omar):
        with pytest.raises(ThirdPersonRequired, match="between olga and omar"):
            decide(acme, call, "happened", by=party)
        assert not any(each.allowed for each in resolutions.offers(call, incident_of(call), party))
    decision = decide(acme, call, "happened", by=third)
    delay_over(call)
    assert fresh(call).state == "succeeded"
    made.refresh_from_db()
    assert made.decision == decision
    assert disputed.of_call(call.id) is None


def test_an_admin_decides_also_as_one_of_the_two(acme: Acme) -> None:
    call = ambiguous(acme, **WAITS)
    admin = as_decider(a_person("alva", acme.workspace, "admin"))
    dispute(decide(acme, call, "happened"), admin)
    assert decide(acme, call, "did_not_happen", "close", by=admin).by_name == "alva"


def test_a_third_persons_decision_that_is_taken_back_leaves_the_dispute_open(
    acme: Acme, omar: Person, third: Person
) -> None:
    call = ambiguous(acme, **WAITS)
    dispute(decide(acme, call, "happened"), omar)
    answer = decide(acme, call, "happened", by=third)
    resolutions.take_back(resolution_id=answer.id, grounds="Wrong call.", by=third)
    with pytest.raises(ThirdPersonRequired):
        decide(acme, call, "happened", by=omar)
    assert decide(acme, call, "happened", by=third)


def test_both_sides_may_still_state_evidence(acme: Acme, omar: Person) -> None:
    call = ambiguous(acme, **WAITS)
    dispute(decide(acme, call, "happened"), omar)
    assert found(call, "did_not_happen", omar)


def test_a_dispute_moves_the_decision_version(acme: Acme, omar: Person, third: Person) -> None:
    call = ambiguous(acme, **WAITS)
    hers = decide(acme, call, "happened")
    before = version_of(call)
    dispute(hers, omar)
    assert version_of(call) == before + 2, "what was taken back, and the dispute"
    assert "dispute" in {each.noun for each in changes.of(call.id)}


def test_a_request_for_a_second_person_can_be_disputed(acme: Acme, omar: Person) -> None:
    call = ambiguous(acme, second_person="always")
    hers = decide(acme, call, "happened")
    assert stage(hers) == "requested"
    dispute(hers, omar)
    assert stage(hers) == "taken_back"


# What was carried out


def test_a_settled_call_keeps_its_state_and_is_corrected_by_a_third_person(
    acme: Acme, omar: Person, third: Person
) -> None:
    call = ambiguous(acme, **AT_ONCE)
    made = dispute(decide(acme, call, "happened"), omar)
    assert fresh(call).state == "succeeded"
    assert (made.incident.kind, made.incident.closed_at) == ("contradiction", None)
    assert disputed.of_incidents([made.incident_id]) == {made.incident_id}
    with pytest.raises(ThirdPersonRequired):
        correct(fresh(call), "did_not_happen", omar)
    correction = correct(fresh(call), "did_not_happen", third)
    assert (fresh(call).state, correction.is_correction) == ("succeeded", True)
    assert Incident.objects.get(id=made.incident_id).closed_at is not None
    assert disputed.of_call(call.id) is None


def test_a_third_person_may_let_the_settlement_stand(
    acme: Acme, omar: Person, third: Person
) -> None:
    call = ambiguous(acme, **AT_ONCE)
    made = dispute(decide(acme, call, "happened"), omar)
    stands = a_decision(fresh(call), "stands")
    corrections.correct(call_id=call.id, decision=stands, by=third)
    assert Incident.objects.get(id=made.incident_id).closed_at is not None
    assert disputed.of_call(call.id) is None


def test_what_runs_again_is_not_disputed(acme: Acme, omar: Person) -> None:
    call = ambiguous(acme, **AT_ONCE)
    hers = decide(acme, call, "did_not_happen", "repeat")
    with pytest.raises(NotDisputable, match="carried out and the call is"):
        dispute(hers, omar, "happened", "")


def test_only_the_decision_that_holds_is_disputed(acme: Acme, omar: Person, third: Person) -> None:
    call = ambiguous(acme, **AT_ONCE)
    hers = decide(acme, call, "happened")
    correct(fresh(call), "did_not_happen", third)
    with pytest.raises(NotDisputable, match="A later decision holds now"):
        dispute(hers, omar, "abandon", "")


# Refusals


def test_nobody_disputes_what_they_recorded_or_say_themselves(acme: Acme, omar: Person) -> None:
    hers = decide(acme, ambiguous(acme, **WAITS), "happened")
    with pytest.raises(NotDisputable, match="your own decision"):
        dispute(hers, as_decider(acme.olga))
    with pytest.raises(NotDisputable, match="You say the same as olga"):
        dispute(hers, omar, "happened", "")
    assert stage(hers) == "pending"


def test_what_was_taken_back_is_not_disputed(acme: Acme, omar: Person) -> None:
    hers = decide(acme, ambiguous(acme, **WAITS), "happened")
    resolutions.take_back(resolution_id=hers.id, grounds="No.", by=as_decider(acme.olga))
    with pytest.raises(NotDisputable, match="taken back: nothing of it holds"):
        dispute(hers, omar)


def test_who_may_not_decide_disputes_nothing(acme: Acme, globex: Globex) -> None:
    hers = decide(acme, ambiguous(acme, **WAITS), "happened")
    stale = as_decider(a_person("sven", acme.workspace, "operator"), login_age_s=10_000)
    refusals: tuple[tuple[Person, Any], ...] = (
        (as_decider(globex.mallory_herself), NotFound),
        (as_decider(acme.vera), PermissionMissing),
        (stale, LoginStale),
    )
    for who, refusal in refusals:
        with pytest.raises(refusal):
            dispute(hers, who)
    assert stage(hers) == "pending"


# Races


@pytest.mark.django_db(transaction=True)
def test_of_two_who_dispute_at_once_one_does(acme: Acme, omar: Person, third: Person) -> None:
    hers = decide(acme, ambiguous(acme, **WAITS), "happened")
    answers = threads.at_once([lambda: dispute(hers, omar), lambda: dispute(hers, third)])
    assert sorted(type(each).__name__ for each in answers) == ["Dispute", "NotDisputable"]
    assert Dispute.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", range(3))
def test_a_dispute_and_the_carrying_out_meet_and_one_of_both_holds(
    acme: Acme, omar: Person, turn: int
) -> None:
    call = ambiguous(acme, **WAITS)
    hers = decide(acme, call, "happened")
    fall_due(call)
    answers = threads.at_once([lambda: dispute(hers, omar), resolutions.carry_out_due])
    assert not any(isinstance(each, LedgerError) for each in answers), answers
    made = Dispute.objects.get()
    stopped = stage(hers) == "taken_back"
    assert fresh(call).state == ("ambiguous" if stopped else "succeeded")
    assert made.incident.kind == ("recovery" if stopped else "contradiction")
    assert Incident.objects.get(id=made.incident_id).closed_at is None
