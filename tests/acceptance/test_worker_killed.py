"""kill -9 of what executes, in the middle of every kind of call: the matrix decides."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from drills.agent import Agent
from tests.acceptance.matrix import (
    NOTICED_S,
    UNHARMED,
    WHEN_LOST,
    noticed_after_s,
    outcomes_are,
)
from tests.acceptance.scenes import (
    ALL,
    BEFORE_CROSS,
    EFFECTS,
    LOGIN,
    LOOKUP,
    PARKED,
    Play,
    begin,
    world_is_right,
)
from tests.acceptance.stack import Stack

pytestmark = pytest.mark.acceptance

Measured = Callable[[str, float], None]
Fault = Callable[[Stack, Play], float]
FLAGGED = (*(scene for scene in EFFECTS if scene is not BEFORE_CROSS),)


def kill_pool_children(stack: Stack, play: Play) -> float:
    """Kill the holder of every running effect; the main lives and forks others."""
    holders = [play[scene].agent.holder(play[scene].id) for scene in EFFECTS]
    at = time.time()
    for pid in holders:
        os.kill(pid, signal.SIGKILL)
    return at


def kill_worker_main(stack: Stack, play: Play) -> float:
    """Kill the main, which takes its children along, and start it again."""
    at = stack.kill("effects")
    stack.launch("effects")
    return at


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(kill_pool_children, id="pool children"),
        pytest.param(kill_worker_main, id="worker main"),
    ],
)
def test_a_dead_worker_leaves_each_call_to_the_rule_of_its_class(
    stack: Stack, agent: Agent, fault: Fault, measured: Measured
) -> None:
    play = begin(agent)
    fault_at = fault(stack, play)

    outcomes_are(play, WHEN_LOST | {LOOKUP: UNHARMED[LOOKUP]})
    world_is_right(stack, play)
    for scene in FLAGGED:
        seconds = noticed_after_s(play[scene], fault_at)
        measured(f"{scene.name}, from kill -9 to flagged", seconds)
        assert seconds <= NOTICED_S
    measured(
        f"{BEFORE_CROSS.name}, from kill -9 to running again",
        noticed_after_s(play[BEFORE_CROSS], fault_at),
    )


def test_a_killed_reads_worker_costs_a_read_and_no_handle(stack: Stack, agent: Agent) -> None:
    play = begin(agent, (PARKED, LOGIN, LOOKUP))
    stack.kill("reads")
    stack.launch("reads")

    outcomes_are(play, WHEN_LOST)
    world_is_right(stack, play)


def test_every_scene_has_a_cell_in_the_matrix() -> None:
    assert set(WHEN_LOST) == set(UNHARMED) == set(ALL)
