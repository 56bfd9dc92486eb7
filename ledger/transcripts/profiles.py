"""One provider's rules as data. Reader, layout and validator ask the profile, never its name.

A file in `ledger/transcripts/providers/` with a `PROFILE` is a provider; nothing else lists them.
One with a `FORMAT` alone is a shape that is read and never sent.
Source: transcripts, part a.
"""

import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from ledger.transcripts.neutral import Entry

CAP_BYTES = 256 * 1024
ANYBODY = "*"
"""Among `reasoning_formats`: the profile keeps the reasoning of every provider."""


class Shape(Protocol):
    """How the messages of a format are written down: `messages`, `input`, `contents`.

    `form` is the way of writing that several providers may share (`chat`): an entry of the same
    form goes out again as it came. `itemised`: each part is an entry of its own, and a reply is a
    run of them. `names_results`: a result repeats the name of its tool.
    """

    @property
    def name(self) -> str: ...

    @property
    def form(self) -> str: ...

    @property
    def itemised(self) -> bool: ...

    @property
    def names_results(self) -> bool: ...

    def read(self, transcript: Any) -> list[Entry]:
        """The entries as the format groups them, all of them. Raises Unreadable with a pointer.

        `transcript` is the list itself, or an object that holds it as its provider's request does
        (`messages`, `input`, `contents`, beside `system` and whatever else, which is kept).
        """

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """The body of laid-out entries; an entry with `raw` is given out as it came.

        `around` are the other members of the object that the transcript was read from.
        """


class ResultsIn(StrEnum):
    """Where the results of a step stand."""

    EACH = "each"
    """Each a message of its own, directly behind the reply."""

    TOGETHER = "together"
    """All in the one message behind the reply, before any text."""

    ITEMS = "items"
    """Each an item somewhere behind its call."""


class Reasoning(StrEnum):
    """What the provider wants of the reasoning that led to calls (T19)."""

    NONE = "none"
    """It is not sent back."""

    OPTIONAL = "optional"
    """It is sent where we have it."""

    WITH_CALLS = "with_calls"
    """A step with calls is refused without it, once any step of the request has it."""

    IN_LOOP = "in_loop"
    """As `with_calls`, but only the steps since the user last spoke are looked at."""

    OPENING = "opening"
    """As `in_loop`, but only the first of these steps has to begin with it."""


@dataclass(frozen=True, slots=True)
class Ids:
    """Which ids a provider takes: a whole match of `pattern`, unique within `scope`.

    `longest` is the length that the provider takes, 0 for any, `length` the one we cut to; `scope`
    is `step` or `request`.
    """

    pattern: str = r"[A-Za-z0-9_-]{1,40}"
    longest: int = 40
    alphabet: str = "abcdefghijklmnopqrstuvwxyz0123456789"
    prefix: str = "c_"
    length: int = 24
    scope: str = "request"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a provider answers to a broken rule.

    `text` has the placeholders {at} (the message as its provider counts), {next} and {previous}
    (those beside it), {part}, {id}, {ids}, {n} and {m} (what was wanted, what was there), {role}
    and {before} (the roles of a message and of the one before it), {kind} (the type of a block or
    an item) and {family} (what its id begins with). `certainty` is V, E or S as in transcripts,
    part a. A text with {id} is given once for each id, one without once for each message. `older`
    are other words for the same fault, kept to recognise it by.
    """

    text: str
    certainty: str = "E"
    older: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One provider: its shape, its layout, its rules.

    `refusals` by code: a code that is not there is no rule of this provider.
    """

    name: str
    shape: Shape
    refusals: Mapping[str, Refusal]
    results_in: ResultsIn = ResultsIn.EACH
    result_role: str = "tool"
    text_beside_results: bool = True
    roles_alternate: bool = False
    first_is_user: bool = True
    last_not_assistant: bool = False
    ids: Ids = field(default_factory=Ids)
    names: str = r"[A-Za-z0-9_-]{1,64}"
    reasoning: Reasoning = Reasoning.OPTIONAL
    reasoning_formats: frozenset[str] = frozenset()  # beside the shape's own name
    signatures: frozenset[str] = frozenset()  # members of a call that are its reasoning
    result_order_free: bool = False
    arguments_as_text: bool | None = None  # whether arguments are sent as text; None: as they came
    system_apart: bool = False  # the system text is no message, and is not counted as one
    screen_only: bool = False  # holds entries that are for people only
    calls_follow_user: bool = False  # a reply with calls follows the user or results, no reply
    tools_key: str = "tools"  # where the request declares its tools
    schema_at: tuple[str, ...] = ()  # where a declared tool has its schema, if it needs one
    families: Mapping[str, str] = field(default_factory=dict)  # kind of item: prefix of its own id
    reply_after_results: bool = False  # a user message may not follow results: a reply goes between
    system_leads: bool = False  # system texts stand first; one further on is told as the user's
    cap_bytes: int = CAP_BYTES


class UnknownProfile(LookupError):
    """No provider or format of this name; `names` are those there are."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(name)
        self.names = sorted(known)


@cache
def profiles() -> Mapping[str, Profile]:
    """Every provider by name, found by its file."""
    found = (module.PROFILE for module in _modules() if hasattr(module, "PROFILE"))
    return {profile.name: profile for profile in sorted(found, key=lambda each: each.name)}


@cache
def formats() -> Mapping[str, Shape]:
    """Every shape that a transcript may be read from: the providers', and those never sent."""
    alone = (module.FORMAT for module in _modules() if hasattr(module, "FORMAT"))
    shapes = {name: each.shape for name, each in profiles().items()}
    return dict(sorted((shapes | {shape.name: shape for shape in alone}).items()))


def profile(name: str) -> Profile:
    """The provider of this name. Raises UnknownProfile."""
    try:
        return profiles()[name]
    except KeyError:
        raise UnknownProfile(name, profiles()) from None


def shape(name: str) -> Shape:
    """The shape of this format. Raises UnknownProfile."""
    try:
        return formats()[name]
    except KeyError:
        raise UnknownProfile(name, formats()) from None


def _modules() -> list[ModuleType]:
    package = import_module("ledger.transcripts.providers")
    names = (found.name for found in pkgutil.iter_modules(package.__path__))
    return [import_module(f"{package.__name__}.{name}") for name in names]
