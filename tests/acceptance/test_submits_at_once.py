"""Fifty equal submits in one instant are one call, over HTTP and by different connections."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from drills.agent import Agent
from tests.acceptance.stack import Stack

pytestmark = pytest.mark.acceptance

AT_ONCE = 50


def submit_together(agent: Agent, bodies: list[dict[str, Any]], key: str) -> list[tuple[int, Any]]:
    """Submit from as many threads as there are bodies; all leave the gate together."""
    gate = threading.Barrier(len(bodies))

    def one(body: dict[str, Any]) -> tuple[int, Any]:
        gate.wait(timeout=30)
        return agent.ask("POST", "/api/v1/calls", body, **{"Idempotency-Key": key})

    with ThreadPoolExecutor(len(bodies)) as threads:
        return list(threads.map(one, bodies))


def mail(subject: str, text: str = "Hello.") -> dict[str, Any]:
    arguments = {"to": "ada@example.com", "subject": subject, "body": text}
    return {"tool": "sandbox.send_mail", "arguments": arguments}


def test_fifty_equal_submits_at_once_are_one_call_and_one_mail(stack: Stack, agent: Agent) -> None:
    key = uuid4().hex
    answers = submit_together(agent, [mail(key)] * AT_ONCE, key)

    assert sorted({code for code, _ in answers}) == [200, 201]
    assert [code for code, _ in answers].count(201) == 1
    (call_id,) = {call["id"] for _, call in answers}
    assert agent.call(call_id, wait_s=20)["state"] == "succeeded"
    assert stack.mails(key) == 1


def test_the_same_key_with_other_arguments_is_refused_however_close_the_race(
    stack: Stack, agent: Agent
) -> None:
    key = uuid4().hex
    bodies = [mail(key, f"Text {number % 2}.") for number in range(AT_ONCE)]
    answers = submit_together(agent, bodies, key)

    codes = [code for code, _ in answers]
    assert (codes.count(201), codes.count(200), codes.count(409)) == (1, 24, 25)
    (call_id,) = {call["id"] for code, call in answers if code < 300}
    assert agent.call(call_id, wait_s=20)["state"] == "succeeded"
    assert stack.mails(key) == 1
