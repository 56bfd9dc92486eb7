"""What the agents of a chaos drill ask for: seeded, so that a seed is a script.

An intent has a key of its own, so whatever happens to its submits it is at most one call.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SIDE_EFFECTS = ("sandbox.send_mail", "sandbox.pay")
MIX: Mapping[str, int] = {
    "sandbox.send_mail": 34,
    "sandbox.pay": 20,
    "sandbox.write_artifact": 18,
    "sandbox.tally": 12,
    "sandbox.lookup": 8,
    "sandbox.render": 4,
    "sandbox.device_login": 4,
}
HOW: Mapping[str, int] = {"once": 80, "twice": 8, "vanishing": 6, "reusing": 4, "racing": 2}
"""How it is submitted: plainly; twice in a row; hanging up without the answer and asking again;
once more with other arguments under the same key; and by fifty at once."""

PAY_FAULTS: Mapping[str, int] = {
    "none": 80, "drop_after": 8, "error_after": 5, "drop_before": 4, "declined": 3,
}  # fmt: skip
PAUSES_S = (0.0, 0.0, 0.05, 0.2)
ENTRIES = ("opening-hours", "address", "returns", "no-such-entry")
LINES = (1, 40, 400)


@dataclass(frozen=True, slots=True)
class Intent:
    """One thing that an agent wants done once."""

    number: int
    key: str
    tool: str
    arguments: Mapping[str, Any]
    how: str


def script(seed: int, count: int) -> list[Intent]:
    """The intents of a seed, in the order in which they are submitted."""
    dice = random.Random(f"intents {seed}")  # noqa: S311 a script, not a secret
    return [_intent(dice, seed, number) for number in range(count)]


def _intent(dice: random.Random, seed: int, number: int) -> Intent:
    tool, how = drawn(dice, MIX), drawn(dice, HOW)
    key = f"chaos-{seed}-{number}"
    return Intent(number, key, tool, ARGUMENTS[tool](dice, key), how)


def drawn(dice: random.Random, weights: Mapping[str, int]) -> str:
    """One of the names, as often as its weight says."""
    return dice.choices(list(weights), weights=list(weights.values()))[0]


def _mail(dice: random.Random, key: str) -> dict[str, Any]:
    pauses = {f"pause_{end}_s": dice.choice(PAUSES_S) for end in ("after_cross", "after_effect")}
    return {"to": "ada@example.com", "subject": key, "body": "Hello.", **pauses}


def _payment(dice: random.Random, key: str) -> dict[str, Any]:
    return {
        "payee": key,
        "amount_cents": dice.randint(1, 99_999),
        "currency": dice.choice(("EUR", "GBP", "USD")),
        "fault": drawn(dice, PAY_FAULTS),
        "pause_after_cross_s": dice.choice(PAUSES_S),
    }


def _artifact(dice: random.Random, key: str) -> dict[str, Any]:
    return {
        "path": f"chaos/{key}.txt",
        "text": f"{key}\n" * dice.choice(LINES),
        "half": dice.random() < 0.1,
        "pause_before_s": dice.choice(PAUSES_S),
    }


def _render(dice: random.Random, key: str) -> dict[str, Any]:
    return {"frames": dice.randint(2, 8), "seconds": dice.choice((0.5, 1.0, 2.0))}


ARGUMENTS: Mapping[str, Callable[[random.Random, str], dict[str, Any]]] = {
    "sandbox.send_mail": _mail,
    "sandbox.pay": _payment,
    "sandbox.write_artifact": _artifact,
    "sandbox.tally": lambda dice, key: {},
    "sandbox.lookup": lambda dice, key: {"name": dice.choice(ENTRIES)},
    "sandbox.render": _render,
    "sandbox.device_login": lambda dice, key: {"expires_in_s": 3, "interval_s": 1},
}
