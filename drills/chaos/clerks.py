"""The people of a chaos drill: they decide what the machine could not, as people do.

Each looks at the world and decides on what is there; sometimes slowly, sometimes by pressing
twice, sometimes two of them at once. A denial that is locked is asked again later.
"""

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from drills.operator import LOCKED, Operator, Said
from drills.stack import Stack

CLERKS = 3
LOOK_EVERY_S = 0.5
SLOW_S = 2.0
SLOW, TWICE, TWO, CLOSES = 0.1, 0.1, 0.1, 0.2
"""Shares of decisions that are slow, pressed twice, made by two at once; of denials that close."""
REPEATS = 3
"""How often a call is repeated before its denial closes it: some payments break every time."""


class Clerks:
    """Decide every ambiguous call of the workspace until told to stop."""

    def __init__(self, stack: Stack, seed: int) -> None:
        self._stack = stack
        self._dice = random.Random(f"clerks {seed}")  # noqa: S311 a script, not a secret
        self.said: Counter[str] = Counter()
        self.broke: list[str] = []
        self._repeats: Counter[str] = Counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="clerks")

    def start(self) -> None:
        """Sign in while everything is whole, then begin in a thread of their own."""
        self._people = [Operator(self._stack.person(), self._looked) for _ in range(2)]
        self._thread.start()

    def stop(self) -> None:
        """End after the decisions under way."""
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        person, other = self._people
        with ThreadPoolExecutor(CLERKS) as pool:
            while not self._stop.wait(LOOK_EVERY_S):
                try:
                    due = person.open_incidents()
                    list(pool.map(lambda each: self._decide(person, other, each), due))
                except OSError:
                    continue  # the server is away: ask again
                except Exception as error:
                    self.broke.append(f"{type(error).__name__}: {error}")
                    return

    def _looked(self, tool: str, call: str) -> int:
        return self._stack.world.seen_of(tool, call)

    def _decide(self, person: Operator, other: Operator, incident: dict[str, Any]) -> None:
        call = incident["call"]  # None: it is about a session
        tool = self._tool_if_ambiguous(call) if call else ""
        if not tool:
            return
        if self._dice.random() < SLOW:
            time.sleep(SLOW_S)
        over = self._repeats[call] >= REPEATS
        then = "close" if self._dice.random() < CLOSES or over else "repeat"
        key = uuid4().hex
        said = _honestly(person, call, tool, self._looked(tool, call), then, key)
        self._repeats[call] += said.accepted
        self._count(said)
        if self._dice.random() < TWICE:
            self._count(_honestly(person, call, tool, self._looked(tool, call), then, key))
        elif self._dice.random() < TWO:
            self._count(_honestly(other, call, tool, self._looked(tool, call), then, uuid4().hex))

    def _tool_if_ambiguous(self, call: str) -> str:
        found = self._stack.agent().call(call)
        return str(found["tool"]) if found["state"] == "ambiguous" else ""

    def _count(self, said: Said) -> None:
        self.said[said.word or "accepted"] += 1
        if said.code >= 500:
            raise ConnectionError(f"The server answered {said.code}: ask again.")
        if said.word and said.word not in EXPECTED:
            self.broke.append(f"A decision was answered {said.code} {said.word}: {said.body}")


EXPECTED = frozenset({
    LOCKED, "version_conflict", "not_eligible", "no_open_incident", "already_settled",
    "already_decided", "not_pending",
})  # fmt: skip
"""Refusals that an honest decision may meet: too early, too late, or another was faster."""


def _honestly(person: Operator, call: str, tool: str, found: int, then: str, key: str) -> Said:
    if found:
        return person.decide(call, tool, answer="happened", key=key)
    return person.deny(call, tool, then=then, key=key)
