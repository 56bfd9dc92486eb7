"""Contents of parts: Gemini's `generateContent`.

Calls and their answers may come without ids and are matched by name and place, so the reader
gives ids to those that have none (`unnamed.ids`); the writer leaves such an id out again.
Both spellings of the members are read (`functionCall`, `function_call`), the first is written.
Source: the Gemini API reference (Content, Part), thought signatures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from ledger.transcripts.shapes import unnamed
from ledger.transcripts.shapes.pictures import LEFT_OUT, Picture, carried
from ledger.transcripts.shapes.places import Place, as_text, listed

LIST = ("contents",)
SYSTEM = ("systemInstruction", "system_instruction")
CALL = ("functionCall", "function_call")
ANSWER = ("functionResponse", "function_response")
SIGNATURE = ("thoughtSignature", "thought_signature")
MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
OWN_TOOLS = (
    "executableCode",
    "executable_code",
    "codeExecutionResult",
    "code_execution_result",
    "toolCall",
    "tool_call",
    "toolResponse",
    "tool_response",
)
SPOKEN = ("output", "result")
ROLES = {Role.USER: "user", Role.TOOL: "user", Role.ASSISTANT: "model", Role.SYSTEM: "user"}


@dataclass(frozen=True, slots=True)
class Gemini:
    """Reads and writes `contents` with their `systemInstruction`."""

    name: str = "gemini"
    form: str = "contents"
    itemised: bool = False
    names_results: bool = True

    def read(self, transcript: Any) -> list[Entry]:
        """One entry for each content, headed by one for the system instruction if there is any."""
        contents = [self._entry(at, place) for at, place in enumerate(listed(transcript, *LIST))]
        return [*self._system(transcript), *unnamed.named(contents)]

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """A list of contents; an object where there is a system text or something around it."""
        system = [entry for entry in entries if entry.role is Role.SYSTEM]
        contents = [self._content(entry) for entry in entries if entry.role is not Role.SYSTEM]
        if around is None and not system:
            return contents
        return {**(around or {}), **self._written_system(system, around), "contents": contents}

    def _system(self, transcript: Any) -> Iterator[Entry]:
        for name in SYSTEM:
            if isinstance(transcript, dict) and transcript.get(name) is not None:
                place = Place(transcript).member(name)
                parts = tuple(self._parts(place.member("parts")))
                yield Entry(Role.SYSTEM, parts, raw=place.value, opaque=place.beside("parts"))

    def _entry(self, at: int, place: Place) -> Entry:
        # A content without a role is the user's (API reference, Content).
        given = place.member("role").value or "user"
        role = Place(given, place, "role").word(("user", "model", "function"))
        parts = tuple(self._parts(place.member("parts")))
        return Entry(
            _role(role, parts), parts, at=at, raw=place.value, opaque=place.beside("role", "parts")
        )

    def _parts(self, place: Place) -> Iterator[Part]:
        if place.value is not None:
            yield from (self._part(part) for part in place.items())

    def _part(self, part: Place) -> Part:
        body = part.mapping()
        if body.get("thought") is True:
            return Opaque(OpaqueKind.REASONING, self.name, body)
        for members, read in ((CALL, _call), (ANSWER, _answer)):
            for name in members:
                if name in body:
                    return read(part.member(name), part.beside(name))
        signed = any(name in body for name in SIGNATURE)
        if isinstance(body.get("text"), str) and (body["text"] or not signed):
            return Text(body["text"], part.beside("text"))
        kind = _opaque_kind(body)
        return Opaque(kind, self.name if kind is OpaqueKind.REASONING else self.form, body)

    def _written_system(
        self, system: Sequence[Entry], around: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if not system:
            return {}
        name = next((name for name in SYSTEM if name in (around or {})), SYSTEM[0])
        if len(system) == 1 and system[0].raw is not None:
            return {name: system[0].raw}
        parts = [body for entry in system for part in entry.parts for body in self._bodies(part)]
        return {name: {"parts": parts}}

    def _content(self, entry: Entry) -> Any:
        if entry.raw is not None:
            return entry.raw
        parts = [body for part in entry.parts for body in self._bodies(part)]
        return {"role": ROLES[entry.role], "parts": parts, **entry.opaque}

    def _bodies(self, part: Part) -> Iterator[Any]:
        match part:
            case Text(text, opaque):
                yield {"text": text, **opaque}
            case Call():
                yield _call_part(part)
            case Result():
                yield self._answer_part(part)
            case Opaque(OpaqueKind.MEDIA):
                body = carried(part, self.form, _picture)
                yield body if body is not None else {"text": LEFT_OUT}
            case Opaque() if part.format in (self.name, self.form):
                yield part.body

    def _answer_part(self, result: Result) -> dict[str, Any]:
        media = [part for part in result.parts if isinstance(part, Opaque)]
        answer: dict[str, Any] = {**unnamed.written(result.answers), "name": result.name}
        answer["response"] = _response(result)
        if media:
            answer["parts"] = [body for part in media for body in self._bodies(part)]
        answer |= result.opaque.get("answer", {})
        return {"functionResponse": answer, **result.opaque.get("part", {})}


def _role(role: str, parts: Sequence[Part]) -> Role:
    if role == "model":
        return Role.ASSISTANT
    answers = role == "function" or any(isinstance(part, Result) for part in parts)
    return Role.TOOL if answers else Role.USER


def _call(call: Place, beside: dict[str, Any]) -> Call:
    given = call.member("args")
    return Call(
        id=call.member("id").maybe_text() or None,
        name=call.member("name").maybe_text() or "",
        # A call without parameters may leave its arguments out (API reference, FunctionCall).
        arguments={} if given.value is None else given.mapping(),
        opaque=beside,
    )


def _answer(answer: Place, beside: dict[str, Any]) -> Result:
    response = answer.member("response").mapping()
    media = answer.member("parts")
    pictures = [] if media.value is None else [place.value for place in media.items()]
    return Result(
        answers=answer.member("id").maybe_text() or None,
        parts=(
            Text(spoken(response)),
            *(Opaque(OpaqueKind.MEDIA, "contents", body) for body in pictures),
        ),
        name=answer.member("name").maybe_text() or "",
        is_error="error" in response,
        opaque={
            "response": response,
            "answer": answer.beside("id", "name", "response", "parts"),
            "part": beside,
        },
    )


def spoken(response: Mapping[str, Any]) -> str:
    """The text of an answer: its one member where it is `output`, `result` or `error`.

    Any other answer is its JSON.
    """
    if len(response) == 1:
        ((name, value),) = response.items()
        if name in (*SPOKEN, "error"):
            return value if isinstance(value, str) else as_text(value)
    return as_text(response)


def _response(result: Result) -> Any:
    """The answer as it came while its text is still the same, or one that holds the text."""
    given = result.opaque.get("response")
    if given is not None and spoken(given) == result.text:
        return given
    return {"error" if result.is_error else "result": result.text}


def _call_part(call: Call) -> dict[str, Any]:
    body = {**unnamed.written(call.id), "name": call.name, "args": dict(call.arguments or {})}
    return {"functionCall": body, **call.opaque}


def _opaque_kind(body: Mapping[str, Any]) -> OpaqueKind:
    if any(name in body for name in MEDIA):
        return OpaqueKind.MEDIA
    if any(name in body for name in OWN_TOOLS):
        return OpaqueKind.PROVIDER_TOOL
    if any(name in body for name in SIGNATURE):
        return OpaqueKind.REASONING
    return OpaqueKind.OTHER


def _picture(picture: Picture) -> dict[str, Any]:
    if picture.url:
        return {"fileData": {"mimeType": picture.media_type or "image/*", "fileUri": picture.url}}
    return {"inlineData": {"mimeType": picture.media_type, "data": picture.base64}}
