"""Messages of content blocks with a system text beside them: what these formats have in common."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ledger.transcripts.neutral import Entry, Part, Result, Role
from ledger.transcripts.shapes.places import Place


def system_of(transcript: Any, parts: Callable[[Place], Iterable[Part]]) -> Iterator[Entry]:
    """The entry of the system text, where there is any."""
    if isinstance(transcript, dict) and transcript.get("system") is not None:
        place = Place(transcript).member("system")
        yield Entry(Role.SYSTEM, tuple(parts(place)), raw=place.value)


def speaker(role: Role, parts: Iterable[Part]) -> Role:
    """Who speaks: a user's message that holds results is the tools'."""
    answers = role is Role.USER and any(isinstance(part, Result) for part in parts)
    return Role.TOOL if answers else role


def written(
    messages: Sequence[Any], system: Mapping[str, Any], around: Mapping[str, Any] | None
) -> Any:
    """The list of messages; an object where there is a system text or something around it."""
    if around is None and not system:
        return messages
    return {**(around or {}), **system, "messages": messages}
