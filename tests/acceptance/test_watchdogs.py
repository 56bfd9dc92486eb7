"""The watchdog may die, come back, or be two: recovery waits for it, and is done once."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from drills.agent import Agent
from standalone import programs
from tests.acceptance.matrix import WHEN_LOST, outcomes_are
from tests.acceptance.scenes import (
    AFTER_CROSS,
    AFTER_EFFECT,
    AFTER_RENAME,
    BEFORE_CROSS,
    BEFORE_HANDLE,
    begin,
    world_is_right,
)
from tests.acceptance.stack import SWIFT, Stack

pytestmark = pytest.mark.acceptance

CAST = (AFTER_CROSS, AFTER_EFFECT, AFTER_RENAME, BEFORE_CROSS, BEFORE_HANDLE)


def test_a_watchdog_that_was_dead_recovers_what_was_lost_meanwhile(
    stack: Stack, agent: Agent
) -> None:
    play = begin(agent, CAST)
    stack.kill("watchdog")
    for playing in play.values():
        os.kill(agent.holder(playing.id), signal.SIGKILL)
    assert all(agent.call(playing.id)["state"] == "running" for playing in play.values())
    stack.launch("watchdog")

    outcomes_are(play, WHEN_LOST)
    world_is_right(stack, play)


@pytest.fixture
def two_watchdogs(stack: Stack) -> Iterator[Stack]:
    stack.add(replace(programs.watchdog(), name="watchdog-2"), SWIFT)
    yield stack
    stack.remove("watchdog-2")


def test_two_watchdogs_take_each_fence_once(two_watchdogs: Stack, agent: Agent) -> None:
    play = begin(agent, CAST)
    for playing in play.values():
        os.kill(agent.holder(playing.id), signal.SIGKILL)

    outcomes_are(play, WHEN_LOST)
    world_is_right(two_watchdogs, play)
    for playing in play.values():
        kinds = playing.kinds()
        assert kinds.count("fence_lost") == 1
        assert kinds.count("proven_dead") <= 1
