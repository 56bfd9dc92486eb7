"""SIGTERM: a worker stops claiming, gives back what has not crossed, lets the crossed end."""

import pytest

from standalone.programs import SOFT_SHUTDOWN_S
from tests.acceptance.agent import Agent
from tests.acceptance.scenes import (
    AFTER_CROSS,
    AFTER_EFFECT,
    AFTER_RENAME,
    BEFORE_CROSS,
    LOOKUP,
    begin,
    world_is_right,
)
from tests.acceptance.stack import Stack
from tests.sandbox.world import until

pytestmark = [pytest.mark.acceptance, pytest.mark.xdist_group("stack")]

CROSSED = (AFTER_CROSS, AFTER_EFFECT, AFTER_RENAME)


def test_a_drained_worker_loses_nothing_and_spends_nothing(stack: Stack, agent: Agent) -> None:
    play = begin(agent, (BEFORE_CROSS, LOOKUP, *CROSSED))
    for name in ("effects", "reads"):
        stack.children[name].ask()

    until(lambda: play[BEFORE_CROSS].at("released"), "what has not crossed is given back", 10)
    until(lambda: not stack.children["effects"].running, "the worker ends", SOFT_SHUTDOWN_S + 15)
    until(lambda: not stack.children["reads"].running, "the reads worker ends", 15)
    later = agent.submit("sandbox.lookup", {"name": "opening-hours"})
    assert agent.call(later)["state"] == "scheduled"
    stack.launch("effects", "reads")

    for scene, playing in play.items():
        call = playing.settled(60)
        assert (call["state"], call["attempts_used"]) == ("succeeded", 1), scene.name
        assert not {"fence_lost", "interrupted"} & set(playing.kinds()), scene.name
    world_is_right(stack, play)
