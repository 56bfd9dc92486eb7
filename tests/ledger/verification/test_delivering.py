"""I17 and I35 over deliveries: each is found when a row that breaks it is planted."""

import pytest

from ledger import offers
from ledger.models import Offer, ToolCall, Turn
from ledger.vocabulary import DeliveryMode
from tests import builders
from tests.cast import Acme
from tests.ledger.saying import place_of
from tests.ledger.verification.planting import broken, broken_in, ddl, plant, trigger

pytestmark = pytest.mark.corrupts


@pytest.fixture
def turn(acme: Acme) -> Turn:
    return builders.a_turn(builders.a_session(acme))


def offered(turn: Turn) -> Offer:
    row = offers.offer(place_of(turn), mode=DeliveryMode.APPEND_BOTH, close=True).offer
    assert row is not None
    return row


def confirmed(turn: Turn) -> Offer:
    row, place = offered(turn), place_of(turn)
    return offers.acknowledge(
        workspace_id=place.workspace_id, agent_id=place.agent_id, offer_id=row.id
    )


@pytest.fixture
def call(acme: Acme, turn: Turn) -> ToolCall:
    return builders.a_call(acme, "succeeded", session_id=turn.session_id, turn_id=turn.id)


@pytest.fixture
def unsettled(acme: Acme, turn: Turn) -> ToolCall:
    return builders.a_call(acme, "running", session_id=turn.session_id, turn_id=turn.id)


def test_what_was_offered_and_confirmed_breaks_nothing(turn: Turn, call: ToolCall) -> None:
    confirmed(turn)
    assert broken() == set()


def test_i17_finds_bytes_that_are_not_the_results(turn: Turn, call: ToolCall) -> None:
    offered(turn)
    plant("UPDATE ledger_delivery SET sha256 = repeat('0', 64)")
    assert broken_in(call) == {"I17"}


def test_i17_finds_a_result_shown_before_the_settlement(turn: Turn, call: ToolCall) -> None:
    offered(turn)
    plant("UPDATE ledger_delivery SET offered_at = offered_at - interval '1 hour'")
    assert broken_in(call) == {"I17"}


def test_i17_finds_a_text_that_was_changed(turn: Turn, unsettled: ToolCall) -> None:
    offered(turn)
    plant("UPDATE ledger_delivery SET text = 'It did not run.'")
    assert broken_in(unsettled) == {"I17"}


def test_i17_finds_a_text_of_ours_told_as_the_tools(turn: Turn, unsettled: ToolCall) -> None:
    offered(turn)
    plant("UPDATE ledger_delivery SET kind = 'real'")
    assert broken_in(unsettled) == {"I17"}


def test_i17_finds_a_state_that_the_call_was_not_in(turn: Turn, unsettled: ToolCall) -> None:
    offered(turn)
    plant("UPDATE ledger_delivery SET state = 'cancelled'")
    assert broken_in(unsettled) == {"I17"}


@pytest.mark.parametrize("noun", ["delivery", "offer"])
def test_i17_finds_a_guard_that_is_gone(db: None, noun: str) -> None:
    table = f"ledger_{noun}"
    ddl(f"DROP TRIGGER {trigger(table, f'{noun}_guard')} ON {table}")
    assert broken() == {"I17"}


def test_i35_finds_an_offer_confirmed_in_part(turn: Turn, call: ToolCall) -> None:
    confirmed(turn)
    plant("UPDATE ledger_delivery SET acknowledged_at = NULL")
    assert broken_in(call) == {"I35"}


def test_i35_finds_what_is_offered_after_it_was_confirmed(turn: Turn, call: ToolCall) -> None:
    confirmed(turn)
    plant("UPDATE ledger_toolcall SET delivered_at = NULL")
    plant("UPDATE ledger_delivery SET consumer = 'other'")
    plant("UPDATE ledger_offer SET consumer = 'other'")
    offered(turn)
    plant("UPDATE ledger_delivery SET consumer = 'agent'")
    plant("UPDATE ledger_offer SET consumer = 'agent'")
    plant("UPDATE ledger_toolcall SET delivered_at = clock_timestamp()")
    assert broken_in(call) == {"I35"}


def test_i35_finds_a_confirmed_outcome_without_its_instant(turn: Turn, call: ToolCall) -> None:
    confirmed(turn)
    plant("UPDATE ledger_toolcall SET delivered_at = NULL")
    assert broken_in(call) == {"I35"}


def test_i35_finds_an_offer_of_another_session(acme: Acme, turn: Turn, call: ToolCall) -> None:
    offered(turn)
    other = builders.a_session(acme)
    plant("UPDATE ledger_offer SET session_id = %s", other.id)
    assert broken_in(call) == {"I35"}


def test_i35_finds_a_constraint_that_is_gone(db: None) -> None:
    ddl("ALTER TABLE ledger_delivery DROP CONSTRAINT delivery_once_each")
    assert broken() == {"I35"}
