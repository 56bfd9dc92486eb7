"""`manage.py verify_ledger`: what it prints, and how it exits."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from ledger.verification import INVARIANTS, NOT_YET
from tests import builders
from tests.cast import Acme
from tests.ledger.verification.planting import ddl, plant


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("verify_ledger", *arguments, stdout=out)
    return out.getvalue()


def said_at_exit_1(*arguments: str) -> str:
    out = StringIO()
    with pytest.raises(SystemExit) as exits:
        call_command("verify_ledger", *arguments, stdout=out)
    assert exits.value.code == 1
    return out.getvalue()


def test_a_sound_ledger_is_said_to_be_sound_with_what_was_checked(acme: Acme) -> None:
    builders.a_call(acme, in_state="succeeded")
    said_now = said()
    assert said_now.startswith(f"Checked {len(INVARIANTS)} invariants over 1 calls and 5 events in")
    assert "Every invariant holds." in said_now


@pytest.mark.corrupts
def test_a_broken_ledger_is_named_with_its_call_and_what_to_do(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    plant("DELETE FROM ledger_result WHERE call_id = %s", call.id)
    said_now = said_at_exit_1()
    assert f"I13 is broken in call_{call.id.hex}: A succeeded call has one result" in said_now
    assert said_now.rstrip().endswith("stop the workers if the number of violations grows.")


@pytest.mark.corrupts
def test_a_missing_guard_asks_for_the_migrations(db: None) -> None:
    ddl("DROP INDEX one_open_turn")
    said_now = said_at_exit_1()
    assert "I34 is broken in the schema" in said_now
    assert "run `manage.py migrate`" in said_now


def test_json_says_what_is_not_proved_too(db: None) -> None:
    report = json.loads(said("--json"))
    assert report["violations"] == []
    assert report["not_yet"] == NOT_YET
    assert report["invariants"] == [each.number for each in INVARIANTS]


@pytest.mark.corrupts
def test_json_carries_each_violation(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET seq = 9 WHERE id = %s", call.id)
    [violation] = json.loads(said_at_exit_1("--json"))["violations"]
    assert (violation["number"], violation["call"]) == ("I19", f"call_{call.id.hex}")


def test_since_narrows_what_is_examined(acme: Acme) -> None:
    builders.a_call(acme, in_state="cancelled")
    assert "over 0 calls and 0 events" in said("--since", "2200-01-01T00:00:00Z")


def test_an_instant_that_is_none_is_refused_with_an_example(db: None) -> None:
    with pytest.raises(CommandError, match="write it as 2026-01-31T14:00:00Z"):
        call_command("verify_ledger", "--since", "yesterday")
