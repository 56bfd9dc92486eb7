"""Agents at work: so many intents under way at a time, each submitted until it is accepted.

A server that is away, or asks for patience, is asked again under the same key: that is what the
key is for. What was answered is kept, for the checker.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from drills.agent import Agent, Refused
from drills.chaos.intents import Intent

UNDER_WAY = 32
RACERS = 50
AGAIN_S = 0.3
ACCEPT_LIMIT_S = 120.0
FOLLOW_LIMIT_S = 20.0
PATH = "/api/v1/calls"
TOO_MANY = 429


@dataclass(slots=True)
class Asked:
    """What came of one intent's submits: every call id that was answered, and refusals."""

    intent: Intent
    calls: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    reuse_accepted: bool = False


class Load:
    """The agents of one drill. `run` returns when every intent was accepted or given up."""

    def __init__(self, agent: Agent, intents: Sequence[Intent]) -> None:
        self._agent, self._intents = agent, intents
        self.asked = [Asked(intent) for intent in intents]
        self.begun = 0
        self._count = threading.Lock()

    def start(self) -> threading.Thread:
        """Begin in a thread of its own, which ends with the last intent."""
        thread = threading.Thread(target=self.run, name="load")
        thread.start()
        return thread

    def run(self) -> None:
        """Submit all intents, at most so many under way at once."""
        with ThreadPoolExecutor(UNDER_WAY) as pool:
            list(pool.map(self._ask, self.asked))

    def _ask(self, asked: Asked) -> None:
        with self._count:
            self.begun += 1
        _WAYS[asked.intent.how](self._agent, asked)
        self._follow(asked)

    def _follow(self, asked: Asked) -> None:
        """Stay with the call until it is settled or a person's turn, as an agent does."""
        ends = time.monotonic() + FOLLOW_LIMIT_S
        for call in asked.calls:
            while time.monotonic() < ends:
                try:
                    found = self._agent.call(call, wait_s=5)
                except OSError:
                    time.sleep(AGAIN_S)
                    continue
                if found["settled"] or found["state"] == "ambiguous":
                    break


def _wanted(intent: Intent) -> dict[str, Any]:
    return {"tool": intent.tool, "arguments": dict(intent.arguments)}


def _once(agent: Agent, asked: Asked) -> None:
    """Submit until it is accepted or refused for good."""
    ends = time.monotonic() + ACCEPT_LIMIT_S
    while time.monotonic() < ends:
        try:
            said = agent.post(PATH, _wanted(asked.intent), **{"Idempotency-Key": asked.intent.key})
        except OSError:
            time.sleep(AGAIN_S)
            continue
        except Refused as refusal:
            if refusal.code == TOO_MANY:
                time.sleep(AGAIN_S)
                continue
            asked.refused.append(str(refusal.problem.get("code", refusal.code)))
            return
        asked.calls.add(said["id"])
        return
    asked.refused.append("never_accepted")


def _twice(agent: Agent, asked: Asked) -> None:
    _once(agent, asked)
    _once(agent, asked)


def _vanishing(agent: Agent, asked: Asked) -> None:
    """Hang up before the answer; then come back, not knowing whether it was recorded."""
    try:
        agent.vanish(PATH, _wanted(asked.intent), **{"Idempotency-Key": asked.intent.key})
    except OSError:
        pass  # whether it arrived is exactly what nobody knows
    _once(agent, asked)


def _reusing(agent: Agent, asked: Asked) -> None:
    """Use the key once more for something else: it must be refused."""
    _once(agent, asked)
    other = {"tool": "sandbox.lookup", "arguments": {"name": f"other than {asked.intent.key}"}}
    try:
        agent.post(PATH, other, **{"Idempotency-Key": asked.intent.key})
    except (OSError, Refused):
        return
    asked.reuse_accepted = True


def _racing(agent: Agent, asked: Asked) -> None:
    """Fifty equal submits from one starting line."""
    line = threading.Barrier(RACERS)
    racers = [Asked(asked.intent) for _ in range(RACERS)]

    def run(racer: Asked) -> None:
        line.wait()
        _once(agent, racer)

    threads = [threading.Thread(target=run, args=(racer,)) for racer in racers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked.calls.update(*(racer.calls for racer in racers))
    asked.refused += [refusal for racer in racers for refusal in racer.refused]


_WAYS = {
    "once": _once,
    "twice": _twice,
    "vanishing": _vanishing,
    "reusing": _reusing,
    "racing": _racing,
}
