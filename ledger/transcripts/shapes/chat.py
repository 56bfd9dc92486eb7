"""The chat form: a list of messages, calls under `tool_calls`, each result a `tool` message.

Members that we do not know stay with their message as one opaque part, and come back on it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

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
    Unreadable,
)
from ledger.transcripts.shapes.pictures import LEFT_OUT, Picture, carried

FORM = "chat"
ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
KNOWN = {"role", "content", "tool_calls"}
KNOWN_OF_RESULTS = {"role", "content", "tool_call_id", "name"}
MEDIA = ("image_url", "input_audio", "file")


@dataclass(frozen=True, slots=True)
class ChatShape:
    """One provider's chat messages; `reasoning` is the member that holds its reasoning, if any.

    `thoughts` is the type of the parts of the content that hold it, where a provider does so.
    `custom_calls`: a call that carries free text is sent as such, not as a function's. The name
    of a tool is repeated on its result only where `names_results`: OpenAI's types have none there.
    """

    name: str = "openai-chat"
    reasoning: str = ""
    thoughts: str = ""
    custom_calls: bool = False
    form: str = FORM
    itemised: bool = False
    names_results: bool = False

    def read(self, transcript: Any) -> list[Entry]:
        """Each message an entry. Raises Unreadable."""
        pointer, messages = _messages(transcript)
        return [self._entry(message, at, f"{pointer}/{at}") for at, message in enumerate(messages)]

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """The list of messages, or the request around it with its other members as they were."""
        messages = [self._message(entry) for entry in entries]
        return messages if around is None else {**around, "messages": messages}

    def _entry(self, message: Any, at: int, pointer: str) -> Entry:
        if not isinstance(message, Mapping):
            raise Unreadable(pointer, "a message is an object with a role")
        role = ROLES.get(str(message.get("role")))
        if role is None:
            raise Unreadable(f"{pointer}/role", f"the role is one of {', '.join(ROLES)}")
        stop = str(message.get("finish_reason") or message.get("stop_reason") or "")
        parts = _result(message, pointer) if role is Role.TOOL else self._parts(message, pointer)
        return Entry(
            role=role,
            parts=tuple(parts),
            at=at,
            raw=message,
            stop_reason=stop,
            failed=stop in FAILED,
            opaque={} if role is Role.TOOL else self._members(message),
        )

    def _parts(self, message: Mapping[str, Any], pointer: str) -> Iterator[Part]:
        yield from self._reasoning(message)
        for part in _content(message.get("content"), f"{pointer}/content"):
            yield self._thought(part.body) if self._is_thought(part) else part
        yield from _calls(message.get("tool_calls"), f"{pointer}/tool_calls")

    def _members(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """What stands on the message beside its content: put back on it as it was."""
        members = {k: v for k, v in message.items() if k not in KNOWN and k != self.reasoning}
        if message.get("role") == "developer":
            members["role"] = "developer"
        if message.get("tool_calls") == []:
            members["tool_calls"] = []
        return members

    def _reasoning(self, message: Mapping[str, Any]) -> Iterator[Part]:
        if self.reasoning and message.get(self.reasoning) is not None:
            yield Opaque(OpaqueKind.REASONING, self.name, {self.reasoning: message[self.reasoning]})

    def _is_thought(self, part: Part) -> TypeGuard[Opaque]:
        """Whether this is reasoning that stands in the content."""
        return (
            isinstance(part, Opaque)
            and self.thoughts != ""
            and isinstance(part.body, Mapping)
            and part.body.get("type") == self.thoughts
        )

    def _thought(self, body: Any) -> Opaque:
        return Opaque(OpaqueKind.REASONING, self.name, body)

    def _message(self, entry: Entry) -> Any:
        if entry.raw is not None:
            return entry.raw
        if entry.role is Role.TOOL:
            return self._result_message(entry.results[0])
        members: dict[str, Any] = {"role": entry.role.value}
        members["content"] = self._written(entry)
        if entry.calls:
            members["tool_calls"] = [self._written_call(call) for call in entry.calls]
        for part in entry.parts:
            if self._is_beside(part):
                members |= part.body
        return members | dict(entry.opaque)

    def _result_message(self, result: Result) -> dict[str, Any]:
        message = {
            "role": "tool",
            "tool_call_id": result.answers,
            "content": _written_parts(result.parts) or "",
        }
        named = {"name": result.name} if self.names_results and result.name else {}
        return {**message, **named, **result.opaque}

    def _is_beside(self, part: Part) -> TypeGuard[Opaque]:
        """Whether this is reasoning of ours that stands beside the content."""
        if not isinstance(part, Opaque) or part.kind is not OpaqueKind.REASONING:
            return False
        return part.format == self.name and not self._is_thought(part)

    def _written_call(self, call: Call) -> dict[str, Any]:
        if call.kind == "custom" and self.custom_calls:
            kind, inner = "custom", {"name": call.name, "input": _free_text(call)}
        else:
            kind, inner = "function", {"name": call.name, "arguments": _arguments_text(call)}
        return {"id": call.id, "type": kind, kind: inner, **call.opaque}

    def _written(self, entry: Entry) -> Any:
        content = [part for part in entry.parts if self._is_content(part)]
        return _written_parts(content) or (None if entry.calls else "")

    def _is_content(self, part: Part) -> TypeGuard[Text | Opaque]:
        if isinstance(part, Opaque) and part.kind is OpaqueKind.REASONING:
            return part.format == self.name and self._is_thought(part)
        return isinstance(part, Text | Opaque)


def _messages(transcript: Any) -> tuple[str, Sequence[Any]]:
    pointer = ""
    if isinstance(transcript, Mapping):
        pointer, transcript = "/messages", transcript.get("messages")
    if not isinstance(transcript, list):
        raise Unreadable(pointer, "the messages are a list, or an object with `messages`")
    return pointer, transcript


def _content(content: Any, pointer: str) -> Iterator[Text | Opaque]:
    """Texts and media; an empty string says as much as null, and is no part."""
    if isinstance(content, str):
        if content:
            yield Text(content)
    elif isinstance(content, list):
        for number, part in enumerate(content):
            yield _content_part(part, f"{pointer}/{number}")
    elif content is not None:
        raise Unreadable(pointer, "content is text, a list of parts, or null")


def _content_part(part: Any, pointer: str) -> Text | Opaque:
    if not isinstance(part, Mapping):
        raise Unreadable(pointer, "a part of the content is an object with a type")
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return Text(part["text"], {k: v for k, v in part.items() if k not in ("type", "text")})
    kind = OpaqueKind.MEDIA if part.get("type") in MEDIA else OpaqueKind.OTHER
    return Opaque(kind, FORM, part)


def _calls(calls: Any, pointer: str) -> Iterator[Call]:
    if calls is None:
        return
    if not isinstance(calls, list):
        raise Unreadable(pointer, "tool_calls is a list")
    for number, call in enumerate(calls):
        if not isinstance(call, Mapping):
            raise Unreadable(f"{pointer}/{number}", "a call is an object")
        yield _call(call, f"{pointer}/{number}")


def _call(call: Mapping[str, Any], pointer: str) -> Call:
    kind = "custom" if call.get("type") == "custom" else "function"
    inner = call.get(kind)
    inner = inner if isinstance(inner, Mapping) else {}
    asked, unparsed = _asked(kind, inner)
    return Call(
        id=_text_or_none(call.get("id")),
        name=_text_or_none(inner.get("name")) or "",
        arguments=asked,
        unparsed=unparsed,
        kind=kind,
        opaque={k: v for k, v in call.items() if k not in ("id", "type", kind)},
    )


def _asked(kind: str, inner: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str | None]:
    if kind == "custom":  # free text: the object that carries it is ours
        return ({"input": inner["input"]}, None) if "input" in inner else (None, None)
    return arguments.received(inner["arguments"]) if "arguments" in inner else (None, None)


def _result(message: Mapping[str, Any], pointer: str) -> Iterator[Part]:
    content = tuple(_content(message.get("content"), f"{pointer}/content"))
    yield Result(
        answers=_text_or_none(message.get("tool_call_id")),
        parts=content,
        name=_text_or_none(message.get("name")) or "",
        opaque={k: v for k, v in message.items() if k not in KNOWN_OF_RESULTS},
    )


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _written_parts(parts: Sequence[Text | Opaque]) -> Any:
    if len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].opaque:
        return parts[0].text
    return [body for part in parts if (body := _written_part(part)) is not None]


def _written_part(part: Text | Opaque) -> Any:
    """The part of a content; media of another form as an image, or as a text in its place."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text, **part.opaque}
    if part.kind is OpaqueKind.MEDIA:
        body = carried(part, FORM, _picture)
        return body if body is not None else {"type": "text", "text": LEFT_OUT}
    return part.body if part.format == FORM or part.kind is OpaqueKind.REASONING else None


def _picture(picture: Picture) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": picture.address}}


def _free_text(call: Call) -> Any:
    return (call.arguments or {}).get("input", call.unparsed or "")


def _arguments_text(call: Call) -> str:
    if call.unparsed is not None:
        return call.unparsed
    return arguments.written(call.arguments or {})
