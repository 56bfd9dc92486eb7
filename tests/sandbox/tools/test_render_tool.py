"""`sandbox.render`: long work that is resumed by its handle."""

import os
import signal
from typing import Any

from executors.contract import Outcome
from executors.python import PythonExecutor, registry
from ledger.vocabulary import AttemptKind, Cause, Meaning, ProbeFinding
from sandbox.rendering import started_at
from tests.executors.recording_context import RecordingContext
from tests.sandbox.attempts import a_killable, assigned, polled, probed, ran, value_of
from tests.sandbox.test_renders import pid_of
from tests.sandbox.world import World, until

TOOL = "sandbox.render"


def parked(**wanted: Any) -> Outcome:
    outcome, _ = ran(TOOL, wanted)
    assert outcome.handle is not None, outcome
    return outcome


def poll(outcome: Outcome, **changes: Any) -> Outcome:
    return polled(outcome, TOOL, **changes)[0]


def not_parked(outcome: Outcome) -> Outcome:
    return until(lambda: not (found := poll(outcome)).handle and found, "the render ends")


def handle_of(outcome: Outcome) -> str:
    assert outcome.handle is not None
    return outcome.handle.value


def test_a_render_crosses_then_stores_its_handle_then_parks(world: World) -> None:
    outcome, context = ran(TOOL, {"seconds": 0})
    assert context.verbs == ["cross", "store_handle"]
    assert context.handles == [outcome.handle]


def test_a_poll_parks_again_until_the_result_is_there(world: World) -> None:
    begun = parked(frames=4, seconds=1.5)
    assert poll(begun).handle == begun.handle
    done = not_parked(begun)
    assert value_of(done)["frames"] == 4
    assert value_of(done)["sha256"]


def test_a_poll_tells_each_line_of_progress_once(world: World) -> None:
    begun = parked(frames=2, seconds=0)
    not_parked(begun)
    _, first = polled(begun, TOOL)
    assert first.calls == [("heartbeat", {"lines_told": 2}, b"frame 1 of 2\nframe 2 of 2\n")]
    _, second = polled(begun, TOOL, cursor={"lines_told": 1})
    assert second.calls[0][2] == b"frame 2 of 2\n"
    _, third = polled(begun, TOOL, cursor={"lines_told": 2})
    assert third.calls == []


def test_a_starter_killed_before_it_stored_the_handle_is_found_by_its_marker(
    world: World,
) -> None:
    arguments = {"frames": 10, "seconds": 30, "pause_before_handle_s": 60}
    child = a_killable(TOOL, arguments, "handle-lost")
    child.wait_for("before_handle")
    child.kill()
    answer = probed(assigned(TOOL, marker="handle-lost"))
    assert answer.finding is ProbeFinding.IN_PROGRESS
    assert answer.handle is not None
    assert started_at(pid_of(world, answer.handle.value)) is not None


def test_asking_again_with_the_same_key_finds_the_same_render(world: World) -> None:
    first, _ = ran(TOOL, {"seconds": 1}, idempotency_key="once", marker="once")
    again, _ = ran(TOOL, {"seconds": 1}, idempotency_key="once", marker="once", fence=2)
    assert first.handle == again.handle


def test_the_same_key_in_another_workspace_is_another_render(world: World) -> None:
    ours, context = ran(TOOL, {"seconds": 0}, idempotency_key="shared")
    other = context.assignment.call_id
    theirs, _ = ran(TOOL, {"seconds": 0}, idempotency_key="shared", workspace_id=other)
    assert ours.handle != theirs.handle


def test_a_render_is_resumed_by_its_handle_after_everything_died(own_world: World) -> None:
    begun = parked(frames=20, seconds=3)
    own_world.kill()
    assert poll(begun).handle == begun.handle  # not reachable: asked again later
    own_world.start()
    assert value_of(not_parked(begun))["frames"] == 20


def test_a_forgotten_handle_has_vanished_which_proves_nothing(world: World) -> None:
    begun = parked(frames=2, seconds=0.1, forget_after_s=0)
    gone = not_parked(begun)
    assert (gone.cause, gone.means) == (Cause.VANISHED, Meaning.UNKNOWN)


def test_a_render_that_fails_is_a_known_error_with_what_it_has(world: World) -> None:
    failed = not_parked(parked(seconds=0, fails=True))
    assert (failed.cause, failed.means) == (Cause.TOOL_ERROR, Meaning.KNOWN)


def test_a_killed_render_is_an_error_that_keeps_its_progress(world: World) -> None:
    begun = parked(frames=200, seconds=60)
    pid = pid_of(world, handle_of(begun))
    until(lambda: polled(begun, TOOL)[1].calls, "some progress")
    os.kill(pid, signal.SIGKILL)
    died = not_parked(begun)
    assert died.cause is Cause.TOOL_ERROR
    assert "frame 1 of 200" in value_of(died)["progress"]


def test_a_cancel_is_a_request_and_the_next_poll_tells_what_came_of_it(world: World) -> None:
    begun = parked(frames=100, seconds=60)
    pid_of(world, handle_of(begun))
    assignment = assigned(TOOL, kind=AttemptKind.POLL, handle=begun.handle, crossed=True)
    asked = PythonExecutor().cancel(assignment, RecordingContext(assignment))
    assert asked.handle == begun.handle
    assert not_parked(begun).cause is Cause.TOOL_ERROR


def test_a_render_the_renderer_does_not_know_is_no_proof_by_policy(world: World) -> None:
    assert probed(assigned(TOOL, marker="nobody")).finding is ProbeFinding.DID_NOT_HAPPEN
    found = registry.get(TOOL)
    assert found is not None
    assert found.policy["probe"] == {"authoritative": False}
