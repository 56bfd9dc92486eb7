"""A value in the input together with its JSON pointer, so that a refusal can name its place."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ledger.transcripts.neutral import Unreadable

KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
"""What JSON calls the values that Python holds."""


class Place:
    """One value and where it stands (RFC 6901). Each question raises Unreadable where it fails."""

    __slots__ = ("_name", "_within", "value")

    def __init__(self, value: Any, within: "Place | None" = None, name: str | int = "") -> None:
        self.value, self._within, self._name = value, within, name

    @property
    def pointer(self) -> str:
        """Where it stands: put together only when somebody asks, since few places are refused."""
        if self._within is None:
            return ""
        escaped = str(self._name).replace("~", "~0").replace("/", "~1")
        return f"{self._within.pointer}/{escaped}"

    def member(self, name: str) -> "Place":
        """The member of this name; null where there is none."""
        value = self.value
        return Place((value if type(value) is dict else self.mapping()).get(name), self, name)

    def items(self) -> Iterator["Place"]:
        """Each item of the list that stands here."""
        return (Place(item, self, at) for at, item in enumerate(self._of(list)))

    def mapping(self) -> Mapping[str, Any]:
        """The object that stands here."""
        value: Mapping[str, Any] = self._of(dict)
        return value

    def text(self) -> str:
        """The text that stands here."""
        return str(self._of(str))

    def maybe_text(self) -> str | None:
        """The text that stands here; None for null or nothing."""
        value = self.value
        return value if value is None or type(value) is str else self.text()

    def word(self, known: Sequence[str]) -> str:
        """The text that stands here, one of `known`."""
        if self.value not in known:
            raise self.refused(f"{_shown(self.value)} is none of {', '.join(known)}.")
        return str(self.value)

    def beside(self, *known: str) -> dict[str, Any]:
        """The members of this object other than those named."""
        members = self.mapping()
        if len(members) <= len(known) and members.keys() <= {*known}:
            return {}
        return {name: value for name, value in members.items() if name not in known}

    def refused(self, detail: str) -> Unreadable:
        return Unreadable(self.pointer, detail)

    def _of(self, kind: type) -> Any:
        if not isinstance(self.value, kind):
            found = KINDS.get(type(self.value), "something that is not JSON")
            raise self.refused(f"Here stands {found}; {KINDS[kind]} is needed.")
        return self.value


def listed(transcript: Any, *members: str) -> list[Place]:
    """The messages of a transcript: the list itself, or the first of `members` that its object has.

    Raises Unreadable.
    """
    if isinstance(transcript, list):
        return list(Place(transcript).items())
    if isinstance(transcript, dict):
        for name in members:
            if name in transcript:
                return list(Place(transcript).member(name).items())
    needed = " or ".join(f"`{name}`" for name in members)
    raise Unreadable("", f"A transcript is a list of messages, or an object with {needed}.")


def as_text(value: Any) -> str:
    """A JSON value as a text, compact and with its keys in their order: equal in, equal out."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shown(value: Any) -> str:
    return f"`{value}`" if isinstance(value, str) else KINDS.get(type(value), "this")
