"""Planted rows about what people decided: each is noticed by its invariant."""

import pytest

from recovery.models import ResolutionEvent
from tests.cast import Acme, as_decider
from tests.ledger.verification.planting import broken, broken_in, ddl, plant, trigger
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, found

pytestmark = pytest.mark.corrupts


@pytest.mark.parametrize(
    "change",
    [
        "by_roles = '{viewer}'",
        "decision_version = 0",
        "login_age_s = 901",
        "needs_second_person = true",
    ],
)
def test_i36_finds_a_decision_that_nobody_could_make(acme: Acme, change: str) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "happened")
    plant(f"UPDATE recovery_resolution SET {change} WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I36"}


def test_i36_finds_a_call_that_a_person_moved_without_a_resolution(acme: Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "happened")
    plant("UPDATE recovery_resolutionevent SET event_seq = 1")
    assert broken_in(call) == {"I36"}


def test_i36_finds_a_decision_that_waits_for_ever(acme: Acme) -> None:
    call = ambiguous(acme)
    decide(acme, call, "happened")
    plant("UPDATE recovery_incident SET pending_id = NULL, pending_until = NULL")
    assert broken_in(call) == {"I36"}


def test_i36_finds_a_request_that_its_own_author_approved(acme: Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    resolution = decide(acme, call, "happened")
    plant("UPDATE recovery_resolution SET needs_second_person = true")
    ResolutionEvent.objects.create(
        workspace_id=call.workspace_id, resolution=resolution, kind="approved", by=acme.olga
    )
    assert broken_in(call) == {"I36"}


def test_i2_finds_a_denial_recorded_before_its_unlock_time(acme: Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "did_not_happen", "close")
    plant("UPDATE recovery_resolution SET at = at - interval '1 hour' WHERE answer = "
          "'did_not_happen'")  # fmt: skip
    plant("UPDATE recovery_resolutionevent SET at = at - interval '1 hour'")
    assert broken_in(call) == {"I2"}


def test_i17_finds_a_text_that_was_changed(acme: Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "happened")
    plant("UPDATE ledger_notice SET text = 'All is well.'")
    assert broken_in(call) == {"I17"}


def test_i17_finds_a_text_that_a_call_points_to_in_vain(acme: Acme) -> None:
    call = ambiguous(acme)
    found(call, "happened", as_decider(acme.olga))
    plant("UPDATE ledger_toolcall SET notice_seq = 1 WHERE id = %s", call.id)
    assert broken_in(call) == {"I17"}


@pytest.mark.parametrize(
    ("table", "name", "number"),
    [
        ("recovery_resolution", "deny_only_the_dead", "I2"),
        ("ledger_event", "denial_guard", "I2"),
        ("recovery_resolution", "resolution_append_only", "I22"),
        ("ledger_notice", "notice_append_only", "I22"),
    ],
)
def test_a_guard_that_is_gone_is_noticed(db: None, table: str, name: str, number: str) -> None:
    ddl(f"DROP TRIGGER {trigger(table, name)} ON {table}")
    assert broken() == {number}
