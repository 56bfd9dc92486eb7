"""The three labels and the basis, and the three questions: each from what the ledger proves."""

from typing import Any

import pytest

from dashboard import questions, standing
from ledger import offers, sessions
from ledger.models import ToolCall
from ledger.verdicts import verdict_for
from ledger.vocabulary import DeliveryMode, ProbeFinding
from tests import builders, cast
from tests.builders import a_call, fresh
from tests.ledger.saying import place_of
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, found

pytestmark = pytest.mark.django_db


def basis(call: ToolCall) -> str:
    return standing.of(fresh(call)).basis


def answers(call: ToolCall) -> list[str]:
    return [row.answer.text for row in questions.of(fresh(call)).rows]


@pytest.mark.parametrize(
    ("state", "rests_on"),
    [("running", ""), ("ambiguous", ""), ("succeeded", "tool result"), ("failed", "tool result"),
     ("rejected", "policy"), ("cancelled", "policy"), ("expired", "policy")],
)  # fmt: skip
def test_a_settled_call_says_what_it_rests_on_and_an_open_one_does_not(
    acme: cast.Acme, state: str, rests_on: str
) -> None:
    assert basis(a_call(acme, state)) == rests_on


def test_work_found_again_by_its_handle_rests_on_it(acme: cast.Acme) -> None:
    call = a_call(acme, "parked", "long_running")
    builders.poll(call)
    builders.settle(call)
    assert basis(call) == "handle"


def test_what_a_probe_proved_rests_on_the_probe(acme: cast.Acme) -> None:
    call = a_call(acme, "interrupted", policy={"probe": {"authoritative": True}})
    builders.past(call, "next_step")
    builders.fire()
    builders.probe(call, ProbeFinding.HAPPENED)
    builders.fire()
    assert fresh(call).state == "succeeded"
    assert basis(call) == "probe"


def test_an_operators_word_and_an_operators_evidence_are_told_apart(acme: cast.Acme) -> None:
    word = ambiguous(acme, **AT_ONCE)
    person = cast.as_decider(acme.olga)
    said = found(word, "happened", person, kind="statement")
    decide(acme, word, "happened", evidence=(said.id,))
    assert basis(word) == "operator's word only"
    backed = ambiguous(acme, **AT_ONCE)
    document = found(backed, "happened", person, kind="document", body='{"id": 7}')
    decide(acme, backed, "happened", evidence=(document.id,), result=document.id)
    assert basis(backed) == "operator with evidence"
    assert effect_of(word) == "Its effect happened: an operator stated it."
    assert effect_of(backed) == "Its effect happened: an operator stated it with evidence."


def effect_of(call: ToolCall) -> str:
    """What the verdict says of its effect, and how that is known."""
    return verdict_for(fresh(call)).effect.sentence


def test_a_delivery_is_not_read_until_it_is_confirmed(acme: cast.Acme) -> None:
    session = builders.a_session(acme)
    first = builders.a_turn(session)
    call = a_call(acme, "succeeded", session_id=session.id, turn_id=first.id)
    assert standing.of(call).shown.text == "nothing yet"
    sessions.close_turn(turn=first, closed_as="interrupted")
    made = offers.offer(place_of(builders.a_turn(session)), mode=DeliveryMode.APPEND_BOTH)
    assert standing.of(fresh(call)).shown.text == "real, not read yet"
    assert answers(call)[2] == "Offered"
    assert made.offer is not None
    offers.acknowledge(workspace_id=acme.workspace.id, agent_id=acme.ada.id, offer_id=made.offer.id)
    assert standing.of(fresh(call)).shown.text == "real, read"
    assert answers(call)[2] == "Its result"
    assert questions.of(fresh(call)).rows[2].deliveries == 1


def test_many_calls_cost_as_many_queries_as_two(
    acme: cast.Acme, django_assert_num_queries: Any
) -> None:
    calls = [a_call(acme, "succeeded") for _ in range(6)]
    for some in (calls[:2], calls):
        with django_assert_num_queries(4):
            standing.of_many(some)


@pytest.mark.parametrize(
    ("state", "expected"),
    [("scheduled", ["No", "No"]), ("running", ["Yes", "No"]), ("ambiguous", ["Yes", "Not proved"]),
     ("succeeded", ["Yes", "Yes"]), ("failed", ["Yes", "No"])],
)  # fmt: skip
def test_the_questions_are_answered_where_there_is_proof(
    acme: cast.Acme, state: str, expected: list[str]
) -> None:
    call = a_call(acme, state)
    assert answers(call)[:2] == expected
    for row in questions.of(call).rows[:2]:
        assert row.proof
        assert all(f"#event-{proof.seq}" in proof.address for proof in row.proof)


def test_only_an_effect_that_is_not_proved_is_open(acme: cast.Acme) -> None:
    rows = questions.of(a_call(acme, "ambiguous")).rows
    assert [row.answer.proven for row in rows] == [True, False, True]
    assert questions.of(a_call(acme, "ambiguous")).failure.startswith("during execution")
