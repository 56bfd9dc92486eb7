"""`sandbox.device_login`: a sign-in that ends, with or without a person."""

import re
from dataclasses import replace

from executors.contract import Outcome
from executors.python import PythonExecutor
from ledger.vocabulary import Cause, Meaning
from tests.executors.recording_context import RecordingContext
from tests.sandbox.attempts import assigned, polled, ran, value_of
from tests.sandbox.world import World

TOOL = "sandbox.device_login"


def begun(**wanted: float) -> tuple[Outcome, str]:
    """A parked sign-in and the user code that a person would read."""
    outcome, context = ran(TOOL, {"interval_s": 0, **wanted})
    shown = b"".join(call[2] or b"" for call in context.calls if call[0] == "heartbeat").decode()
    match = re.search(r"user_code=([A-Z-]+)", shown)
    assert match, shown
    return outcome, match[1]


def poll(outcome: Outcome, **changes: object) -> tuple[Outcome, RecordingContext]:
    return polled(outcome, TOOL, **changes)


def test_a_sign_in_parks_with_the_life_and_interval_of_its_code(world: World) -> None:
    outcome, context = ran(TOOL, {"expires_in_s": 60, "interval_s": 2})
    assert context.verbs[:2] == ["cross", "store_handle"]
    assert outcome.handle is not None
    assert outcome.handle.kind == "cloud"
    assert (outcome.handle.expires_in_s, outcome.handle.poll_after_s) == (60, 2)


def test_a_completed_sign_in_brings_no_secret(world: World) -> None:
    outcome, user_code = begun()
    assert poll(outcome)[0].handle is not None
    world.ask("POST", "/device/approve", {"user_code": user_code})
    done, _ = poll(outcome)
    assert value_of(done) == {"token_type": "Bearer", "expires_in": 3600, "scope": "sandbox"}


def test_a_denied_sign_in_is_refused(world: World) -> None:
    outcome, user_code = begun()
    world.ask("POST", "/device/approve", {"user_code": user_code, "deny": True})
    denied, _ = poll(outcome)
    assert (denied.cause, denied.means) == (Cause.PERMISSION, Meaning.REFUSED)


def test_a_poll_that_comes_too_early_makes_all_later_ones_slower(world: World) -> None:
    outcome, _ = begun(interval_s=3)
    assert poll(outcome)[0].handle == outcome.handle
    slower, context = poll(outcome)
    assert slower.handle is not None
    assert slower.handle.poll_after_s == 8
    assert context.calls == [("heartbeat", {"interval_s": 8}, None)]
    again, _ = poll(outcome, cursor={"interval_s": 8})
    assert again.handle is not None
    assert again.handle.poll_after_s == 13


def test_a_code_that_ran_out_is_refused(world: World) -> None:
    outcome, user_code = begun(expires_in_s=0)
    world.ask("POST", "/device/approve", {"user_code": user_code})
    ended, _ = poll(outcome)
    assert (ended.cause, ended.means) == (Cause.AUTH, Meaning.REFUSED)


def test_a_server_that_hangs_is_left_at_the_deadline(world: World) -> None:
    assignment = assigned(TOOL, arguments={"hang_s": 5})
    outcome = PythonExecutor().run(assignment, RecordingContext(assignment, remaining=0.3))
    assert (outcome.cause, outcome.means) == (Cause.HANG, Meaning.UNKNOWN)


def test_a_server_out_of_reach_is_asked_again_later(own_world: World) -> None:
    outcome, _ = begun()
    own_world.kill()
    assert poll(outcome)[0].handle == outcome.handle


def test_a_code_lost_by_the_server_is_not_accepted(world: World) -> None:
    outcome, _ = begun()
    assert outcome.handle is not None
    lost = replace(outcome, handle=replace(outcome.handle, value="unknown-code"))
    assert poll(lost)[0].cause is Cause.AUTH
