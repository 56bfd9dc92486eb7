"""SIGTERM: a worker stops claiming, gives back what has not crossed, lets the crossed end."""

import pytest

from drills.agent import Agent
from standalone import programs
from standalone.programs import SOFT_SHUTDOWN_S
from tests.acceptance.scenes import (
    AFTER_CROSS,
    AFTER_EFFECT,
    AFTER_RENAME,
    BEFORE_CROSS,
    LOOKUP,
    begin,
    world_is_right,
)
from tests.acceptance.stack import EFFECTS as EFFECTS_OPTIONS
from tests.acceptance.stack import SWIFT, Stack
from tests.sandbox.world import until

pytestmark = pytest.mark.acceptance

LIMIT_S = SOFT_SHUTDOWN_S + 15
CROSSED = (AFTER_CROSS, AFTER_EFFECT, AFTER_RENAME)


def test_a_drained_worker_loses_nothing_and_spends_nothing(stack: Stack, agent: Agent) -> None:
    play = begin(agent, (BEFORE_CROSS, LOOKUP, *CROSSED))
    for name in ("effects", "reads"):
        stack.children[name].ask()

    until(lambda: play[BEFORE_CROSS].at("released"), "what has not crossed is given back", 10)
    stack.add(programs.worker("effects-2", EFFECTS_OPTIONS), SWIFT)
    for name in ("effects", "reads"):
        until(lambda name=name: not stack.children[name].running, f"{name} ends", LIMIT_S)
    stack.launch("effects", "reads")

    for scene, playing in play.items():
        call = playing.settled(60)
        assert (call["state"], call["attempts_used"]) == ("succeeded", 1), scene.name
        assert not {"fence_lost", "interrupted"} & set(playing.kinds()), scene.name
    world_is_right(stack, play)
    stack.remove("effects-2")
