"""I1 to I10: each is found, alone, when a row that breaks it is planted."""

import pytest

from ledger import secrets
from ledger.models import Attempt, Handle
from tests import builders
from tests.cast import Acme
from tests.ledger.verification import histories
from tests.ledger.verification.planting import broken, broken_in, ddl, plant, plant_in_chain

pytestmark = pytest.mark.corrupts


def test_i1_finds_two_crossings_that_nobody_disproved(acme: Acme) -> None:
    call = histories.tried_again(acme)
    builders.cross(call)
    # The second is no run, or I8 would say the same.
    plant("UPDATE ledger_attempt SET means = 'unknown', disproved_at = NULL "
          "WHERE call_id = %s AND fence = 1", call.id)  # fmt: skip
    plant("UPDATE ledger_attempt SET kind = 'resume' WHERE call_id = %s AND fence = 2", call.id)
    plant("UPDATE ledger_toolcall SET attempts_used = 1 WHERE id = %s", call.id)
    assert broken_in(call) == {"I1"}


def test_i2_finds_a_denial_before_its_unlock_time(acme: Acme) -> None:
    call = histories.denied_by_a_probe(acme)
    assert call.effect == "did_not_happen"
    plant("UPDATE ledger_attempt SET unlocks_at = clock_timestamp() + interval '1 hour' "
          "WHERE call_id = %s AND fence = 1", call.id)  # fmt: skip
    assert broken_in(call) == {"I2"}


def test_i2_finds_a_denial_of_an_attempt_never_proven_dead(acme: Acme) -> None:
    call = histories.denied_by_a_probe(acme)
    plant("UPDATE ledger_attempt SET dead_proof = '' WHERE call_id = %s AND fence = 1", call.id)
    assert broken_in(call) == {"I2"}


def test_i2_finds_a_denial_of_a_crossing_that_nothing_disproved(acme: Acme) -> None:
    call = histories.repeated_under_its_key(acme)
    plant("UPDATE ledger_attempt SET disproved_at = clock_timestamp() "
          "WHERE call_id = %s AND fence = 1", call.id)  # fmt: skip
    assert broken_in(call) == {"I2"}


def test_i2_finds_a_repeat_that_speaks_for_the_crossing_before_it(acme: Acme) -> None:
    call = histories.repeated_under_its_key(acme)
    builders.cross(call)
    builders.settle(call)
    plant("UPDATE ledger_toolcall SET effect = 'did_not_happen' WHERE id = %s", call.id)
    plant_in_chain(call, "UPDATE ledger_event SET effect = 'did_not_happen' WHERE call_id = %s "
                   "AND settles", call.id)  # fmt: skip
    assert broken_in(call) == {"I2"}


