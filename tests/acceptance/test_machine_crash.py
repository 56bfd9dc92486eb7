"""Every process of the installation dies at once: what was accepted settles or is flagged."""

import time
from collections.abc import Callable

import pytest

from drills.agent import Agent
from tests.acceptance.matrix import WHEN_LOST, noticed_after_s, outcomes_are
from tests.acceptance.scenes import EFFECTS, begin, world_is_right
from tests.acceptance.stack import WORK, Stack

pytestmark = pytest.mark.acceptance


def test_a_crash_of_the_whole_machine_loses_no_accepted_call(
    stack: Stack, agent: Agent, measured: Callable[[str, float], None]
) -> None:
    play = begin(agent)
    accepted = [agent.submit(*asked) for asked in WORK.values()]
    stack.kill_everything()
    stack.start_servers()
    alive_at = time.time()
    stack.revive()

    outcomes_are(play, WHEN_LOST)
    world_is_right(stack, play)
    for call_id in accepted:
        assert agent.call(call_id, wait_s=20)["state"] == "succeeded"
    slowest = max(noticed_after_s(play[scene], alive_at) for scene in EFFECTS)
    measured("from PostgreSQL's return to the last call flagged or running again", slowest)
