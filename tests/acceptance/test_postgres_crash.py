"""PostgreSQL dies in the middle: what was committed stands, what runs goes on within its lease."""

import http.client
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from drills.agent import Agent
from standalone import pids
from tests.acceptance.matrix import UNHARMED, WHEN_LOST, Outcome, outcomes_are
from tests.acceptance.scenes import EFFECTS, LOOKUP, begin, world_is_right
from tests.acceptance.stack import WORK, Stack
from tests.sandbox.world import until

pytestmark = pytest.mark.acceptance

RUNG_AGAIN_S = 2.0
"""When the watchdog rings first for a call that nobody has claimed (reliability, section 5)."""


def killed(stack: Stack) -> None:
    stack.postgres.kill()
    stack.postgres.start()


def restarted_immediately(stack: Stack) -> None:
    stack.postgres.restart("immediate")


@pytest.mark.parametrize("fault", [killed, restarted_immediately], ids=lambda fault: fault.__name__)
def test_a_crash_of_postgresql_that_ends_within_the_lease_costs_no_attempt(
    stack: Stack, fault: Callable[[Stack], None]
) -> None:
    play = begin(stack.agent("default"))
    fault(stack)

    outcomes_are(play, UNHARMED)
    world_is_right(stack, play)


def test_a_crash_that_outlasts_the_lease_leaves_each_call_to_the_rule_of_its_class(
    stack: Stack, agent: Agent
) -> None:
    play = begin(agent, (*EFFECTS, LOOKUP))
    holders = [agent.holder(play[scene].id) for scene in EFFECTS]
    stack.postgres.kill()
    try:
        until(lambda: not any(map(pids.children, holders)), "every fence has fired", 30)
    finally:
        stack.postgres.start()

    # The read has no fence: it ends by itself, and its result waits for the ledger.
    read = Outcome(effects=("none",), attempts=play[LOOKUP].settled(60)["attempts_used"])
    outcomes_are(play, WHEN_LOST | {LOOKUP: read})
    assert read.attempts <= 2
    world_is_right(stack, play)


def test_the_first_call_after_a_restart_waits_for_no_second_ring(
    stack: Stack, agent: Agent
) -> None:
    stack.postgres.restart("immediate")
    stack.until_ready()
    for asked in WORK.values():
        call_id = until(partial(_recorded, agent, asked), "the ledger records again")
        call = until(partial(_settled, agent, call_id), "it settles")
        times = {name: datetime.fromisoformat(at) for name, at in call["times"].items()}
        assert (times["started"] - times["published"]).total_seconds() < RUNG_AGAIN_S


def test_a_submit_while_postgresql_is_away_is_told_to_come_back_and_records_once(
    stack: Stack, agent: Agent
) -> None:
    key = {"Idempotency-Key": uuid4().hex}
    tool, arguments = WORK["effects"]
    wanted: dict[str, Any] = {"tool": tool, "arguments": arguments}
    stack.postgres.kill()
    try:
        code, problem = agent.ask("POST", "/api/v1/calls", wanted, **key)
        page, page_problem = agent.ask("GET", "/", Cookie=f"clearhouse_login={uuid4().hex}")
    finally:
        stack.postgres.start()

    assert code == http.client.SERVICE_UNAVAILABLE, problem
    assert page == http.client.SERVICE_UNAVAILABLE, page_problem
    first = until(lambda: _submitted(agent, wanted, key), "the ledger records again")
    again = agent.post("/api/v1/calls", wanted, **key)
    assert (again["id"], again["replayed"]) == (first["id"], True)


def _recorded(agent: Agent, asked: tuple[str, dict[str, Any]]) -> str:
    with suppress(OSError):
        return agent.submit(*asked)
    return ""


def _settled(agent: Agent, call_id: str) -> Any:
    with suppress(OSError):
        call = agent.call(call_id, wait_s=5)
        return call if call["settled"] else None
    return None


def _submitted(agent: Agent, wanted: dict[str, Any], key: dict[str, str]) -> Any:
    with suppress(OSError):
        return agent.post("/api/v1/calls", wanted, **key)
    return None
