"""The verdict: three answers for every state, proved by events that exist, never an empty one."""

import pytest

from ledger import deliveries, ids, offers, sessions
from ledger.deliveries import Fetched
from ledger.journal import events_of
from ledger.models import Attempt, Result, ToolCall, Turn
from ledger.verdicts import verdict_for
from ledger.vocabulary import SETTLED, Cause, DeliveryMode, Meaning, ProbeFinding
from tests import builders
from tests.cast import Acme
from tests.ledger.saying import place_of

STATES = sorted(str(state) for state in builders.WALKS)
CLASSES = ["read_only", "idempotent_write", "side_effect", "long_running", "provider_auth"]


@pytest.mark.parametrize("state", STATES)
def test_each_answer_is_a_sentence_with_events_that_exist(acme: Acme, state: str) -> None:
    call = builders.a_call(acme, in_state=state)
    seqs = {event.seq for event in events_of(call.id)}
    verdict = verdict_for(call)
    for answer in (verdict.started, verdict.effect, verdict.model_saw):
        assert answer.answer
        assert len(answer.sentence) > 10
        assert answer.sentence.endswith(".")
        assert set(answer.events) <= seqs
    assert verdict.started.events
    assert verdict.effect.events
    assert len(verdict.decided) > 10


@pytest.mark.parametrize(
    ("state", "crossed", "started", "effect"),
    [("scheduled", False, "no", "not_begun"), ("running", False, "yes", "not_begun"),
     ("running", True, "yes", "unknown"), ("backing_off", False, "yes", "not_begun"),
     ("interrupted", True, "yes", "unknown"), ("ambiguous", True, "yes", "unknown"),
     ("succeeded", True, "yes", "happened"), ("failed", True, "yes", "did_not_happen"),
     ("rejected", False, "no", "not_begun"), ("cancelled", False, "no", "not_begun"),
     ("expired", False, "no", "not_begun")],
)  # fmt: skip
def test_the_answers_follow_the_events(
    acme: Acme, state: str, crossed: bool, started: str, effect: str
) -> None:
    verdict = verdict_for(builders.a_call(acme, in_state=state, crossed=crossed))
    assert (verdict.started.answer, verdict.effect.answer) == (started, effect)


@pytest.mark.parametrize("state", ["scheduled", "running", "succeeded"])
def test_a_read_has_no_effect_whatever_happens(acme: Acme, state: str) -> None:
    verdict = verdict_for(builders.a_call(acme, state, "read_only"))
    assert verdict.effect.answer == "none"


def test_unknown_is_proved_by_the_crossing(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="ambiguous")
    crossing = next(e.seq for e in events_of(call.id) if e.kind == "crossed")
    assert verdict_for(call).effect.events == [crossing]


def test_an_effect_found_by_a_probe_says_so(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="interrupted", policy={"probe": {}})
    builders.past(call, "next_step")
    builders.fire()
    builders.probe(call, ProbeFinding.HAPPENED)
    builders.fire()
    verdict = verdict_for(builders.fresh(call))
    assert (verdict.state, verdict.effect.answer) == ("succeeded", "happened")
    assert "a probe found it outside" in verdict.effect.sentence


