"""Which faults fall when: a script drawn from a seed, as data.

A fault at a point is an order for whoever passes it next; every other fault falls at once on
what is chosen when it is due. `at` counts submits: a slow machine gets the same script.
"""

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drills.chaos.intents import SIDE_EFFECTS, drawn

BETWEEN_BOUNDARY_AND_EFFECT = ("after_crossing", "before_effect")
EXPOSED = (*BETWEEN_BOUNDARY_AND_EFFECT, "after_effect", "before_result_write")
"""The points at which an effect is possible and its result is not recorded."""

OF_SESSIONS = tuple(
    f"{when}_{deed}" for deed in ("compaction", "handoff") for when in ("before", "during", "after")
)
"""The points around and inside a compaction and an accepted hand-off."""

KINDS: Mapping[str, int] = {
    # At a named point, by whoever passes it.
    "kill at before_start": 4,
    "kill at before_crossing": 5,
    "kill at after_crossing": 16,
    "kill at before_effect": 14,
    "kill at after_effect": 9,
    "kill at before_result_write": 11,
    "kill at after_write": 3,
    "kill at before_decision": 2,
    "kill at after_decision": 2,
    "kill at before_record": 1,
    "kill at before_answer": 1,
    "kill at before_delivery": 1,
    "kill at before_compaction": 1,
    "kill at during_compaction": 4,
    "kill at after_compaction": 2,
    "kill at before_handoff": 1,
    "kill at during_handoff": 4,
    "kill at after_handoff": 2,
    "stop at before_crossing": 2,
    "stop at after_crossing": 3,
    "stop at before_effect": 2,
    "stop at before_result_write": 4,
    "stop at during_compaction": 2,
    "stop at during_handoff": 2,
    # At a random moment, whatever it meets.
    "kill a child": 8,
    "stop a child's tree": 5,
    "kill effects": 3,
    "kill reads": 2,
    "kill watchdog": 3,
    "kill web": 1,
    "stop effects": 1,
    "stop reads": 2,
    "stop watchdog": 1,
    "flush the broker": 4,
    "kill the broker": 2,
    "restart PostgreSQL": 1,
    "crash PostgreSQL": 1,
    "terminate backends": 3,
    "cut the link": 3,
    "black-hole the link": 2,
    "lose the answer of a commit": 6,
    "lose a commit": 4,
}
"""How often each kind is drawn."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: which, after how many submits, and a number in [0, 1) that chooses its victim."""

    number: int
    kind: str
    at: int
    choice: float

    @property
    def point(self) -> str:
        """The point at which it waits for somebody; "" for a fault that falls at once."""
        return self.kind.partition(" at ")[2]

    @property
    def tools(self) -> tuple[str, ...]:
        """Whom an order is for: between boundary and record, those that must not be repeated."""
        return SIDE_EFFECTS if self.point in EXPOSED else ()

    def to_json(self) -> dict[str, Any]:
        """The line of the script."""
        return asdict(self)


def script(seed: int, count: int, *, submits: int) -> list[Fault]:
    """The faults of a seed, spread over the submits of its load."""
    dice = random.Random(f"faults {seed}")  # noqa: S311 a script, not a secret
    return [
        Fault(number, drawn(dice, KINDS), number * submits // count, dice.random())
        for number in range(count)
    ]
