"""Messages of content blocks, with the system text beside them: Anthropic Messages.

Calls and results are blocks; results stand in a user message. Source: the Messages API reference.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.transcripts import arguments
from ledger.transcripts.neutral import (
    FAILED,
    Call,
    Entry,
    Opaque,
    OpaqueKind,
    Part,
    Result,
    Role,
    Text,
)
from ledger.transcripts.shapes import headed
from ledger.transcripts.shapes.pictures import LEFT_OUT, Picture, carried
from ledger.transcripts.shapes.places import Place, listed

REASONING = frozenset({"thinking", "redacted_thinking"})
MEDIA = frozenset({"image", "document"})
ROLES = {Role.USER: "user", Role.TOOL: "user", Role.ASSISTANT: "assistant", Role.SYSTEM: "system"}


@dataclass(frozen=True, slots=True)
class Anthropic:
    """Reads and writes `messages` with their `system`; `name` is whose opaque parts are its own."""

    name: str = "anthropic"
    form: str = "blocks"
    itemised: bool = False
    names_results: bool = False

    def read(self, transcript: Any) -> list[Entry]:
        """One entry for each message, headed by one for the system text where there is any."""
        messages = [self._entry(at, place) for at, place in enumerate(listed(transcript, *LIST))]
        return [*headed.system_of(transcript, self._parts), *messages]

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """A list of messages; an object where there is a system text or something around it."""
        beside = [entry for entry in entries if _is_beside(entry)]
        messages = [self._message(entry) for entry in entries if not _is_beside(entry)]
        system = {"system": self._written_system(beside)} if beside else {}
        return headed.written(messages, system, around)

    def _entry(self, at: int, place: Place) -> Entry:
        role = Role(place.member("role").word(("user", "assistant", "system")))
        parts = tuple(self._parts(place.member("content")))
        stopped = place.member("stop_reason").maybe_text() or ""
        return Entry(
            headed.speaker(role, parts),
            parts,
            at=at,
            raw=place.value,
            stop_reason=stopped,
            failed=stopped in FAILED,
            opaque=place.beside("role", "content"),
        )

    def _parts(self, content: Place) -> Iterator[Part]:
        if isinstance(content.value, str):
            yield Text(content.value)
        elif content.value is not None:
            yield from (self._part(block) for block in content.items())

    def _part(self, block: Place) -> Part:
        kind = block.member("type").text()
        match kind:
            case "text":
                return Text(block.member("text").text(), block.beside("type", "text"))
            case "tool_use":
                return _call(block)
            case "tool_result":
                return self._result(block)
        opaque = _opaque_kind(kind)
        owner = self.name if opaque is OpaqueKind.REASONING else self.form
        return Opaque(opaque, owner, block.value)

    def _result(self, block: Place) -> Result:
        parts = tuple(self._parts(block.member("content")))
        return Result(
            answers=block.member("tool_use_id").maybe_text(),
            parts=tuple(part for part in parts if isinstance(part, Text | Opaque)),
            is_error=block.member("is_error").value is True,
            opaque=block.beside("type", "tool_use_id", "content", "is_error"),
        )

    def _written_system(self, beside: Sequence[Entry]) -> Any:
        if len(beside) == 1 and beside[0].raw is not None:
            return beside[0].raw
        return self._content([part for entry in beside for part in entry.parts])

    def _message(self, entry: Entry) -> Any:
        if entry.raw is not None:
            return entry.raw
        return {"role": ROLES[entry.role], "content": self._content(entry.parts), **entry.opaque}

    def _content(self, parts: Sequence[Part]) -> Any:
        if len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].opaque:
            return parts[0].text
        return [block for part in parts for block in self._blocks(part)]

    def _blocks(self, part: Part) -> Iterator[dict[str, Any]]:
        match part:
            case Text(text, opaque):
                yield {"type": "text", "text": text, **opaque}
            case Call():
                block = {"type": "tool_use", "id": part.id, "name": part.name}
                yield {**block, "input": dict(part.arguments or {}), **part.opaque}
            case Result():
                yield self._result_block(part)
            case Opaque(OpaqueKind.MEDIA):
                body = carried(part, self.form, _picture)
                yield body if body is not None else {"type": "text", "text": LEFT_OUT}
            case Opaque() if part.format in (self.name, self.form):
                yield part.body

    def _result_block(self, result: Result) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.answers}
        if result.parts:
            block["content"] = self._content(result.parts)
        return block | ({"is_error": True} if result.is_error else {}) | dict(result.opaque)


LIST = ("messages",)


def _is_beside(entry: Entry) -> bool:
    """Whether this is the system text beside the messages, not one that came among them."""
    return entry.role is Role.SYSTEM and not isinstance(entry.raw, dict)


def _call(block: Place) -> Call:
    given = block.member("input")
    asked, unparsed = (None, None) if given.value is None else arguments.received(given.value)
    return Call(
        id=block.member("id").maybe_text(),
        name=block.member("name").maybe_text() or "",
        arguments=asked,
        unparsed=unparsed,
        opaque=block.beside("type", "id", "name", "input"),
    )


def _opaque_kind(kind: str) -> OpaqueKind:
    """By the block's type; a result that is none of ours is the provider's own."""
    if kind in REASONING:
        return OpaqueKind.REASONING
    if kind in MEDIA:
        return OpaqueKind.MEDIA
    if kind in ("server_tool_use", "mcp_tool_use") or kind.endswith("_tool_result"):
        return OpaqueKind.PROVIDER_TOOL
    return OpaqueKind.OTHER


def _picture(picture: Picture) -> dict[str, Any]:
    if picture.url:
        return {"type": "image", "source": {"type": "url", "url": picture.url}}
    source = {"type": "base64", "media_type": picture.media_type, "data": picture.base64}
    return {"type": "image", "source": source}
