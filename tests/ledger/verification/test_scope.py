"""I31, I32 and I34: each is found, alone, when a row that breaks it is planted."""

import pytest

from ledger.verification.scope import KEPT_BY_KEYS, UNIQUE_IN_WORKSPACE
from tests import builders
from tests.cast import Acme, Globex
from tests.ledger.verification.planting import broken, broken_in, ddl, plant, plant_in_chain
from tests.recovery.rebinding import rebound

pytestmark = pytest.mark.corrupts


@pytest.mark.parametrize(
    "table",
    [
        "ledger_attempt",
        "ledger_event",
        "ledger_result",
        "ledger_handle",
        "recovery_incident",
        "recovery_repeat",
    ],
)
def test_i31_finds_a_row_of_another_workspace(acme: Acme, globex: Globex, table: str) -> None:
    in_state = {"ledger_result": "succeeded", "ledger_handle": "parked",
                "recovery_incident": "interrupted",
                "recovery_repeat": "backing_off"}.get(table, "running")  # fmt: skip
    call = builders.a_call(acme, in_state=in_state)
    plant(f"UPDATE {table} SET workspace_id = %s WHERE call_id = %s",
          globex.workspace.id, call.id)  # fmt: skip
    assert broken_in(call) == {"I31"}


def test_i31_finds_a_call_of_another_workspaces_agent(acme: Acme, globex: Globex) -> None:
    call = builders.a_call(acme, in_state="running")
    plant("UPDATE ledger_toolcall SET agent_id = %s WHERE id = %s", globex.mallory.id, call.id)
    assert broken_in(call) == {"I31"}


@pytest.mark.parametrize(
    ("table", "name"),
    [(table, f"{table}_{column}_ws") for table, column, _ in KEPT_BY_KEYS],
)
def test_i31_finds_a_composite_key_that_is_gone(db: None, table: str, name: str) -> None:
    ddl(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    assert broken() == {"I31"}


def test_i31_finds_a_composite_key_that_was_never_validated(db: None) -> None:
    name = "ledger_attempt_call_id_ws"
    ddl(f"ALTER TABLE ledger_attempt DROP CONSTRAINT {name}")
    ddl(f"ALTER TABLE ledger_attempt ADD CONSTRAINT {name} FOREIGN KEY (workspace_id, call_id) "
        "REFERENCES ledger_toolcall (workspace_id, id) NOT VALID")  # fmt: skip
    assert broken() == {"I31"}


@pytest.mark.parametrize(("table", "name"), UNIQUE_IN_WORKSPACE)
def test_i31_finds_an_id_that_is_not_unique_in_its_workspace(
    db: None, table: str, name: str
) -> None:
    ddl(f"ALTER TABLE {table} DROP CONSTRAINT {name} CASCADE")
    assert broken() == {"I31"}


def test_i32_finds_a_call_of_an_epoch_that_never_was(acme: Acme) -> None:
    call = builders.a_call(acme, session_id=builders.a_session(acme).id)
    plant("UPDATE ledger_toolcall SET binding_epoch = 7 WHERE id = %s", call.id)
    assert broken_in(call) == {"I32"}


def test_i32_finds_a_call_recorded_under_another_epoch(acme: Acme) -> None:
    call = builders.a_call(acme, session_id=builders.a_session(acme).id)
    plant_in_chain(call, "UPDATE ledger_event SET facts = replace(facts, '\"epoch\":1', "
                   "'\"epoch\":2') WHERE call_id = %s AND kind = 'recorded'", call.id)  # fmt: skip
    assert broken_in(call) == {"I32"}


def test_i32_finds_a_call_in_a_turn_of_another_session(acme: Acme) -> None:
    session, other = builders.a_session(acme), builders.a_session(acme)
    call = builders.a_call(acme, session_id=session.id, turn_id=builders.a_turn(session).id)
    plant("UPDATE ledger_toolcall SET turn_id = %s WHERE id = %s",
          builders.a_turn(other).id, call.id)  # fmt: skip
    assert broken_in(call) == {"I32"}


def test_i32_finds_a_call_in_another_agents_session(acme: Acme) -> None:
    call = builders.a_call(acme, session_id=builders.a_session(acme).id)
    plant("UPDATE ledger_toolcall SET agent_id = %s WHERE id = %s", acme.ben.id, call.id)
    assert broken_in(call) == {"I32"}


def test_i32_finds_an_attempt_that_lived_through_a_rebind(acme: Acme) -> None:
    session = builders.a_session(acme)
    call = builders.a_call(acme, "succeeded", session_id=session.id)
    rebound(session, by=acme.olga)
    assert broken_in(call) == set()
    plant("UPDATE ledger_sessionchange c SET at = a.ended_at - interval '1 microsecond' "
          "FROM ledger_attempt a WHERE a.call_id = %s", call.id)  # fmt: skip
    assert broken_in(call) == {"I32"}


@pytest.mark.parametrize("index", ["one_open_turn", "call_key_once", "call_natural_key_once"])
def test_i34_finds_a_unique_index_that_is_gone(db: None, index: str) -> None:
    ddl(f"DROP INDEX {index}")
    assert broken() == {"I34"}
