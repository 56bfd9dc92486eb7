"""Messages of content blocks, each an object with one member: Bedrock's Converse.

Source: the API reference of Converse (Message, ContentBlock, ToolResultBlock).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.transcripts import arguments
from ledger.transcripts.neutral import (
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
from ledger.transcripts.shapes.places import Place, as_text, listed

LIST = ("messages",)
TOOLS = ("toolUse", "toolResult")
KINDS = {
    "reasoningContent": OpaqueKind.REASONING,
    "image": OpaqueKind.MEDIA,
    "document": OpaqueKind.MEDIA,
    "video": OpaqueKind.MEDIA,
    "audio": OpaqueKind.MEDIA,
}
ROLES = {Role.USER: "user", Role.TOOL: "user", Role.ASSISTANT: "assistant", Role.SYSTEM: "user"}


@dataclass(frozen=True, slots=True)
class Bedrock:
    """Reads and writes `messages` with their `system`."""

    name: str = "bedrock"
    form: str = "converse"
    itemised: bool = False
    names_results: bool = False

    def read(self, transcript: Any) -> list[Entry]:
        """One entry for each message, headed by one for the system blocks where there are any."""
        messages = [self._entry(at, place) for at, place in enumerate(listed(transcript, *LIST))]
        return [*headed.system_of(transcript, self._parts), *messages]

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """A list of messages; an object where there is a system text or something around it."""
        system = [entry for entry in entries if entry.role is Role.SYSTEM]
        messages = [self._message(entry) for entry in entries if entry.role is not Role.SYSTEM]
        beside = {"system": self._written_system(system)} if system else {}
        return headed.written(messages, beside, around)

    def _entry(self, at: int, place: Place) -> Entry:
        role = Role(place.member("role").word(("user", "assistant")))
        parts = tuple(self._parts(place.member("content")))
        opaque = place.beside("role", "content")
        return Entry(headed.speaker(role, parts), parts, at=at, raw=place.value, opaque=opaque)

    def _parts(self, content: Place) -> Iterator[Part]:
        if content.value is not None:
            yield from (self._part(block) for block in content.items())

    def _part(self, block: Place) -> Part:
        body = block.mapping()
        if "text" in body:
            return Text(block.member("text").text(), block.beside("text"))
        if "json" in body:
            return Text(as_text(body["json"]), body)
        # A tool that the provider runs itself bears its type (ToolUseBlock, `server_tool_use`).
        used = next((block.member(name) for name in TOOLS if name in body), None)
        own = used is not None and "type" in used.mapping()
        if "toolUse" in body and not own:
            return _call(block.member("toolUse"))
        if "toolResult" in body and not own:
            return self._result(block.member("toolResult"))
        kind = next((KINDS[name] for name in body if name in KINDS), OpaqueKind.OTHER)
        owner = self.name if kind is OpaqueKind.REASONING else self.form
        return Opaque(OpaqueKind.PROVIDER_TOOL if own else kind, owner, body)

    def _result(self, result: Place) -> Result:
        parts = tuple(self._parts(result.member("content")))
        return Result(
            answers=result.member("toolUseId").maybe_text(),
            parts=tuple(part for part in parts if isinstance(part, Text | Opaque)),
            is_error=result.member("status").value == "error",
            opaque=result.beside("toolUseId", "content", "status"),
        )

    def _written_system(self, system: Sequence[Entry]) -> Any:
        if len(system) == 1 and system[0].raw is not None:
            return system[0].raw
        return [block for entry in system for part in entry.parts for block in self._blocks(part)]

    def _message(self, entry: Entry) -> Any:
        if entry.raw is not None:
            return entry.raw
        blocks = [block for part in entry.parts for block in self._blocks(part)]
        return {"role": ROLES[entry.role], "content": blocks, **entry.opaque}

    def _blocks(self, part: Part) -> Iterator[dict[str, Any]]:
        match part:
            case Text(text, opaque) if "json" in opaque and as_text(opaque["json"]) == text:
                yield dict(opaque)
            case Text(text, opaque):
                yield {"text": text, **{name: opaque[name] for name in opaque if name != "json"}}
            case Call():
                used = {
                    "toolUseId": part.id,
                    "name": part.name,
                    "input": dict(part.arguments or {}),
                }
                yield {"toolUse": used | dict(part.opaque)}
            case Result():
                yield {"toolResult": self._result_body(part)}
            case Opaque(OpaqueKind.MEDIA):
                body = carried(part, self.form, _picture)
                yield body if body is not None else {"text": LEFT_OUT}
            case Opaque() if part.format in (self.name, self.form):
                yield part.body

    def _result_body(self, result: Result) -> dict[str, Any]:
        content = [block for part in result.parts for block in self._blocks(part)]
        body: dict[str, Any] = {"toolUseId": result.answers, "content": content}
        return body | ({"status": "error"} if result.is_error else {}) | dict(result.opaque)


def _call(used: Place) -> Call:
    given = used.member("input")
    asked, unparsed = (None, None) if given.value is None else arguments.received(given.value)
    return Call(
        id=used.member("toolUseId").maybe_text(),
        name=used.member("name").maybe_text() or "",
        arguments=asked,
        unparsed=unparsed,
        opaque=used.beside("toolUseId", "name", "input"),
    )


def _picture(picture: Picture) -> dict[str, Any] | None:
    """Converse takes no address outside its own storage."""
    if picture.url:
        return None
    kind = picture.media_type.removeprefix("image/").replace("jpg", "jpeg")
    return {"image": {"format": kind, "source": {"bytes": picture.base64}}}
