"""The broker is a doorbell: killed, flushed or hung, it costs a delay and never a call."""

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

import pytest

from drills.agent import Agent
from tests.acceptance.matrix import UNHARMED, outcomes_are
from tests.acceptance.scenes import begin, world_is_right
from tests.acceptance.stack import WORK, Stack
from tests.sandbox.world import until

pytestmark = pytest.mark.acceptance

SUBMIT_S = 5.0
"""A submit is answered from PostgreSQL; its publish is bounded (reliability, C8)."""


def killed(stack: Stack) -> Callable[[], None]:
    stack.valkey.kill()
    return stack.valkey.start


def flushed(stack: Stack) -> Callable[[], None]:
    stack.valkey.flush()
    return lambda: None


def hung(stack: Stack) -> Callable[[], None]:
    stack.freeze(stack.valkey.pid)
    return lambda: stack.thaw(stack.valkey.pid)


@pytest.mark.parametrize("fault", [killed, flushed, hung], ids=lambda fault: fault.__name__)
def test_a_broken_broker_costs_no_attempt_and_no_call(
    stack: Stack,
    agent: Agent,
    fault: Callable[[Stack], Callable[[], None]],
    measured: Callable[[str, float], None],
) -> None:
    play = begin(agent)
    repair = fault(stack)
    try:
        began = time.monotonic()
        meanwhile = [agent.submit(*asked) for asked in WORK.values()]
        answered_s = (time.monotonic() - began) / len(meanwhile)
    finally:
        repair()

    outcomes_are(play, UNHARMED)
    world_is_right(stack, play)
    for call_id in meanwhile:
        call = until(partial(_settled, agent, call_id), "it is worked off", 60)
        assert call["attempts_used"] == 1
    measured(f"a submit with the broker {fault.__name__}", answered_s)
    assert answered_s <= SUBMIT_S


def test_a_doorbell_that_was_flushed_away_is_rung_again(
    stack: Stack, agent: Agent, measured: Callable[[str, float], None]
) -> None:
    main = stack.children["effects"].pid
    stack.freeze(main)
    call_id = agent.submit(*WORK["effects"])
    until(lambda: stack.doorbells("effects") == 1, "the doorbell waits in the broker")
    stack.valkey.flush()
    stack.thaw(main)

    call = until(partial(_settled, agent, call_id), "it is worked off")
    measured("with its doorbell flushed away, from submit to settled", _seconds(agent, call_id))
    assert (call["state"], call["attempts_used"]) == ("succeeded", 1)


def _settled(agent: Agent, call_id: str) -> dict[str, object] | None:
    call = agent.call(call_id, wait_s=5)
    return call if call["settled"] else None


def _seconds(agent: Agent, call_id: str) -> float:
    events = agent.events(call_id)
    first, last = (datetime.fromisoformat(events[place]["at"]) for place in (0, -1))
    return (last - first).total_seconds()
