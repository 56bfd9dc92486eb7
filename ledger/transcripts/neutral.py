"""The neutral form: what every format is read into and laid out from.

An entry is one message as its format groups them; its parts stand in the order received. Nothing
here judges: a result without call, a call without id, a text in an odd place are all kept as they
came. What a part means to one provider alone stays opaque and travels unchanged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

FAILED = frozenset({"error", "aborted"})
"""Stop reasons of a reply that broke off, so that its last call may be half-written."""


class Role(StrEnum):
    """Who speaks. A message that holds results is of the role `tool`, whatever its format says:
    a user message with a result and a text is an entry of the role `tool` with both parts. Results
    in a reply stay in an entry of the role `assistant`.
    """

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class OpaqueKind(StrEnum):
    """What an opaque part is for."""

    REASONING = "reasoning"
    """Thinking, signatures, encrypted reasoning: goes with the calls that it led to (T19)."""

    PROVIDER_TOOL = "provider_tool"
    """A call that the provider executed itself, or its result: never closed or moved (T8)."""

    MEDIA = "media"
    """An image, a file, audio."""

    OTHER = "other"
    """Anything else that a format may hold."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words of a person or a model. `opaque` are its other members (a signature, a cache mark)."""

    text: str
    opaque: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that only `format` understands: its body is the JSON as received.

    `format` is the shape's `name` for reasoning, which is one provider's own, and the shape's
    `form` for everything else, which every provider of that form can hold.
    """

    kind: OpaqueKind
    format: str
    body: Any


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a reply. `arguments` is None where the text does not hold an object.

    `unparsed` is the text as received where arguments came as text; both are None where there was
    no argument field at all. A format without ids gives each call one by its place in the step,
    and its result the same. `ledger_id` is our own call
    id where the ledger made this entry. `opaque` are members that stand on the call itself and
    must come back with it (a thought signature, an item id), by name.
    """

    id: str | None
    name: str
    arguments: Mapping[str, Any] | None
    unparsed: str | None = None
    kind: str = "function"
    ledger_id: str = ""
    opaque: Mapping[str, Any] = field(default_factory=dict)

    def renamed(self, id: str) -> "Call":
        """The same call under another id (T21)."""
        return Call(
            id, self.name, self.arguments, self.unparsed, self.kind, self.ledger_id, self.opaque
        )


@dataclass(frozen=True, slots=True)
class Result:
    """An answer to the call with the id `answers`; `name` as the format repeats it, or empty.

    `parts` are texts, and media where the format has any. `delivery` is the kind by which the
    ledger shows it (`real`, `replayed`, `notice`, …), empty where a transcript brought it.
    """

    answers: str | None
    parts: tuple[Text | Opaque, ...] = ()
    name: str = ""
    is_error: bool = False
    kind: str = "function"
    ledger_id: str = ""
    delivery: str = ""
    opaque: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Its texts as one."""
        return _text_of(self.parts)

    def answering(self, id: str) -> "Result":
        """The same answer to a call with another id (T21); `replace` costs three times as much."""
        return Result(
            id, self.parts, self.name, self.is_error, self.kind, self.ledger_id, self.delivery,
            self.opaque,
        )  # fmt: skip


Part = Text | Opaque | Call | Result


@dataclass(frozen=True, slots=True)
class Entry:
    """One message. `at` is its place in its own list, from 0; -1 where we wrote it.

    `raw` is the entry as received, to be given out again where nothing touched it. `failed`: its
    stop reason says that the reply broke off. `screen_only`: for people, invisible to pairing (T9).
    `opaque` are members of the message beside its role and content (an item id, a name, a state).
    """

    role: Role
    parts: tuple[Part, ...]
    at: int = -1
    raw: Any = None
    stop_reason: str = ""
    failed: bool = False
    screen_only: bool = False
    opaque: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple([part for part in self.parts if isinstance(part, Call)])

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple([part for part in self.parts if isinstance(part, Result)])

    @property
    def text(self) -> str:
        """Its texts as one."""
        return _text_of(self.parts)


def _text_of(parts: tuple[Part, ...]) -> str:
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return "".join([part.text for part in parts if isinstance(part, Text)])


class Unreadable(Exception):
    """A transcript that is not of the format named: refused with its place, never half-read (T24).

    `pointer` is a JSON pointer into the input (RFC 6901).
    """

    def __init__(self, pointer: str, detail: str) -> None:
        super().__init__(f"{pointer or '/'}: {detail}")
        self.pointer, self.detail = pointer, detail
