"""Attempts: won once, crossed once, fenced for ever; what comes late is kept as evidence."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction

from ledger import attempts, calls, claims, handles, keys, registry, settlements
from ledger.errors import FenceLost, PermissionMissing
from ledger.journal import events_of
from ledger.models import ApiKey, Attempt, Chunk, Evidence, Handle, Result
from ledger.vocabulary import AttemptKind, CallState, Cause, Effect, Instruction, Meaning
from ledger.workers import Holder
from tests import builders
from tests.builders import a_call, claim_of, fresh
from tests.cast import Acme
from tests.threads import at_once

# Claiming


def test_a_claim_carries_all_that_the_executor_needs(acme: Acme, worker: Holder) -> None:
    call = a_call(acme)
    claim = builders.claimed(call)
    assert (claim.fence, claim.run_number, claim.kind) == (1, 1, AttemptKind.RUN)
    assert claim.arguments == builders.ARGUMENTS
    assert claim.marker == call.marker
    assert (claim.lease_s, claim.start_to_close_s) == (15, 60)
    assert claim.schedule_to_close_s == pytest.approx(300, abs=2)


def test_the_oldest_call_is_claimed_first(acme: Acme, worker: Holder) -> None:
    ids = [a_call(acme).id for _ in range(3)]
    won = [claims.claim(queue="effects", holder=worker, limit=1)[0].call_id for _ in ids]
    assert won == ids


def test_no_more_is_claimed_than_there_are_free_slots(acme: Acme, worker: Holder) -> None:
    tool = builders.a_tool(acme)
    for _ in range(5):
        a_call(acme, tool=tool)
    assert [len(claims.claim(queue="effects", holder=worker, limit=n)) for n in (2, 9, 9)] == [
        2, 3, 0,
    ]  # fmt: skip


def test_a_queue_gives_only_its_own_calls(acme: Acme, worker: Holder) -> None:
    a_call(acme, recovery_class="read_only")
    assert claims.claim(queue="effects", holder=worker, limit=5) == []
    assert len(claims.claim(queue="reads", holder=worker, limit=5)) == 1


def test_a_call_past_its_schedule_to_start_is_not_claimed(acme: Acme, worker: Holder) -> None:
    call = a_call(acme)
    builders.past(call, "schedule_to_start")
    assert claims.claim(queue="effects", holder=worker, limit=1) == []


@pytest.mark.parametrize("state", [s for s in builders.WALKS if s is not CallState.SCHEDULED])
def test_only_scheduled_calls_are_claimed_to_run(
    acme: Acme, worker: Holder, state: CallState
) -> None:
    call = a_call(acme, in_state=state)
    won = claims.claim(queue="effects", holder=worker, limit=5)
    assert call.id not in {each.call_id for each in won}


@pytest.mark.django_db(transaction=True)
def test_a_call_that_another_worker_is_claiming_is_skipped(acme: Acme, worker: Holder) -> None:
    first, second = a_call(acme), a_call(acme)
    inside, leave = threading.Event(), threading.Event()

    def claim_slowly() -> list[Any]:
        with transaction.atomic():
            won = claims.claim(queue="effects", holder=worker, limit=1)
            inside.set()
            assert leave.wait(10)
        return [each.call_id for each in won]

    def claim_meanwhile() -> list[Any]:
        assert inside.wait(10)
        won = claims.claim(queue="effects", holder=worker, limit=2)
        leave.set()
        return [each.call_id for each in won]

    assert at_once([claim_slowly, claim_meanwhile]) == [[first.id], [second.id]]


@pytest.mark.django_db(transaction=True)
def test_eight_workers_at_once_win_each_call_once(acme: Acme, worker: Holder) -> None:
    tool = builders.a_tool(acme)
    ids = {a_call(acme, tool=tool).id for _ in range(12)}
    won = at_once([lambda: claims.claim(queue="effects", holder=worker, limit=3)] * 8)
    claimed = [each.call_id for some in won if isinstance(some, list) for each in some]
    claimed += [e.call_id for e in claims.claim(queue="effects", holder=worker, limit=12)]
    assert sorted(claimed) == sorted(ids)
    assert Attempt.objects.count() == 12


# Crossing


def test_crossing_is_committed_and_makes_the_effect_possible(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    left_s = attempts.cross(call_id=call.id, fence=1)
    assert 14 < left_s <= 15
    assert fresh(call).effect is Effect.POSSIBLE
    assert events_of(call.id)[-1].lease_until is not None


def test_crossing_again_answers_the_same_and_writes_nothing(acme: Acme) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    assert 0 < attempts.cross(call_id=call.id, fence=1) <= 15
    assert fresh(call).seq == call.seq


def _lease_over(call: Any) -> None:
    builders.end_lease(call)


def _lease_nearly_over(call: Any) -> None:
    builders.end_lease(call, seconds_ago=-1.0)


def _fence_taken(call: Any) -> None:
    builders.lost(call)


@pytest.mark.parametrize("spoil", [_lease_over, _lease_nearly_over, _fence_taken])
def test_without_lease_or_fence_nothing_is_crossed(
    acme: Acme, spoil: Callable[[Any], None]
) -> None:
    call = a_call(acme, in_state="running")
    spoil(call)
    with pytest.raises(FenceLost, match="Stop the tool"):
        attempts.cross(call_id=call.id, fence=1)
    assert fresh(call).effect is Effect.NOT_BEGUN


def test_a_repeated_crossing_after_the_lease_is_refused(acme: Acme) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    builders.end_lease(call)
    with pytest.raises(FenceLost):
        attempts.cross(call_id=call.id, fence=1)


def test_another_attempts_fence_crosses_nothing(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    for fence in (0, 2):
        with pytest.raises(FenceLost):
            attempts.cross(call_id=call.id, fence=fence)


def test_a_tool_switched_off_meanwhile_crosses_nothing(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    registry.switch(workspace_id=acme.workspace.id, tool_name=call.tool, on=False,
                    by=builders.AUTHOR)  # fmt: skip
    with pytest.raises(PermissionMissing, match="switched on"):
        attempts.cross(call_id=call.id, fence=1)
    assert fresh(call).effect is Effect.NOT_BEGUN


def test_a_key_revoked_meanwhile_crosses_nothing(acme: Acme) -> None:
    keys.issue(agent=acme.ada)
    key = ApiKey.objects.get()
    call = a_call(acme, in_state="running", api_key_id=key.id)
    keys.revoke(key_id=key.id)
    with pytest.raises(PermissionMissing, match="not revoked"):
        attempts.cross(call_id=call.id, fence=1)
    assert fresh(call).effect is Effect.NOT_BEGUN


# Heartbeats


def test_a_heartbeat_extends_the_lease_and_is_no_event(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    builders.end_lease(call, seconds_ago=-5.0)
    before = Attempt.objects.get(call=call).lease_until
    assert attempts.heartbeat(call_id=call.id, fence=1) == (Instruction.GO_ON, 15.0)
    after = Attempt.objects.get(call=call).lease_until
    assert after > before
    assert fresh(call).heartbeat_at == after
    assert fresh(call).seq == call.seq


def test_a_heartbeat_under_a_lost_fence_is_refused(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    builders.lost(call)
    with pytest.raises(FenceLost):
        attempts.heartbeat(call_id=call.id, fence=1)


def test_a_new_cursor_is_an_event_and_reaches_the_next_attempt(acme: Acme) -> None:
    call = a_call(acme, in_state="running", recovery_class="read_only")
    for _ in range(2):
        attempts.heartbeat(call_id=call.id, fence=1, cursor={"page": 7})
    assert [e.kind for e in events_of(call.id)].count("progress") == 1
    builders.lost(call)
    builders.past(call, "backoff")
    builders.fire()
    assert builders.claimed(call).cursor == {"page": 7}


def test_partial_output_stays_after_the_workers_death(acme: Acme) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    attempts.heartbeat(call_id=call.id, fence=1, partial=b"half of it")
    builders.lost(call)
    assert bytes(Chunk.objects.get(attempt__call=call).body) == b"half of it"


def test_a_wish_to_cancel_is_told_by_the_heartbeat(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    calls.cancel(workspace_id=call.workspace_id, agent_id=call.agent_id, call_id=call.id)
    assert attempts.heartbeat(call_id=call.id, fence=1)[0] is Instruction.CANCEL


def test_many_leases_are_renewed_in_one_statement_and_lost_ones_are_left_out(acme: Acme) -> None:
    kept, lost = (a_call(acme, in_state="running") for _ in range(2))
    ids = [claim_of(call).attempt_id for call in (kept, lost)]
    builders.lost(lost)
    assert attempts.renew(attempt_ids=ids) == {ids[0]}


# Settling


@pytest.mark.parametrize(
    ("recovery_class", "crossed", "more", "effect"),
    [("read_only", False, {}, "none"), ("side_effect", True, {}, "happened"),
     ("side_effect", False, {}, "did_not_happen"),
     ("side_effect", True, {"changed_nothing": True}, "did_not_happen"),
     ("idempotent_write", True, {}, "happened"), ("long_running", True, {}, "happened"),
     ("provider_auth", True, {}, "happened")],
)  # fmt: skip
def test_a_success_says_what_it_proves_of_the_effect(
    acme: Acme, recovery_class: str, crossed: bool, more: dict[str, Any], effect: str
) -> None:
    call = a_call(acme, "running", recovery_class, crossed=crossed)
    builders.settle(call, **more)
    assert (fresh(call).state, fresh(call).effect) == ("succeeded", effect)


def test_a_success_that_never_crossed_after_a_refusal_changed_nothing(acme: Acme) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    builders.report(call, Cause.RATE_LIMITED, Meaning.REFUSED)
    builders.past(call, "backoff")
    builders.fire()
    builders.claimed(call)
    builders.settle(call)
    assert fresh(call).effect is Effect.DID_NOT_HAPPEN


def test_a_result_is_kept_as_received(acme: Acme) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    builders.settle(call, {"b": 1, "a": [1.0]})
    result = Result.objects.get(call=call)
    assert bytes(result.body) == bytes(builders.settlement(claim_of(call), {"b": 1, "a": [1.0]})
                                       .stored.body)  # fmt: skip
    assert (result.fence, result.event_seq) == (1, fresh(call).seq)


def test_settling_twice_with_one_result_answers_the_same(acme: Acme) -> None:
    call = a_call(acme, in_state="succeeded")
    builders.settle(call)
    assert fresh(call).seq == call.seq
    assert Evidence.objects.count() == 0


def test_settling_twice_with_another_result_keeps_it_as_evidence(acme: Acme) -> None:
    call = a_call(acme, in_state="succeeded")
    with pytest.raises(FenceLost):
        builders.settle(call, {"another": True})
    assert Evidence.objects.get(call=call).kind == "late_result"
    assert fresh(call).state is CallState.SUCCEEDED


def test_settling_after_the_loss_is_refused_and_kept_as_evidence(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    with pytest.raises(FenceLost, match="kept as evidence"):
        builders.settle(call)
    evidence = Evidence.objects.get(call=call)
    assert (evidence.kind, evidence.adoptable, evidence.finding) == (
        "late_result", True, "happened",
    )  # fmt: skip
    assert not Result.objects.filter(call=call).exists()


def test_the_same_late_result_is_kept_once(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    for _ in range(2):
        with pytest.raises(FenceLost):
            builders.settle(call)
    assert [e.kind for e in events_of(call.id)].count("late_result") == 1


def test_in_a_batch_only_the_lost_one_is_refused(acme: Acme) -> None:
    lost = a_call(acme, in_state="interrupted")
    good = a_call(acme, in_state="running", crossed=True)
    answers = settlements.settle([builders.settlement(claim_of(call)) for call in (lost, good)])
    assert [type(answer) for answer in answers] == [FenceLost, type(None)]
    assert fresh(good).state is CallState.SUCCEEDED


def test_a_late_result_of_other_arguments_can_never_be_adopted(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    other = replace(claim_of(call), arguments_sha256="0" * 64)
    settlements.settle([builders.settlement(other)])
    assert not Evidence.objects.get(call=call).adoptable


# Handles, parking, releasing


def test_a_handle_is_committed_before_any_wait_and_is_encrypted(acme: Acme) -> None:
    call = a_call(acme, "running", "long_running", crossed=True)
    handle = handles.HandleToStore(value="secret-run-7", endpoint="https://x.example")
    handles.store_handle(call_id=call.id, fence=1, handle=handle)
    stored = Handle.objects.get(call=call)
    assert b"secret-run-7" not in bytes(stored.value_encrypted)
    assert "secret-run-7" not in events_of(call.id)[-1].facts
    assert fresh(call).state is CallState.RUNNING


def test_the_same_handle_again_is_no_event(acme: Acme) -> None:
    call = a_call(acme, "running", "long_running", crossed=True)
    handle = handles.HandleToStore(value="run-7")
    handles.store_handle(call_id=call.id, fence=1, handle=handle)
    seq = fresh(call).seq
    handles.store_handle(call_id=call.id, fence=1, handle=handle)
    assert fresh(call).seq == seq


def test_a_parked_call_holds_no_worker_and_its_poll_is_dated(acme: Acme) -> None:
    call = a_call(acme, in_state="parked", recovery_class="long_running")
    assert not Attempt.objects.filter(call=call, ended_at=None).exists()
    assert call.next_poll_at is not None
    assert call.start_to_close_at is None


@pytest.mark.parametrize(
    ("hint_s", "polls", "wait_s"),
    [(None, 0, 5), (None, 1, 7.5), (None, 9, 60), (0.1, 0, 1), (20, 3, 20), (900, 0, 60)],
)
def test_the_next_poll_follows_the_hint_within_bounds(
    hint_s: float | None, polls: int, wait_s: float
) -> None:
    assert handles.poll_wait_s(hint_s, polls) == wait_s


def test_a_poll_that_finds_the_job_running_spends_no_attempt(acme: Acme) -> None:
    call = a_call(acme, in_state="parked", recovery_class="long_running")
    claim = builders.poll(call)
    assert (claim.kind, claim.fence) == (AttemptKind.POLL, 2)
    assert claim.handle is not None
    builders.park(call)
    assert fresh(call).state is CallState.PARKED
    assert fresh(call).attempts_used == 1
    assert Handle.objects.get(call=call).polls == 1


def test_a_poll_that_finds_the_job_done_settles_the_call(acme: Acme) -> None:
    call = a_call(acme, in_state="parked", recovery_class="long_running")
    builders.poll(call)
    builders.settle(call)
    assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")


def test_a_poll_is_claimed_by_one_worker_only(acme: Acme, worker: Holder) -> None:
    call = a_call(acme, in_state="parked", recovery_class="long_running")
    builders.poll(call)
    assert claims.claim(queue="control", holder=worker, limit=5) == []


def test_a_device_code_lives_no_longer_than_it_says(acme: Acme) -> None:
    call = a_call(acme, "running", "provider_auth", crossed=True)
    builders.park(call, expires_in_s=8.0)
    left = fresh(call).schedule_to_close_at - fresh(call).recorded_at  # type: ignore[operator]
    assert left.total_seconds() < 12


def test_an_attempt_given_back_spends_no_budget(acme: Acme) -> None:
    call = a_call(acme, in_state="running")
    attempts.release(call_id=call.id, fence=1, grounds="The worker drains.")
    assert (fresh(call).state, fresh(call).attempts_used) == ("backing_off", 0)
    builders.past(call, "backoff")
    builders.fire()
    assert builders.claimed(call).run_number == 1


def test_an_attempt_that_crossed_cannot_be_given_back(acme: Acme) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    with pytest.raises(FenceLost):
        attempts.release(call_id=call.id, fence=1, grounds="The worker drains.")


# What a lost fence can still do: nothing


@pytest.mark.parametrize(
    "verb",
    [
        lambda c: attempts.cross(call_id=c.id, fence=1),
        lambda c: attempts.heartbeat(call_id=c.id, fence=1),
        lambda c: attempts.release(call_id=c.id, fence=1, grounds="x"),
        lambda c: builders.park(c),
        lambda c: builders.settle(c),
        lambda c: builders.report(c, Cause.HANG, Meaning.UNKNOWN),
        lambda c: handles.store_handle(
            call_id=c.id, fence=1, handle=handles.HandleToStore(value="h")
        ),
    ],
    ids=["cross", "heartbeat", "release", "park", "settle", "report", "store_handle"],
)
def test_a_lost_fence_can_do_nothing_more(acme: Acme, verb: Callable[[Any], Any]) -> None:
    call = a_call(acme, in_state="interrupted")
    with pytest.raises(FenceLost):
        verb(call)
    assert fresh(call).state is CallState.INTERRUPTED


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("time", range(12))
def test_a_settlement_and_the_watchdog_at_once_leave_one_winner(acme: Acme, time: int) -> None:
    call = a_call(acme, in_state="running", crossed=True)
    builders.past(call, "heartbeat")
    answers = at_once([lambda: builders.settle(call), builders.fire])
    settled = fresh(call).state is CallState.SUCCEEDED
    assert isinstance(answers[0], FenceLost) is not settled, (answers, fresh(call).state)
    assert Evidence.objects.filter(call=call).exists() is not settled
    assert connection.in_atomic_block is False
