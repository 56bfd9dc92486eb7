"""I24 to I30: each is found, alone, when a row that breaks it is planted."""

import hashlib

import pytest

from ledger import calls, interrupts, strictjson
from ledger.models import Interrupt, ToolCall
from ledger.vocabulary import FailurePoint
from recovery import incidents
from tests import builders
from tests.cast import Acme
from tests.ledger.verification.planting import broken, broken_in, ddl, plant, trigger

pytestmark = pytest.mark.corrupts

HOUR_AGO = "clock_timestamp() - interval '1 hour'"


@pytest.mark.parametrize(
    ("in_state", "deadline"),
    [
        ("scheduled", "schedule_to_start"),
        ("running", "start_to_close"),
        ("parked", "schedule_to_close"),
        ("backing_off", "backoff"),
        ("interrupted", "recovery_window"),
        ("interrupted", "next_step"),
        ("ambiguous", "review"),
    ],
)
def test_i24_finds_a_deadline_that_no_sweep_fired(acme: Acme, in_state: str, deadline: str) -> None:
    call = builders.a_call(acme, in_state=in_state)
    plant(f"UPDATE ledger_toolcall SET {deadline}_at = {HOUR_AGO} WHERE id = %s", call.id)
    assert broken_in(call) == {"I24"}
    assert broken(liveness=False) == set()


@pytest.mark.parametrize(("late_s", "found"), [(6.0, set()), (8.0, {"I24"})])
def test_i24_allows_two_sweeps_and_five_seconds(acme: Acme, late_s: float, found: set[str]) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET schedule_to_start_at = clock_timestamp() "
          "- %s * interval '1 second' WHERE id = %s", late_s, call.id)  # fmt: skip
    assert broken(sweep_s=1.0) == found


def test_i24_finds_an_interrupted_turn_that_no_sweep_closed(acme: Acme) -> None:
    turn = builders.a_turn(builders.a_session(acme))
    plant(f"UPDATE ledger_turn SET interrupted_at = {HOUR_AGO}, grace_until = {HOUR_AGO} "
          "WHERE id = %s", turn.id)  # fmt: skip
    assert broken() == {"I24"}
    assert broken(liveness=False) == set()


def test_i24_leaves_a_due_poll_to_its_worker(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="parked")
    plant(f"UPDATE ledger_toolcall SET next_poll_at = {HOUR_AGO} WHERE id = %s", call.id)
    assert broken() == set()


@pytest.mark.parametrize(
    ("in_state", "waits_for", "bound"),
    [
        ("parked", "next_poll", "schedule_to_close"),
        ("interrupted", "next_step", "recovery_window"),
    ],
)
def test_i24_finds_that_waiting_for_a_worker_has_no_end(
    acme: Acme, in_state: str, waits_for: str, bound: str
) -> None:
    call = builders.a_call(acme, in_state=in_state)
    plant(f"UPDATE ledger_toolcall SET {waits_for}_at = {HOUR_AGO}, {bound}_at = {HOUR_AGO}, "
          "reason = 'probe_due' WHERE id = %s", call.id)  # fmt: skip
    assert broken_in(call) == {"I24"}


def test_i24_leaves_a_due_probe_to_its_worker(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="interrupted")
    plant(f"UPDATE ledger_toolcall SET next_step_at = {HOUR_AGO}, reason = 'probe_due' "
          "WHERE id = %s", call.id)  # fmt: skip
    assert broken() == set()


def test_i24_finds_that_an_open_call_may_wait_without_a_date(db: None) -> None:
    ddl("ALTER TABLE ledger_toolcall DROP CONSTRAINT open_call_has_deadline")
    assert broken() == {"I24"}


@pytest.mark.parametrize(
    ("in_state", "deadline"),
    [
        ("scheduled", "schedule_to_start"),
        ("scheduled", "schedule_to_close"),
        ("running", "start_to_close"),
        ("parked", "next_poll"),
        ("parked", "schedule_to_close"),
        ("interrupted", "recovery_window"),
    ],
)
def test_i25_finds_a_missing_timeout(acme: Acme, in_state: str, deadline: str) -> None:
    call = builders.a_call(acme, in_state=in_state)
    plant(f"UPDATE ledger_toolcall SET {deadline}_at = NULL WHERE id = %s", call.id)
    assert broken_in(call) == {"I25"}