def test_a_refusal_says_how_it_is_known(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running", crossed=True)
    builders.report(call, Cause.RATE_LIMITED, Meaning.REFUSED)
    verdict = verdict_for(builders.fresh(call))
    assert verdict.effect.answer == "did_not_happen"
    assert "refused" in verdict.effect.sentence


def test_the_decision_names_its_rule_and_what_is_due_next(acme: Acme) -> None:
    decided = verdict_for(builders.a_call(acme, in_state="ambiguous")).decided
    assert "rule side_effects_need_proof" in decided
    assert "An operator decides." in decided
    assert "Next due:" in decided


def test_the_start_is_the_instant_of_the_claim_as_every_other_page_gives_it(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="backing_off")
    attempt = Attempt.objects.get(call=call, fence=1)
    first = f"{attempt.claimed_at:%H:%M:%S.%f}"[:-3]
    sentence = verdict_for(call).started.sentence
    assert sentence == f"A worker claimed it once, first at {first} UTC."


def test_what_decided_is_said_in_words(acme: Acme) -> None:
    decided = verdict_for(builders.a_call(acme, in_state="interrupted")).decided
    assert "cause worker lost: Worker lost after the boundary" in decided


@pytest.mark.parametrize("state", STATES)
def test_somebodys_turn_it_is_until_the_call_is_settled(acme: Acme, state: str) -> None:
    turn = verdict_for(builders.a_call(acme, in_state=state)).whose_turn
    assert (turn == "nobody") is (state in SETTLED)


def test_nothing_fetched_is_not_recorded_rather_than_not_seen(acme: Acme) -> None:
    saw = verdict_for(builders.a_call(acme, in_state="succeeded")).model_saw
    assert (saw.answer, saw.events) == ("not_recorded", [])


def test_what_the_agent_fetched_is_told_with_its_digest(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    sha256 = Result.objects.get(call=call).sha256
    fetched = Fetched(call.id, call.workspace_id, "ada", "succeeded", "happened", sha256, call.seq)
    deliveries.write([fetched])
    deliveries.write([fetched, fetched])
    saw = verdict_for(call).model_saw
    assert saw.answer == "fetched"
    assert sha256[:16] in saw.sentence
    assert saw.sentence.endswith(" UTC, 2 times in all.")
    assert saw.events == [call.seq]


@pytest.mark.parametrize("recovery_class", CLASSES)
def test_a_verdict_can_be_sent_as_json(acme: Acme, recovery_class: str) -> None:
    verdict = verdict_for(builders.a_call(acme, recovery_class=recovery_class)).to_json()
    assert set(verdict) == {
        "state", "whose_turn", "failure_point", "started", "effect", "model_saw", "decided",
    }  # fmt: skip


# What the model saw, from deliveries


def a_turn_with(acme: Acme, state: str) -> tuple[ToolCall, Turn]:
    turn = builders.a_turn(builders.a_session(acme))
    crossed = state == "running"
    place = {"session_id": turn.session_id, "turn_id": turn.id}
    return builders.a_call(acme, state, crossed=crossed or None, **place), turn


def delivered(turn: Turn, *, confirm: bool = True) -> str:
    row = offers.offer(place_of(turn), mode=DeliveryMode.APPEND_BOTH, close=True).offer
    assert row is not None
    owner = {"workspace_id": row.workspace_id, "agent_id": turn.session.agent_id}
    if confirm:
        offers.acknowledge(**owner, offer_id=row.id)
    return ids.shown("delivery", row.id)


def test_an_offer_that_nobody_confirmed_is_told_as_such(acme: Acme) -> None:
    call, turn = a_turn_with(acme, "succeeded")
    shown = delivered(turn, confirm=False)
    saw = verdict_for(call).model_saw
    assert (saw.answer, saw.deliveries, saw.events) == ("offered", [shown], [call.seq])
    assert "never confirmed" in saw.sentence


def test_the_model_saw_the_real_result_in_its_turn(acme: Acme) -> None:
    call, turn = a_turn_with(acme, "succeeded")
    shown = delivered(turn)
    saw = verdict_for(call).model_saw
    assert (saw.answer, saw.deliveries, saw.events) == ("result", [shown], [call.seq])
    assert "in turn 1" in saw.sentence


def test_the_model_saw_a_notice_then_a_correction(acme: Acme) -> None:
    call, turn = a_turn_with(acme, "running")
    first = delivered(turn)
    assert verdict_for(call).model_saw.answer == "notice"
    builders.settle(call)
    sessions.close_turn(turn=turn, closed_as="interrupted")
    second = delivered(builders.a_turn(turn.session))
    saw = verdict_for(builders.fresh(call)).model_saw
    assert (saw.answer, saw.deliveries) == ("corrected", [first, second])
    assert saw.sentence.endswith("the notice 'under_way' in turn 1, then a correction in turn 2.")
