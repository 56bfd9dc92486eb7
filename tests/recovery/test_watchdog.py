"""The watchdog: what is due is acted on once, however many sweep, and nobody is judged in haste."""

import threading

import pytest
from django.db import connection, transaction

from ledger import attempts, calls
from ledger.journal import events_of
from ledger.models import Attempt, Event, ToolCall
from ledger.vocabulary import Cause, FenceKind, Meaning
from recovery import deadlines, watchdog
from recovery.models import Incident, Sweep
from tests import builders
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme
from tests.refusals import sql
from tests.threads import at_once


def kinds_of(call: ToolCall) -> list[str]:
    return [event.kind for event in events_of(call.id)]


def test_nothing_due_is_nothing_done(acme: Acme) -> None:
    a_call(acme, in_state="running")
    before = Event.objects.count()
    assert fire() == 0
    assert Event.objects.count() == before


def test_a_sweep_leaves_its_date(acme: Acme) -> None:
    watchdog.sweep()
    watchdog.sweep()
    assert Sweep.objects.count() == 1


def test_a_pass_takes_no_more_than_its_bite(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    for _ in range(3):
        past(a_call(acme, tool=tool), "schedule_to_start")
    assert [watchdog.fire_due(limit=2), watchdog.fire_due(limit=2), fire()] == [2, 1, 0]


def test_the_backoffs_end_publishes_the_next_attempt(acme: Acme) -> None:
    call = a_call(acme, in_state="backing_off")
    past(call, "backoff")
    fire()
    call = fresh(call)
    assert (call.state, call.rings) == ("scheduled", 0)
    assert call.ring_at is not None
    assert call.schedule_to_start_at is not None


def test_a_row_that_cannot_be_moved_does_not_stop_the_others(acme: Acme) -> None:
    broken = a_call(acme)
    good = a_call(acme)
    for call in (broken, good):
        past(call, "schedule_to_start")
    connection.check_constraints()
    sql("ALTER TABLE ledger_toolcall ADD CONSTRAINT stuck CHECK "
        f"(NOT (id = '{broken.id}' AND state = 'expired')) NOT VALID")  # fmt: skip
    assert watchdog.fire_due() == 1
    assert (fresh(broken).state, fresh(good).state) == ("scheduled", "expired")


@pytest.mark.django_db(transaction=True)
def test_two_watchdogs_at_once_act_once(acme: Acme) -> None:
    some = [a_call(acme, in_state="running", crossed=True) for _ in range(4)]
    for call in some:
        past(call, "heartbeat")
    acted = at_once([fire] * 4)
    assert all(isinstance(answer, int) for answer in acted), acted
    for call in some:
        assert kinds_of(call).count("fence_lost") == 1
        assert kinds_of(call).count("interrupted") == 1
        assert Incident.objects.filter(call=call).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_call_that_its_worker_is_reporting_is_skipped(acme: Acme) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    past(call, "heartbeat")
    held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            ToolCall.objects.locked(call.id)
            held.set()
            assert leave.wait(10)

    def sweep_meanwhile() -> int:
        assert held.wait(10)
        try:
            return fire()
        finally:
            leave.set()

    assert at_once([hold, sweep_meanwhile]) == [None, 0]  # type: ignore[list-item]
    assert fire() == 1


def test_a_deadline_that_moved_meanwhile_is_not_acted_on(acme: Acme) -> None:
    call = past(a_call(acme, in_state="running"), "heartbeat")
    attempts.heartbeat(call_id=call.id, fence=1)
    assert not deadlines.fire(fresh(call))
    assert fresh(call).state == "running"


def test_a_late_sweep_grants_every_running_attempt_one_lease(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    past(call, "heartbeat")
    assert watchdog.grant_one_lease() == 1
    assert fire() == 0
    left = fresh(call).heartbeat_at - call.heartbeat_at  # type: ignore[operator]
    assert left.total_seconds() > -1


def test_a_late_sweep_moves_no_other_deadline(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    watchdog.grant_one_lease()
    assert fresh(call).start_to_close_at == call.start_to_close_at
    assert fresh(call).schedule_to_close_at == call.schedule_to_close_at


# Proof of death


def test_a_kernel_fence_proves_death_once_it_must_have_fired(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    assert watchdog.prove_dead() == 0
    builders.end_lease(call, seconds_ago=6)
    assert watchdog.prove_dead() == 1
    attempt = Attempt.objects.get(call=call)
    assert attempt.dead_proof == "self_fence_elapsed"
    grace = attempt.unlocks_at - attempt.dead_at  # type: ignore[operator]
    assert grace.total_seconds() == pytest.approx(30, abs=0.5)
    assert watchdog.prove_dead() == 0


def test_an_attempt_that_never_crossed_unlocks_at_once(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    builders.lost(call)
    builders.end_lease(call, seconds_ago=6)
    watchdog.prove_dead()
    attempt = Attempt.objects.get(call=call)
    assert attempt.unlocks_at is not None
    assert (attempt.unlocks_at - attempt.dead_at).total_seconds() < 1  # type: ignore[operator]


def test_without_a_kernel_fence_time_proves_nothing(acme: Acme) -> None:
    builders.a_worker(fence_kind=FenceKind.NONE)
    call = a_call(acme, in_state="interrupted")
    builders.end_lease(call, seconds_ago=3600)
    assert watchdog.prove_dead() == 0
    assert Attempt.objects.get(call=call).dead_proof == ""


def test_a_report_proves_death_by_itself(acme: Acme) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    builders.report(call, Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    assert Attempt.objects.get(call=call).dead_proof == "reported"
    assert fresh(call).state == "interrupted"


# Cancelling (R99)


def test_what_rests_is_cancelled_at_once(acme: Acme) -> None:
    for state in ("scheduled", "backing_off"):
        call = a_call(acme, in_state=state)
        calls.cancel(workspace_id=call.workspace_id, agent_id=call.agent_id, call_id=call.id)
        assert fresh(call).state == "cancelled"


def test_a_running_call_is_cancelled_once_its_worker_stopped_before_the_boundary(
    acme: Acme,
) -> None:
    call = a_call(acme, in_state="running")
    calls.cancel(workspace_id=call.workspace_id, agent_id=call.agent_id, call_id=call.id)
    assert fresh(call).state == "running"
    builders.report(call, Cause.NOT_BEGUN_REPORTED, Meaning.NOT_BEGUN)
    assert fresh(call).state == "cancelled"


def test_a_crossed_call_is_left_to_end(acme: Acme) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    calls.cancel(workspace_id=call.workspace_id, agent_id=call.agent_id, call_id=call.id)
    builders.settle(call)
    assert fresh(call).state == "succeeded"


def test_no_sweep_needs_a_broker(acme: Acme, dead_broker: str) -> None:
    past(a_call(acme), "schedule_to_start")
    assert watchdog.sweep() >= 1
    assert connection.in_atomic_block
