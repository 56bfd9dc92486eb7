"""I19 to I23: each is found, alone, when a row that breaks it is planted."""

import pytest

from ledger.verification.chain import APPEND_ONLY
from tests import builders
from tests.cast import Acme
from tests.ledger.verification.planting import (
    broken,
    broken_in,
    ddl,
    plant,
    plant_in_chain,
    trigger,
)

pytestmark = pytest.mark.corrupts


def test_i19_finds_a_call_that_counts_an_event_it_does_not_have(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET seq = seq + 1 WHERE id = %s", call.id)
    assert broken_in(call) == {"I19"}


def test_i19_finds_a_call_that_stands_elsewhere_than_its_last_event(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET effect = 'did_not_happen' WHERE id = %s", call.id)
    assert broken_in(call) == {"I19"}


def test_i19_finds_a_gap_in_the_numbers(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant_in_chain(call, "UPDATE ledger_event SET seq = 5 WHERE call_id = %s AND seq = 2", call.id)
    plant("UPDATE ledger_toolcall SET seq = 5 WHERE id = %s", call.id)
    assert broken_in(call) == {"I19"}


def test_i20_finds_an_edge_that_the_machine_does_not_have(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant_in_chain(call, "UPDATE ledger_event SET actor = 'worker' WHERE call_id = %s "
                   "AND kind = 'scheduled'", call.id)  # fmt: skip
    assert broken_in(call) == {"I20"}


def test_i20_finds_an_effect_that_an_event_cannot_have(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET effect = 'did_not_happen' WHERE id = %s", call.id)
    plant_in_chain(call, "UPDATE ledger_event SET effect = 'did_not_happen' WHERE call_id = %s "
                   "AND kind = 'scheduled'", call.id)  # fmt: skip
    assert broken_in(call) == {"I20"}


def test_i20_finds_a_published_machine_that_was_widened(db: None) -> None:
    plant("INSERT INTO ledger_publishedtransition VALUES "
          "('adopted', 'abandoned', 'succeeded', 'agent', NULL, true)")  # fmt: skip
    assert broken() == {"I20"}


def test_i21_finds_facts_that_were_changed(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_event SET facts = '{}' WHERE call_id = %s AND seq = 1", call.id)
    assert broken_in(call) == {"I21"}


def test_i21_finds_an_event_hashed_over_another_past(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant_in_chain(call, "UPDATE ledger_event SET facts = '{}' WHERE call_id = %s AND seq = 1",
                   call.id)  # fmt: skip
    plant("UPDATE ledger_event SET prev_hash = sha256('') WHERE call_id = %s AND seq = 2", call.id)
    plant("UPDATE ledger_event e SET hash = ledger_event_hash(e) WHERE call_id = %s AND seq = 2",
          call.id)  # fmt: skip
    plant("UPDATE ledger_toolcall c SET head_hash = e.hash FROM ledger_event e "
          "WHERE c.id = %s AND e.call_id = c.id AND e.seq = 2", call.id)  # fmt: skip
    assert broken_in(call) == {"I21"}


def test_i21_finds_a_call_that_carries_another_hash(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET head_hash = sha256('') WHERE id = %s", call.id)
    assert broken_in(call) == {"I21"}


@pytest.mark.parametrize(("table", "name"), APPEND_ONLY, ids=[name for _, name in APPEND_ONLY])
def test_i22_finds_a_trigger_that_is_disabled(db: None, table: str, name: str) -> None:
    ddl(f"ALTER TABLE {table} DISABLE TRIGGER {trigger(table, name)}")
    assert broken() == {"I22"}


def test_i22_finds_a_trigger_that_is_gone(db: None) -> None:
    ddl(f"DROP TRIGGER {trigger('ledger_event', 'event_guard')} ON ledger_event")
    assert broken() == {"I22"}


def test_i23_finds_a_clock_that_fell(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    plant_in_chain(call, "UPDATE ledger_event SET at = at - interval '1 hour' WHERE call_id = %s "
                   "AND kind = 'started'", call.id)  # fmt: skip
    assert broken_in(call) == {"I23"}
