"""The promise at default settings: kill -9, another worker alive, two seconds."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from drills.agent import Agent
from standalone import programs
from tests.acceptance.matrix import NOTICED_S
from tests.acceptance.scenes import AFTER_CROSS, BEFORE_CROSS, LOOKUP, Playing, Scene, begin
from tests.acceptance.stack import SWIFT, Stack
from tests.sandbox.world import until

pytestmark = pytest.mark.acceptance

PAUSE_S = 3  # an attempt that runs again holds a slot for so long, and there are few of them
SECOND = {"effects": "effects-2", "reads": "reads-2"}


@pytest.fixture
def pair(stack: Stack) -> Iterator[Stack]:
    """Two workers of each kind, and a watchdog whose settings nobody has touched."""
    stack.kill("watchdog")
    stack.add(programs.watchdog())
    for program in (programs.effects(), programs.reads()):
        name = SECOND[program.name]
        command = tuple(word.replace(f"{program.name}@", f"{name}@") for word in program.command)
        stack.add(replace(program, name=name, command=command))
    stack.until_ready()
    yield stack
    stack.remove(*SECOND.values())
    stack.kill("watchdog")
    stack.add(programs.watchdog(), SWIFT)


def kill_the_holder(stack: Stack, playing: Playing) -> float:
    """Kill the process that holds the attempt: a pool child, or a worker of threads."""
    at = time.time()
    os.kill(playing.agent.holder(playing.id), signal.SIGKILL)
    return at


def kill_its_main(stack: Stack, playing: Playing) -> float:
    """Kill the main of the pool child that holds the attempt."""
    return stack.kill(stack.main_of(playing.agent.holder(playing.id)))


FAULTS: dict[str, tuple[Scene, Callable[[Stack, Playing], float]]] = {
    "a read, its worker": (LOOKUP, kill_the_holder),
    "before the boundary, its pool child": (BEFORE_CROSS, kill_the_holder),
    "before the boundary, its worker main": (BEFORE_CROSS, kill_its_main),
    "after the boundary, its worker main": (AFTER_CROSS, kill_its_main),
}


def test_a_call_runs_again_or_is_flagged_within_two_seconds_of_kill_9(
    pair: Stack, measured: Callable[[str, float], None]
) -> None:
    agent: Agent = pair.agent("default")
    for what, (scene, fault) in FAULTS.items():
        short = _in_short(scene)
        playing = begin(agent, (short,))[short]
        fault_at = fault(pair, playing)
        noticed_at = until(partial(_noticed, playing), "the call runs again or is flagged")
        measured(f"kill -9 ({what}) to running again or flagged", noticed_at - fault_at)
        assert noticed_at - fault_at <= NOTICED_S, what
        pair.revive()
        until(partial(_frees_its_slot, playing), "the attempt ends")


def _in_short(scene: Scene) -> Scene:
    """The scene with a pause that is just long enough to be met."""

    def arguments(word: str) -> dict[str, Any]:
        said = scene.arguments(word)
        pauses = {name: PAUSE_S for name in said if name.startswith(("pause", "slow"))}
        return said | pauses

    return replace(scene, arguments=arguments)


def _frees_its_slot(playing: Playing) -> bool:
    return bool(playing.agent.call(playing.id)["state"] != "running")


def _noticed(playing: Playing) -> float | None:
    return playing.at("interrupted") or playing.at("started", fence=2)
