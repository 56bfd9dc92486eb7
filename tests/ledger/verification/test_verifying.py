"""Verifying as a whole: what it says of sound ledgers, and that nothing is left unsaid."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger import clock
from ledger.verification import INVARIANTS, NOT_YET, Extent, extent, verify
from ledger.vocabulary import RecoveryClass
from tests import builders
from tests.cast import Acme
from tests.ledger.verification import histories
from tests.ledger.verification.planting import plant

BY_A_LOST_WORKER = {
    "interrupted": {"idempotent_write", "side_effect", "long_running"},
    "ambiguous": {"side_effect", "long_running"},
}
"""Which classes a lost worker alone leaves there; the others are repeated or end."""
REACHED = [
    (str(state), str(each))
    for state in builders.WALKS
    for each in RecoveryClass
    if each in BY_A_LOST_WORKER.get(state, RecoveryClass)
]


@pytest.mark.parametrize(("in_state", "recovery_class"), REACHED)
def test_a_call_that_walked_there_by_the_verbs_breaks_nothing(
    acme: Acme, in_state: str, recovery_class: str
) -> None:
    builders.a_call(acme, in_state=in_state, recovery_class=recovery_class)
    assert verify() == []


def test_a_second_attempt_after_a_refusal_breaks_nothing(acme: Acme) -> None:
    builders.cross(histories.tried_again(acme))
    assert verify() == []


def test_a_repeat_under_one_key_breaks_nothing(acme: Acme) -> None:
    call = histories.repeated_under_its_key(acme)
    builders.cross(call)
    builders.settle(call)
    assert verify() == []


def test_a_denial_by_a_probe_breaks_nothing(acme: Acme) -> None:
    call = histories.denied_by_a_probe(acme)
    assert (call.state, call.effect) == ("backing_off", "did_not_happen")
    assert verify() == []


def test_an_empty_ledger_is_proved_in_one_statement(db: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert verify() == []
    assert len(queries) == 1


def test_every_number_is_either_checked_or_accounted_for() -> None:
    numbers = {f"I{n}" for n in range(1, 39)}
    checked = {each.number for each in INVARIANTS}
    assert checked | set(NOT_YET) == numbers
    assert {each for each in NOT_YET if NOT_YET[each].startswith("In part")} == (
        checked & set(NOT_YET)
    )


def test_every_checked_number_is_shown_to_find_a_planted_row() -> None:
    tests = "\n".join(each.read_text() for each in Path(__file__).parent.glob("test_*.py"))
    planted = {f"I{number}" for number in re.findall(r"^def test_i(\d+)_finds?_", tests, re.M)}
    assert {each.number for each in INVARIANTS} <= planted


@pytest.mark.corrupts
def test_a_violation_names_its_number_its_call_and_the_facts(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET seq = 9 WHERE id = %s", call.id)
    [violation] = verify()
    assert (violation.number, violation.call_id) == ("I19", call.id)
    assert violation.row == {"seq": 9, "events": 2, "last_seq": 2}
    assert f"I19 is broken in call {call.id}" in str(violation)


@pytest.mark.corrupts
def test_since_leaves_out_settled_calls_of_before(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="cancelled")
    later = clock.now() + timedelta(seconds=1)
    plant("UPDATE ledger_toolcall SET seq = 9 WHERE id = %s", call.id)
    assert verify(since=later) == []
    assert [each.number for each in verify(since=later - timedelta(hours=1))] == ["I19"]


@pytest.mark.corrupts
def test_since_never_leaves_out_open_calls(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET seq = 9 WHERE id = %s", call.id)
    later = clock.now() + timedelta(seconds=1)
    assert [each.call_id for each in verify(since=later)] == [call.id]


def test_the_extent_counts_what_is_examined(acme: Acme) -> None:
    builders.a_call(acme, in_state="cancelled")
    builders.a_call(acme, in_state="scheduled")
    assert extent() == Extent(calls=2, events=5)
    assert extent(since=clock.now() + timedelta(seconds=1)) == Extent(calls=1, events=2)


@pytest.mark.corrupts
def test_no_more_than_a_hundred_rows_of_one_check_are_shown(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    for _ in range(101):
        builders.a_call(acme, tool=tool)
    plant("UPDATE ledger_toolcall SET seq = 9")
    assert len(verify()) == 100
