"""The user interrupts a turn, and then something dies: the turn closes, and nothing runs twice."""

import pytest

from drills.agent import Agent
from tests.acceptance.scenes import AFTER_CROSS, BEFORE_CROSS, LOOKUP, Play, begin
from tests.acceptance.stack import Stack
from tests.sandbox.world import until

pytestmark = pytest.mark.acceptance

GRACE_S = 3.0


def a_turn(agent: Agent) -> tuple[str, Play]:
    """A turn with a read, a mail before its boundary and one past it, all under way."""
    session = agent.post("/api/v1/sessions", {})["id"]
    turns = f"/api/v1/sessions/{session}/turns"
    turn = agent.post(turns, {"key": "q1"})["id"]
    play = begin(agent, (LOOKUP, BEFORE_CROSS, AFTER_CROSS), session=session, turn=turn)
    return f"{turns}/{turn}", play


@pytest.mark.parametrize("who", ["web", "watchdog", "reads"])
def test_an_interrupted_turn_closes_whoever_dies_in_its_grace(
    stack: Stack, agent: Agent, who: str
) -> None:
    turn, play = a_turn(agent)
    found = agent.post(f"{turn}/interruption", {"grace_s": GRACE_S})
    stack.kill(who)
    stack.launch(who)
    stack.until_ready()

    assert found["left"] == [play[AFTER_CROSS].id]
    assert set(found["asked_to_stop"]) == {play[LOOKUP].id, play[BEFORE_CROSS].id}
    until(lambda: agent.get(turn)["closed_as"] == "interrupted", "the turn closes", GRACE_S + 20)
    for scene in (LOOKUP, BEFORE_CROSS):
        assert play[scene].settled()["state"] == "cancelled", scene.name
    assert play[AFTER_CROSS].settled(60)["state"] == "succeeded"
    assert [stack.mails(play[scene].word) for scene in (BEFORE_CROSS, AFTER_CROSS)] == [0, 1]
    following = agent.post(turn.rsplit("/", 1)[0], {"key": "q2"})
    assert following["number"] == 2
