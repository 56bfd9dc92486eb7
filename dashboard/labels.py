"""What stands on a badge: for each state and effect its words, its shape, its family, whose turn.

The six families are the only colours (console, section 19); a shape belongs to one word alone.
Data only: a page never decides by an `if` how a state looks.
"""

from dataclasses import dataclass

from ledger.vocabulary import SETTLED, CallState, Effect, spoken


@dataclass(frozen=True, slots=True)
class Label:
    """One badge. `shape` names a symbol of the sprite, `family` a class of the stylesheet."""

    word: str
    family: str
    turn: str = ""
    mark: str = "state"

    @property
    def text(self) -> str:
        """The word as a reader sees it."""
        return _EFFECT_TEXTS.get(self.word) or spoken(self.word)

    @property
    def shape(self) -> str:
        """The id of the symbol."""
        return f"{self.mark}-{self.word}"


def reading_mark(is_read: bool) -> str:
    """The id of the symbol beside what a model was shown: the eye only where it is read."""
    return "mark-shown" if is_read else "state-recorded"


_EFFECT_TEXTS = {"none": "no effect", "possible": "may have happened"}
_FAMILIES = {
    "waiting": (CallState.RECORDED, CallState.SCHEDULED, CallState.BACKING_OFF, CallState.PARKED),
    "machine": (CallState.RUNNING, CallState.INTERRUPTED),
    "person": (CallState.AMBIGUOUS, CallState.PAUSED),
    "well": (CallState.SUCCEEDED,),
    "failed": (CallState.FAILED, CallState.EXPIRED),
    "closed": (CallState.CANCELLED, CallState.REJECTED, CallState.ABANDONED),
}
_TURNS = {
    CallState.RECORDED: "the ledger",
    CallState.PAUSED: "a person",
    CallState.SCHEDULED: "a worker",
    CallState.RUNNING: "a worker",
    CallState.PARKED: "the outside",
    CallState.BACKING_OFF: "the ledger",
    CallState.INTERRUPTED: "recovery",
    CallState.AMBIGUOUS: "an operator",
} | dict.fromkeys(SETTLED, "nobody")

STATES: dict[str, Label] = {
    state: Label(state, family, _TURNS[state])
    for family, states in _FAMILIES.items()
    for state in states
}
"""The badge of each of the fourteen states, family by family."""

EFFECTS: dict[str, Label] = {
    effect: Label(effect, "person" if effect is Effect.POSSIBLE else "plain", mark="effect")
    for effect in Effect
}
"""The badge of each effect; only `possible` is coloured."""
