"""The legend of a timeline: what each mark means that a picture can hold. Data only; no Django."""

from collections.abc import Set
from typing import NamedTuple


class Key(NamedTuple):
    """A line of the legend: what one of these marks means, drawn as boxes or as a sign."""

    text: str
    marks: frozenset[str]
    boxes: tuple[str, ...] = ()
    sign: str = ""


def _box_key(text: str, *marks: str, ground: str = "") -> Key:
    return Key(text, frozenset(marks), boxes=tuple(filter(None, (ground, marks[0]))))


def _sign_key(text: str, kind: str) -> Key:
    return Key(text, frozenset({kind}), sign=kind)


LEGEND = (
    _box_key("waiting for a worker", "wait scheduled", "wait recorded"),
    _box_key("backing off or parked", "wait backing_off", "wait parked"),
    _box_key(
        "waiting for recovery or a person", "wait interrupted", "wait ambiguous", "wait paused"
    ),
    _box_key("running, proved", "ran"),
    _box_key("may have happened", "may", ground="ran"),
    _box_key("nothing proved any more", "may unproved"),
    _sign_key("boundary", "crossed"),
    _sign_key("proof of life", "beat"),
    _sign_key("outside asked", "ask"),
    _sign_key("outcome written", "written"),
    _sign_key("late result", "late"),
    _sign_key("lost", "lost"),
    _sign_key("proven dead", "dead"),
    _sign_key("end of the window", "narrowed"),
    _sign_key("cancellation asked for", "cancel"),
    _sign_key("compaction", "cut"),
    _sign_key("read", "read"),
)
"""Every mark that a picture can hold, in the order of its legend."""


def of(drawn: Set[str]) -> list[Key]:
    """The lines for these marks, in the legend's order."""
    return [key for key in LEGEND if drawn & key.marks]
