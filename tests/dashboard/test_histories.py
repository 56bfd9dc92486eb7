"""What the timeline says of real calls: only what the ledger proves."""

import pytest

from dashboard import figures, histories
from dashboard.figures import Timeline
from dashboard.stories import Story
from ledger import attempts, clock
from ledger.models import Attempt, ToolCall
from ledger.vocabulary import Cause, Meaning
from recovery import losses
from tests import builders, cast
from tests.ledger.test_compactions import a_call, a_history, compacted

pytestmark = pytest.mark.django_db


def story(call: ToolCall) -> Story:
    return histories.story_of(histories.read(builders.fresh(call), clock.now()))


def told(call: ToolCall) -> Timeline:
    return figures.timeline_of(histories.read(builders.fresh(call), clock.now()))


def kinds(call: ToolCall) -> list[str]:
    return [mark.kind for mark in story(call).marks]


def test_a_call_that_nobody_claimed_says_so(acme: cast.Acme) -> None:
    found = told(builders.a_call(acme))
    assert found.sentence == "No worker has claimed this call; it is scheduled."
    assert (found.emphasis, found.lines) == ("", [])


def test_an_attempt_before_its_boundary_has_no_window(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running")
    assert story(call).runs[0].window_from is None
    assert told(call).emphasis == ""


def test_a_lost_attempt_keeps_its_window_open_until_its_death_is_proven(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "interrupted")
    (run,) = story(call).runs
    assert run.is_lost
    assert run.window_until is None
    assert "the window is open" in told(call).emphasis
    assert "stays locked" in told(call).emphasis

    builders.unlock_denial(call)
    (run,) = story(call).runs
    assert run.window_until is not None
    assert "self_fence_elapsed" in run.narrowed_by
    assert "may have happened between" in told(call).emphasis


def test_a_bar_ends_at_the_last_proof_of_life_and_not_where_the_loss_was_noticed(
    acme: cast.Acme,
) -> None:
    call = builders.a_call(acme, "interrupted")
    (run,) = story(call).runs
    assert run.ended_at is not None
    assert run.proved_until < run.ended_at
    assert "the loss was noticed" in told(call).sentence


def test_the_timer_that_fired_is_marked(acme: cast.Acme) -> None:
    fired = {bound.name for bound in story(builders.a_call(acme, "interrupted")).bounds
             if bound.fired}  # fmt: skip
    assert fired == {"heartbeat"}
    fired = {bound.name for bound in story(builders.a_call(acme, "expired")).bounds if bound.fired}
    assert fired == {"schedule_to_start"}


def test_a_lease_that_had_not_ended_when_its_worker_was_found_dead_has_not_fired(
    acme: cast.Acme,
) -> None:
    call = builders.a_call(acme, "running", crossed=True)
    losses.lose(call, Cause.WORKER_LOST)
    (run,) = story(call).runs
    assert run.is_lost
    assert not any(bound.fired for bound in story(call).bounds)


def test_the_bound_of_a_lease_ends_where_the_lease_does(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", crossed=True)
    (bound,) = [each for each in story(call).bounds if each.name == "heartbeat"]
    assert bound.end == Attempt.objects.get(call=call).lease_until


def test_a_settled_call_claims_no_open_window(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "succeeded")
    found = told(call)
    assert found.emphasis == ""
    assert story(call).now is None
    assert found.lines[0].window != "–"
    assert kinds(call).count("written") == 1


def test_heartbeats_output_and_polls_are_ticks_in_the_row_of_their_attempt(
    acme: cast.Acme,
) -> None:
    call = builders.a_call(acme, "running", "long_running")
    builders.cross(call)
    attempts.heartbeat(call_id=call.id, fence=1, cursor={"n": 1}, partial=b"one")
    builders.park(call)
    builders.poll(call)
    assert {"beat", "ask", "crossed"} <= set(kinds(call))
    assert [run.fence for run in story(call).runs] == [1]
    assert {mark.fence for mark in story(call).marks} == {1}


def test_parked_work_keeps_its_window_open_although_its_attempt_has_ended(
    acme: cast.Acme,
) -> None:
    call = builders.a_call(acme, "parked", "long_running")
    (run,) = story(call).runs
    assert run.ended_at is not None
    assert run.window_until is None
    assert told(call).emphasis.endswith(": the work goes on outside.")
    assert told(call).lines[0].window.endswith("open")


def test_a_wait_for_an_attempt_stands_in_the_row_of_that_attempt(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "backing_off")
    rows = {(wait.kind, wait.fence) for wait in story(call).waits}
    assert ("scheduled", 1) in rows
    assert ("backing_off", 2) in rows


def test_an_attempt_that_proved_nothing_began_says_why(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running")
    builders.report(call, Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert "connect failed" in told(call).sentence


def test_a_lease_that_ended_unnoticed_is_no_proof_of_life(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", crossed=True)
    builders.past(call, "heartbeat")
    (run,) = story(call).runs
    assert run.is_lost
    assert "nobody has acted on it yet" in told(call).sentence


def test_a_compaction_that_carried_the_call_over_is_a_mark(acme: cast.Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 1, crossed=True)
    assert "cut" not in kinds(call)
    compacted(session)
    assert [mark.title for mark in story(call).marks if mark.kind == "cut"] == [
        "Compaction 1 carried the call over"
    ]