def test_i25_finds_a_deadline_of_another_state(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET review_at = schedule_to_close_at WHERE id = %s", call.id)
    assert broken_in(call) == {"I25"}


def test_i25_finds_a_live_attempt_without_a_heartbeat(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    plant("UPDATE ledger_toolcall SET heartbeat_at = NULL WHERE id = %s", call.id)
    assert broken_in(call) == {"I25"}


def test_i25_finds_a_lease_that_nobody_holds(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="interrupted")
    plant("UPDATE ledger_toolcall SET heartbeat_at = recovery_window_at WHERE id = %s", call.id)
    assert broken_in(call) == {"I25"}


def test_i26_finds_a_call_that_is_not_rung_again(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant(f"UPDATE ledger_toolcall SET ring_at = {HOUR_AGO} WHERE id = %s", call.id)
    assert broken_in(call) == {"I26"}
    assert broken(liveness=False) == set()


def test_i26_finds_a_call_that_will_never_be_rung(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled")
    plant("UPDATE ledger_toolcall SET ring_at = NULL WHERE id = %s", call.id)
    assert broken_in(call) == {"I26"}


def test_i27_finds_an_attempt_open_past_its_lease(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    plant(f"UPDATE ledger_attempt SET lease_until = {HOUR_AGO} WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I27"}
    assert broken(liveness=False) == set()


def test_i29_passes_over_an_authorization_of_the_longest_lifetime(acme: Acme) -> None:
    longest = {"timeouts": {"schedule_to_close_s": 900}}
    builders.a_call(acme, in_state="scheduled", recovery_class="provider_auth", policy=longest)
    assert broken() == set()


def test_i29_finds_an_authorization_that_may_wait_too_long(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="scheduled", recovery_class="provider_auth")
    plant("UPDATE ledger_toolcall SET schedule_to_close_at = recorded_at "
          "+ interval '15 minutes 2 seconds' WHERE id = %s", call.id)  # fmt: skip
    assert broken_in(call) == {"I29"}


@pytest.mark.parametrize("in_state", ["interrupted", "ambiguous"])
def test_i30_finds_a_call_in_recovery_without_an_incident(acme: Acme, in_state: str) -> None:
    call = builders.a_call(acme, in_state=in_state)
    incidents.close(incidents.current(call))  # type: ignore[arg-type]
    assert broken_in(call) == {"I30"}


def test_i30_finds_an_open_incident_of_a_settled_call(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="succeeded")
    incidents.open_for(call, cause=builders.Cause.HANG,
                       failure_point=FailurePoint.DURING_EXECUTION)  # fmt: skip
    assert broken_in(call) == {"I30"}


def test_i30_finds_an_operators_turn_without_a_date(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="ambiguous")
    plant("UPDATE recovery_incident SET remind_at = NULL WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I30"}


def test_i30_finds_that_an_incident_may_be_closed_and_open(db: None) -> None:
    ddl("ALTER TABLE recovery_incident DROP CONSTRAINT incident_state_says_closed")
    assert broken() == {"I30"}


def test_i30_finds_that_two_incidents_may_be_open(db: None) -> None:
    ddl("DROP INDEX one_open_recovery_incident")
    assert broken() == {"I30"}


def _held(acme: Acme) -> ToolCall:
    """A call that waits in a hold for one that was interrupted."""
    session = builders.a_session(acme)
    place = {"session_id": session.id, "turn_id": builders.a_turn(session).id}
    builders.a_call(acme, "interrupted", **place)
    return builders.a_call(acme, "paused", **place)


def test_i28_finds_a_paused_call_that_asks_nobody(acme: Acme) -> None:
    call = _held(acme)
    plant("DELETE FROM ledger_interrupt WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I28"}


def test_i28_finds_a_question_that_was_answered_while_its_call_still_waits(acme: Acme) -> None:
    call = _held(acme)
    plant("UPDATE ledger_interrupt SET ended_at = clock_timestamp(), ended_as = 'answered' "
          "WHERE call_id = %s", call.id)  # fmt: skip
    assert broken_in(call) == {"I28"}


def test_i28_finds_a_question_about_a_call_that_waits_no_more(acme: Acme) -> None:
    call = _held(acme)
    calls.cancel(workspace_id=acme.workspace.id, agent_id=acme.ada.id, call_id=call.id)
    plant("UPDATE ledger_interrupt SET ended_at = NULL, ended_as = '' WHERE call_id = %s", call.id)
    assert broken_in(call) == {"I28"}


@pytest.mark.parametrize("key", interrupts.SNAPSHOT_KEYS)
def test_i28_finds_a_snapshot_that_lacks_a_key(acme: Acme, key: str) -> None:
    call = _held(acme)
    snapshot = Interrupt.objects.get(call=call).snapshot_json
    written = strictjson.canonical({k: v for k, v in snapshot.items() if k not in (key, "hash")})
    plant("UPDATE ledger_interrupt SET snapshot = %s, snapshot_sha256 = %s WHERE call_id = %s",
          written.decode(), hashlib.sha256(written).hexdigest(), call.id)  # fmt: skip
    assert broken_in(call) == {"I28"}


def test_i28_finds_a_snapshot_that_is_not_the_one_that_was_hashed(acme: Acme) -> None:
    call = _held(acme)
    plant("UPDATE ledger_interrupt SET snapshot = replace(snapshot, 'report', 'other') "
          "WHERE call_id = %s", call.id)  # fmt: skip
    assert broken_in(call) == {"I28"}


def test_i28_finds_that_interrupts_may_be_rewritten(db: None) -> None:
    name = trigger("ledger_interrupt", "interrupt_guard")
    ddl(f"ALTER TABLE ledger_interrupt DISABLE TRIGGER {name}")
    assert broken() == {"I28"}


def test_i24_lets_schedule_to_start_stand_still_under_a_hold(acme: Acme) -> None:
    call = builders.a_call(acme)
    plant(f"UPDATE ledger_toolcall SET schedule_to_start_at = {HOUR_AGO}, "
          "held_at = published_at WHERE id = %s", call.id)  # fmt: skip
    assert broken() == set()
