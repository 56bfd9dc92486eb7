"""A flat list of items, each a message, a call, an output or reasoning: OpenAI Responses.

Each item is an entry of its own, since each stands alone; the calls of one reply are the items of
the model's between two others. Source: the Responses API reference (input items).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from ledger.transcripts.shapes.items import (
    ANSWERED_BY,
    CALLS,
    OUTPUTS,
    call_in,
    call_item,
    kind_of_opaque,
)
from ledger.transcripts.shapes.pictures import LEFT_OUT, Picture, carried
from ledger.transcripts.shapes.places import Place, listed

ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
SYSTEM = ("system", "developer")
TEXTS = ("input_text", "output_text", "text")
MEDIA = ("input_image", "input_file", "input_audio")
BESIDE = "instructions"
CHAIN = "previous_response_id"


@dataclass(frozen=True, slots=True)
class Responses:
    """Reads and writes `input` with its `instructions`."""

    name: str = "openai-responses"
    form: str = "items"
    itemised: bool = True
    names_results: bool = False

    def read(self, transcript: Any) -> list[Entry]:
        """One entry for each item, headed by one for the instructions where there are any."""
        if isinstance(transcript, dict) and isinstance(transcript.get("input"), str):
            words = transcript["input"]
            items = [Entry(Role.USER, (Text(words),), at=0, raw=words)]
        else:
            items = [self._entry(at, item) for at, item in enumerate(listed(transcript, "input"))]
        if isinstance(transcript, dict) and transcript.get(CHAIN):
            items = self._continued(items)
        return [*_instructions(transcript), *items]

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """A list of items; an object where there are instructions or something around it."""
        beside = [entry.text for entry in entries if _is_beside(entry)]
        among = [entry for entry in entries if not _is_beside(entry)]
        items = [item for entry in among for item in self._items(entry)]
        if around is None and not beside:
            return items
        instructions = {BESIDE: "\n\n".join(beside)} if beside else {}
        alone = len(items) == 1 and isinstance(items[0], str)
        return {**(around or {}), **instructions, "input": items[0] if alone else items}

    def _entry(self, at: int, item: Place) -> Entry:
        kind = item.member("type").maybe_text() or "message"
        if kind == "message":
            return self._message(at, item)
        if kind in CALLS:
            call = call_in(CALLS[kind], item)
            broken = item.member("status").value == "incomplete"
            return Entry(Role.ASSISTANT, (call,), at=at, raw=item.value, failed=broken)
        if kind in OUTPUTS:
            return Entry(Role.TOOL, (self._result(OUTPUTS[kind], item),), at=at, raw=item.value)
        opaque = kind_of_opaque(kind)
        owner = self.name if opaque is OpaqueKind.REASONING else self.form
        part = Opaque(opaque, owner, item.value)
        return Entry(Role.ASSISTANT, (part,), at=at, raw=item.value)

    def _continued(self, items: Sequence[Entry]) -> list[Entry]:
        """Items behind others that the server holds: an output may answer a call among those.

        Such an output is opaque: nobody here can say what it answers, and it goes as it came.
        """
        asked = {call.id for entry in items for call in entry.calls}
        return [
            replace(entry, role=Role.USER, parts=(self._elsewhere(entry.raw),))
            if any(result.answers not in asked for result in entry.results)
            else entry
            for entry in items
        ]

    def _elsewhere(self, item: Any) -> Opaque:
        return Opaque(OpaqueKind.OTHER, self.form, item)

    def _message(self, at: int, item: Place) -> Entry:
        role = item.member("role").word((*ROLES, *SYSTEM))
        opaque = item.beside("type", "role", "content")
        if role in SYSTEM:
            opaque["role"] = role
        return Entry(
            ROLES.get(role, Role.SYSTEM),
            tuple(self._content(item.member("content"))),
            at=at,
            raw=item.value,
            failed=item.member("status").value == "incomplete",
            opaque=opaque,
        )

    def _content(self, content: Place) -> Iterator[Text | Opaque]:
        if isinstance(content.value, str):
            yield Text(content.value)
        elif content.value is not None:
            yield from (self._part(part) for part in content.items())

    def _part(self, part: Place) -> Text | Opaque:
        kind = part.member("type").text()
        if kind in TEXTS:
            return Text(part.member("text").text(), part.beside("type", "text"))
        if kind == "refusal":
            return Text(part.member("refusal").text(), {"type": "refusal"})
        media = kind in MEDIA
        return Opaque(OpaqueKind.MEDIA if media else OpaqueKind.OTHER, self.form, part.value)

    def _result(self, kind: str, item: Place) -> Result:
        output = item.member("output")
        answers = item.member("call_id").maybe_text() or item.member("id").maybe_text()
        return Result(
            answers=answers,
            parts=tuple(self._output(output)),
            kind=kind,
            opaque=item.beside("type", "call_id", "output"),
        )

    def _output(self, output: Place) -> Iterator[Text | Opaque]:
        if isinstance(output.value, dict):
            yield Opaque(OpaqueKind.MEDIA, self.form, output.value)
        else:
            yield from self._content(output)

    def _items(self, entry: Entry) -> Iterator[Any]:
        if entry.raw is not None:
            yield entry.raw
        elif entry.role in (Role.ASSISTANT, Role.TOOL):
            yield from (item for part in entry.parts for item in self._alone(entry, part))
        else:
            yield self._said(entry)

    def _alone(self, entry: Entry, part: Part) -> Iterator[Any]:
        """The items of a part of a reply, or of an entry of results: each stands alone."""
        match part:
            case Call():
                yield call_item(part)
            case Result():
                yield self._output_item(part)
            case Text() if entry.role is Role.ASSISTANT:
                yield _reply(entry, part)
            case Text() | Opaque(OpaqueKind.MEDIA):
                yield {"type": "message", "role": "user", "content": [self._written(part)]}
            case Opaque() if part.format in (self.name, self.form):
                yield part.body

    def _said(self, entry: Entry) -> dict[str, Any]:
        beside = {name: value for name, value in entry.opaque.items() if name != "role"}
        role = entry.opaque.get("role", entry.role.value)
        return {"type": "message", "role": role, "content": self._contents(entry.parts), **beside}

    def _contents(self, parts: Sequence[Part]) -> Any:
        if len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text
        return [self._written(part) for part in parts if isinstance(part, Text | Opaque)]

    def _written(self, part: Text | Opaque) -> Any:
        if isinstance(part, Text):
            return {"type": "input_text", "text": part.text}
        body = carried(part, self.form, _picture)
        return body if body is not None else {"type": "input_text", "text": LEFT_OUT}

    def _output_item(self, result: Result) -> dict[str, Any]:
        item: dict[str, Any] = {"type": ANSWERED_BY[result.kind], "call_id": result.answers}
        bodies = [part.body for part in result.parts if isinstance(part, Opaque)]
        whole = result.kind == "computer" and len(bodies) == 1
        item["output"] = bodies[0] if whole else self._contents(result.parts) or ""
        return item | {name: value for name, value in result.opaque.items() if name != "id"}


def _instructions(transcript: Any) -> Iterator[Entry]:
    if isinstance(transcript, dict) and isinstance(transcript.get(BESIDE), str):
        yield Entry(Role.SYSTEM, (Text(transcript[BESIDE]),), opaque={"role": BESIDE})


def _is_beside(entry: Entry) -> bool:
    return entry.opaque.get("role") == BESIDE


def _reply(entry: Entry, text: Text) -> dict[str, Any]:
    """A text of the model's: with its item id only where it is the whole item it came in."""
    if len(entry.parts) == 1 and "id" in entry.opaque:
        content = {"type": "output_text", "text": text.text, "annotations": [], **text.opaque}
        return {"type": "message", "role": "assistant", "content": [content], **entry.opaque}
    return {"type": "message", "role": "assistant", "content": text.text}


def _picture(picture: Picture) -> dict[str, Any]:
    return {"type": "input_image", "detail": "auto", "image_url": picture.address}
