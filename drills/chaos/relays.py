"""What the talking agents of a chaos drill say: seeded, so that a seed is a script.

A relay is one conversation that goes through several sessions. In each of them the model replies
with calls, and what was said is compacted; then the next session takes over what is unresolved.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drills.chaos.intents import ARGUMENTS, MIX, drawn

SUBMITS_A_RELAY = 25
"""For so many submits of the load there is one relay."""
LEGS, REPLIES, CALLS = 3, 2, 3
TWICE, RIVALS = 0.25, 0.5
"""Shares of replies and compactions that are sent twice; of hand-offs that two sessions want."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of a reply. No other of its relay has the same tool and arguments."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply with calls in parallel, followed by a compaction; each of both sent twice or once."""

    calls: tuple[Asked, ...]
    twice: bool


@dataclass(frozen=True, slots=True)
class Leg:
    """What happens in one session; `rivals` tells whether two sessions want to take it over."""

    replies: tuple[Reply, ...]
    rivals: bool


@dataclass(frozen=True, slots=True)
class Relay:
    """One conversation. It begins once so many intents were begun as `at` says."""

    key: str
    at: int
    legs: tuple[Leg, ...]


def script(seed: int, submits: int) -> list[Relay]:
    """The relays of a seed, spread over the submits of its load."""
    dice = random.Random(f"relays {seed}")  # noqa: S311 a script, not a secret
    count = max(1, submits // SUBMITS_A_RELAY)
    return [_relay(dice, seed, number, number * submits // count) for number in range(count)]


def _relay(dice: random.Random, seed: int, number: int, at: int) -> Relay:
    key = f"relay-{seed}-{number}"
    calls = iter(_different(dice, key, LEGS * REPLIES * CALLS))

    def reply() -> Reply:
        return Reply(tuple(next(calls) for _ in range(CALLS)), dice.random() < TWICE)

    legs = (
        Leg(tuple(reply() for _ in range(REPLIES)), dice.random() < RIVALS) for _ in range(LEGS)
    )
    return Relay(key, at, tuple(legs))


def _different(dice: random.Random, key: str, count: int) -> list[Asked]:
    """So many calls of all classes; the same one twice would be answered from the ledger."""
    found: list[Asked] = []
    while len(found) < count:
        tool = drawn(dice, MIX)
        wanted = Asked(tool, ARGUMENTS[tool](dice, f"{key}-{len(found)}"))
        if wanted not in found:
            found.append(wanted)
    return found
