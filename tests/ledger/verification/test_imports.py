"""What an import wrote is checked like everything else; each broken row is found, alone."""

import pytest

from ledger.models import Import, ToolCall
from tests.cast import Acme, found_globex
from tests.conversations import a_call, answers, asks, says
from tests.ledger.verification.planting import broken, broken_in, plant, plant_in_chain
from tests.recovery.test_imports import calls_of, taken

pytestmark = pytest.mark.corrupts


def an_import(acme: Acme) -> tuple[Import, ToolCall, ToolCall]:
    """An import with an answered call and an unanswered one."""
    row = taken(acme, says("x"), asks(a_call("c1")), answers("c1"), asks(a_call("c2")))
    answered, unanswered = calls_of(row)
    return row, answered, unanswered


def test_an_import_breaks_nothing(acme: Acme) -> None:
    an_import(acme)

    assert broken() == set()


def test_a_file_that_was_changed_is_found(acme: Acme) -> None:
    row, _, _ = an_import(acme)

    plant("UPDATE ledger_import SET body = '[]' WHERE id = %s", row.id)

    assert broken() == {"I13"}


def test_an_imported_result_that_was_changed_is_found(acme: Acme) -> None:
    _, answered, _ = an_import(acme)

    plant("UPDATE ledger_result SET body = 'other' WHERE call_id = %s", answered.id)

    assert broken_in(answered) == {"I13"}


def test_an_imported_result_that_went_missing_is_found(acme: Acme) -> None:
    _, answered, _ = an_import(acme)

    plant("DELETE FROM ledger_result WHERE call_id = %s", answered.id)

    assert "I13" in broken_in(answered)


def test_an_imported_call_without_its_import_is_found(acme: Acme) -> None:
    row, answered, _ = an_import(acme)

    plant_in_chain(
        answered,
        "UPDATE ledger_event SET facts = replace(facts, %s, repeat('0', 64)) WHERE call_id = %s",
        row.sha256,
        answered.id,
    )

    assert broken_in(answered) == {"I13"}


def test_an_event_of_an_import_is_chained_like_every_other(acme: Acme) -> None:
    _, answered, _ = an_import(acme)

    plant("UPDATE ledger_event SET actor_id = 'someone' WHERE call_id = %s", answered.id)

    assert broken_in(answered) == {"I21"}


def test_an_interrupted_import_without_its_incident_is_found(acme: Acme) -> None:
    _, _, unanswered = an_import(acme)

    plant("DELETE FROM recovery_step")
    plant("DELETE FROM recovery_incident WHERE call_id = %s", unanswered.id)

    assert broken_in(unanswered) == {"I30"}


def test_an_import_in_another_workspace_is_found(acme: Acme) -> None:
    row, _, _ = an_import(acme)
    globex = found_globex()

    plant("UPDATE ledger_import SET workspace_id = %s WHERE id = %s", globex.workspace.id, row.id)

    assert broken() == {"I31"}
