"""One message for each line, in our own words: the reference for adapters.

`{"role": "assistant", "text": "…", "calls": [{"id", "name", "arguments"}], "stop_reason": "…"}`
and `{"role": "tool", "answers": "…", "name": "…", "text": "…", "is_error": true}`. A message that
does not fit into these members says its parts one by one under `parts`, each an object with the
single member `text`, `call`, `result` or `opaque`. Source: transcripts, part d.
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
from ledger.transcripts.shapes.places import Place, listed

CALL = ("id", "name", "arguments", "kind")
RESULT = ("answers", "name", "text", "parts", "is_error", "kind")
MESSAGE = ("role", "text", "parts", "calls", "stop_reason", "failed", "screen_only", *RESULT)


@dataclass(frozen=True, slots=True)
class Neutral:
    """Reads and writes a list of messages, or an object with `messages`."""

    name: str = "neutral"
    form: str = "neutral"
    itemised: bool = False
    names_results: bool = True

    def read(self, transcript: Any) -> list[Entry]:
        """One entry for each message."""
        return [_entry(at, place) for at, place in enumerate(listed(transcript, "messages"))]

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """The list of messages; within its object where there is something around it."""
        messages = [entry.raw if entry.raw is not None else _message(entry) for entry in entries]
        return messages if around is None else {**around, "messages": messages}


def _entry(at: int, place: Place) -> Entry:
    role = Role(place.member("role").word([role.value for role in Role]))
    stopped = place.member("stop_reason").maybe_text() or ""
    return Entry(
        role,
        tuple(_parts(place, role)),
        at=at,
        raw=place.value,
        stop_reason=stopped,
        failed=stopped in FAILED or place.member("failed").value is True,
        screen_only=place.member("screen_only").value is True,
        opaque=place.beside(*MESSAGE),
    )


def _parts(place: Place, role: Role) -> Iterator[Part]:
    if place.member("parts").value is not None:
        yield from (_part(part) for part in place.member("parts").items())
        return
    if role is Role.TOOL:
        yield _result(place, {})
        return
    if text := place.member("text").maybe_text():
        yield Text(text)
    if place.member("calls").value is not None:
        yield from (_call(call) for call in place.member("calls").items())


def _part(part: Place) -> Part:
    body = part.mapping()
    if "text" in body:
        return Text(part.member("text").text(), part.beside("text"))
    if "call" in body:
        return _call(part.member("call"))
    if "result" in body:
        result = part.member("result")
        return _result(result, result.beside(*RESULT))
    return _opaque(part.member("opaque"))


def _opaque(place: Place) -> Opaque:
    kind = OpaqueKind(place.member("kind").word([kind.value for kind in OpaqueKind]))
    return Opaque(kind, place.member("format").text(), place.member("body").value)


def _call(call: Place) -> Call:
    given = call.member("arguments")
    asked, unparsed = (None, None) if given.value is None else arguments.received(given.value)
    return Call(
        id=call.member("id").maybe_text(),
        name=call.member("name").maybe_text() or "",
        arguments=asked,
        unparsed=unparsed,
        kind=call.member("kind").maybe_text() or "function",
        opaque=call.beside(*CALL),
    )


def _result(place: Place, opaque: Mapping[str, Any]) -> Result:
    parts = place.member("parts")
    texts = [] if parts.value is None else [_part(part) for part in parts.items()]
    if words := place.member("text").maybe_text():
        texts = [Text(words)]
    return Result(
        answers=place.member("answers").maybe_text(),
        parts=tuple(part for part in texts if isinstance(part, Text | Opaque)),
        name=place.member("name").maybe_text() or "",
        is_error=place.member("is_error").value is True,
        kind=place.member("kind").maybe_text() or "function",
        opaque=opaque,
    )


def _message(entry: Entry) -> dict[str, Any]:
    message: dict[str, Any] = {"role": entry.role.value, **_content(entry)}
    if entry.stop_reason:
        message["stop_reason"] = entry.stop_reason
    if entry.failed and entry.stop_reason not in FAILED:
        message["failed"] = True
    if entry.screen_only:
        message["screen_only"] = True
    return message | dict(entry.opaque)


def _content(entry: Entry) -> dict[str, Any]:
    """The short members where they say all there is; the parts one by one where they do not."""
    parts = entry.parts
    if entry.role is Role.TOOL and len(parts) == 1 and isinstance(parts[0], Result):
        if not parts[0].opaque and _is_plain(parts[0].parts):
            return _written_result(parts[0])
    said = 1 if parts and isinstance(parts[0], Text) else 0
    calls = parts[said:]
    if entry.role is Role.TOOL or not _is_plain(parts[:said]) or len(calls) != len(entry.calls):
        return {"parts": [_written(part) for part in parts]}
    text = {"text": entry.text} if said or not calls else {}
    return text | ({"calls": [_written_call(call) for call in entry.calls]} if calls else {})


def _is_plain(parts: Sequence[Part]) -> bool:
    return len(parts) <= 1 and all(isinstance(part, Text) and not part.opaque for part in parts)


def _written(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, opaque):
            return {"text": text, **opaque}
        case Call():
            return {"call": _written_call(part)}
        case Result():
            return {"result": _written_result(part) | dict(part.opaque)}
        case Opaque(kind, format, body):
            return {"opaque": {"kind": kind.value, "format": format, "body": body}}


def _written_call(call: Call) -> dict[str, Any]:
    asked = call.arguments if call.arguments is not None else call.unparsed
    body: dict[str, Any] = {"id": call.id, "name": call.name}
    if asked is not None:
        body["arguments"] = asked
    return body | ({} if call.kind == "function" else {"kind": call.kind}) | dict(call.opaque)


def _written_result(result: Result) -> dict[str, Any]:
    body: dict[str, Any] = {"answers": result.answers, "name": result.name}
    if _is_plain(result.parts):
        body["text"] = result.text
    else:
        body["parts"] = [_written(part) for part in result.parts]
    body |= {"is_error": True} if result.is_error else {}
    return body | ({} if result.kind == "function" else {"kind": result.kind})