def test_i3_finds_a_crossing_after_its_lease(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running", crossed=True)
    plant_in_chain(call, "UPDATE ledger_event SET lease_until = at - interval '1 second' "
                   "WHERE call_id = %s AND kind = 'crossed'", call.id)  # fmt: skip
    assert broken_in(call) == {"I3"}


def test_i3_finds_a_crossed_event_whose_attempt_never_crossed(acme: Acme) -> None:
    call = histories.tried_again(acme)
    builders.cross(call)
    plant("UPDATE ledger_attempt SET crossed_at = NULL, disproved_at = NULL "
          "WHERE call_id = %s AND fence = 1", call.id)  # fmt: skip
    assert broken_in(call) == {"I3"}


def test_i3_finds_a_crossing_by_a_fence_that_was_passed(acme: Acme) -> None:
    call = histories.tried_again(acme)
    builders.cross(call)
    plant_in_chain(call, "UPDATE ledger_event SET fence = 1 WHERE call_id = %s AND fence = 2 "
                   "AND kind = 'crossed'", call.id)  # fmt: skip
    assert broken_in(call) == {"I3"}


@pytest.mark.parametrize("in_state", ["scheduled", "running", "parked", "succeeded"])
def test_i4_finds_what_is_left_of_a_call_that_vanished(acme: Acme, in_state: str) -> None:
    call = builders.a_call(acme, in_state=in_state, recovery_class="long_running")
    plant("DELETE FROM ledger_toolcall WHERE id = %s", call.id)
    assert broken_in(call) == {"I4"}


def test_i4_finds_a_repeat_of_a_call_that_was_never_written(acme: Acme) -> None:
    twin = builders.a_call(acme, in_state="paused")
    plant("DELETE FROM ledger_event WHERE call_id = %s", twin.twin_of_id)
    plant("DELETE FROM ledger_toolcall WHERE id = %s", twin.twin_of_id)
    assert broken_in(twin) == {"I4"}


def test_i4_finds_an_effect_without_a_crossing(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    builders.settle(call)
    plant_in_chain(call, "UPDATE ledger_event SET effect = 'happened' WHERE call_id = %s "
                   "AND settles", call.id)  # fmt: skip
    plant("UPDATE ledger_toolcall SET effect = 'happened' WHERE id = %s", call.id)
    assert broken_in(call) == {"I4"}


def test_i5_finds_a_call_that_does_not_carry_the_greatest_fence(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    plant("UPDATE ledger_toolcall SET fence = 7 WHERE id = %s", call.id)
    assert broken_in(call) == {"I5"}


def test_i5_finds_that_fences_may_be_given_twice(db: None) -> None:
    ddl("ALTER TABLE ledger_attempt DROP CONSTRAINT attempt_fence_once")
    assert broken() == {"I5"}


def test_i6_finds_that_two_attempts_may_live(db: None) -> None:
    ddl("DROP INDEX one_live_attempt")
    assert broken() == {"I6"}


def test_i6_finds_two_live_attempts(acme: Acme) -> None:
    ddl("DROP INDEX one_live_attempt")
    call = builders.a_call(acme, in_state="running")
    second = Attempt.objects.get(call=call)
    second.pk, second.fence, second.kind = builders.ids.new(), 2, "poll"
    second.save(force_insert=True)
    plant("UPDATE ledger_toolcall SET fence = 2 WHERE id = %s", call.id)
    ddl("SET CONSTRAINTS ALL IMMEDIATE")
    ddl("CREATE UNIQUE INDEX one_live_attempt ON ledger_attempt (call_id) WHERE false")
    assert broken_in(call) == {"I6"}


@pytest.mark.parametrize("column", ["attempts_allowed", "attempts_used"])
def test_i7_finds_attempts_beyond_those_allowed_or_counted(acme: Acme, column: str) -> None:
    call = builders.a_call(acme, in_state="running")
    plant(f"UPDATE ledger_toolcall SET {column} = 0 WHERE id = %s", call.id)
    assert broken_in(call) == {"I7"}


def test_i7_finds_a_repeat_without_its_line(acme: Acme) -> None:
    call = histories.tried_again(acme)
    plant("DELETE FROM recovery_repeat WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I7"}


def test_i7_finds_attempts_that_nobody_granted(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET attempts_allowed = 9 WHERE id = %s", call.id)
    assert broken_in(call) == {"I7"}


COPY = (
    "INSERT INTO recovery_repeat SELECT (jsonb_populate_record(r, jsonb_build_object('id', "
    "gen_random_uuid(), 'number', n, 'tool', %s::text || n))).* FROM recovery_repeat r, "
    "generate_series(%s::int, %s::int) n WHERE r.call_id = %s AND r.number = 2"
)


@pytest.mark.parametrize(("scope", "limit"), [("turn", 12), ("session", 60), ("tool", 100)])
def test_i7_finds_a_scope_that_was_overdrawn(acme: Acme, scope: str, limit: int) -> None:
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    call = builders.a_call(acme, "backing_off", session_id=session.id, turn_id=turn.id)
    for other in {"turn", "session"} - {scope}:
        plant(f"UPDATE recovery_repeat SET {other}_id = NULL WHERE call_id = %s", call.id)
    # Only the copies of a tool's line stay in one tool.
    tool = "one" if scope == "tool" else "many."
    plant(COPY, tool, 3, limit + 1, call.id)
    if scope == "tool":
        plant("UPDATE recovery_repeat SET tool = 'one' WHERE call_id = %s", call.id)
    assert broken() == set()
    plant(COPY, tool, limit + 2, limit + 2, call.id)
    if scope == "tool":
        plant("UPDATE recovery_repeat SET tool = 'one' WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I7"}


def test_i8_finds_a_second_try_without_a_disproof(acme: Acme) -> None:
    call = histories.tried_again(acme)
    plant("UPDATE ledger_attempt SET means = 'unknown', disproved_at = NULL "
          "WHERE call_id = %s AND fence = 1", call.id)  # fmt: skip
    assert broken_in(call) == {"I8"}


@pytest.mark.parametrize("key", ["", "path:another.txt"])
def test_i9_finds_an_attempt_under_another_key(acme: Acme, key: str) -> None:
    call = builders.a_call(acme, in_state="running", recovery_class="idempotent_write")
    plant("UPDATE ledger_attempt SET effect_key = %s WHERE call_id = %s", key, call.id)
    assert broken_in(call) == {"I9"}


def test_i10_finds_a_job_started_again_beside_its_handle(acme: Acme) -> None:
    call = histories.not_begun_and_again(acme, recovery_class="long_running")
    Handle.objects.create(call=call, workspace_id=call.workspace_id, fence=1, kind="http",
                          value_encrypted=secrets.encrypt("run-1"),
                          value_hmac=secrets.keyed_hash("run-1"))  # fmt: skip
    assert broken_in(call) == {"I10"}
