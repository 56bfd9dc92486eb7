"""A sign-in that nobody completes: it closes by itself and never holds its turn (R38)."""

from collections.abc import Callable
from datetime import datetime

import pytest

from drills.agent import Agent
from tests.acceptance.matrix import CLOSED
from tests.acceptance.scenes import LOGIN, Playing
from tests.acceptance.stack import Stack
from tests.sandbox.world import until

pytestmark = pytest.mark.acceptance

EXPIRES_IN_S = 6.0
SLACK_S = 2.0
"""One poll interval and one sweep (reliability, section 7, test 5)."""


def test_a_sign_in_closes_at_its_bound_while_its_turn_goes_on_and_ends(
    stack: Stack, agent: Agent, measured: Callable[[str, float], None]
) -> None:
    session = agent.post("/api/v1/sessions", {"label": "sign-in"})["id"]
    turn = agent.post(f"/api/v1/sessions/{session}/turns", {"key": "one"})["id"]
    place = {"session": session, "turn": turn}
    asked = {"expires_in_s": EXPIRES_IN_S, "interval_s": 1}
    login_id = agent.submit(LOGIN.tool, asked, tool_call_id="login", **place)
    login = Playing(LOGIN, "", login_id, agent)
    until(login.is_in_its_middle, "the sign-in waits for a person")

    read = agent.submit("sandbox.lookup", {"name": "opening-hours"}, tool_call_id="read", **place)
    assert agent.call(read, wait_s=5)["state"] == "succeeded"
    assert agent.call(login.id)["state"] == "parked"

    CLOSED.is_of(login)
    end = f"/api/v1/sessions/{session}/turns/{turn}/end"
    assert agent.post(end, {"closed_as": "answered"})["open"] is False
    lived_s = _instant(login, -1) - _instant(login, 0)
    measured(f"life of a sign-in that expires in {EXPIRES_IN_S:g} s", lived_s)
    assert abs(lived_s - EXPIRES_IN_S) <= SLACK_S


def _instant(playing: Playing, place: int) -> float:
    moved = [each for each in playing.agent.events(playing.id) if each["kind"] != "proven_dead"]
    return datetime.fromisoformat(moved[place]["at"]).timestamp()
