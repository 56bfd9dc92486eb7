"""Reads what is imported: the bytes of the transcript as received, and the strict JSON in them.

A body is the file itself, one JSON document or one entry a line, or an object with the members
`format` and `transcript`. Either way the transcript's own bytes are what is kept and digested, so
that the same file is the same import however it came. Sizes are judged before anything is parsed.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from ledger import strictjson
from ledger.api.transcript_bodies import TOO_MUCH, TranscriptTooLarge
from ledger.errors import Invalid
from ledger.strictjson import Code, NotStrict
from ledger.strictjson.limits import TRANSCRIPT
from ledger.transcripts.profiles import formats

LINES = re.compile(r"application/(?:x-ndjson|jsonl|x-jsonlines|json-seq)[ \t]*(?:;.*)?", re.I)
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A transcript as it came: its format, its own bytes, and what they say.

    `lines`: one entry a line. `around` are the other members of the object that it came in, if it
    came in one.
    """

    format: str
    body: bytes
    transcript: Any
    lines: bool = False
    around: dict[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()


def received(
    body: bytes, *, content_type: str, content_encoding: str = "", format: str | None = None
) -> Received:
    """Read a body. `format` is the one named beside it, needed where the body is the file itself.

    Raises TranscriptTooLarge (413), NotStrict (415, 422), Invalid for an unknown format or none.
    """
    try:
        return _received(body, content_type, content_encoding, format)
    except NotStrict as refusal:
        if refusal.code in TOO_MUCH:
            place = {"pointer": refusal.pointer, "detail": str(refusal.code)}
            raise TranscriptTooLarge(what=refusal.sentence, errors=[place]) from None
        raise


def _received(body: bytes, content_type: str, encoding: str, format: str | None) -> Received:
    if len(body) > TRANSCRIPT.size_bytes:
        raise NotStrict(Code.PAYLOAD_TOO_LARGE, limit=TRANSCRIPT.size_bytes)
    if LINES.fullmatch(content_type.strip()) and not encoding.strip():
        return Received(format=_known(format), body=body, transcript=_lines(body), lines=True)
    strictjson.check_media_type(content_type, encoding)
    value = strictjson.parse(body, limits=TRANSCRIPT)
    if not (isinstance(value, dict) and "transcript" in value):
        return Received(format=_known(format), body=body, transcript=value)
    named = value.get("format", format)
    if format is not None and named != format:
        raise Invalid(detail=f"The address says {format!r}, the body names another format.")
    around = {name: member for name, member in value.items() if name != "transcript"}
    within = _member(body.decode(), "transcript")
    return Received(
        format=_known(named), body=within, transcript=value["transcript"], around=around
    )


def again(body: bytes, *, format: str, lines: bool) -> Received:
    """A transcript that was read before, from its own bytes."""
    value = _lines(body) if lines else strictjson.parse(body, limits=TRANSCRIPT)
    return Received(format=format, body=body, transcript=value, lines=lines)


def _known(format: Any) -> str:
    names = ", ".join(formats())
    if format is None:
        raise Invalid(detail=f"Name the format of the transcript; it is one of {names}.")
    if not isinstance(format, str) or format not in formats():
        raise Invalid(
            detail=f"{str(format)[:40]!r} is no format that is read; take one of {names}."
        )
    return format


def _lines(body: bytes) -> list[Any]:
    """The entries of a file with one a line; blank lines are none."""
    if body.count(b"\n") > TRANSCRIPT.items:
        raise NotStrict(Code.TOO_MANY_ITEMS, limit=TRANSCRIPT.items)
    entries: list[Any] = []
    for line in body.split(b"\n"):
        if line.strip(b" \t\r"):
            entries.append(_line(line, len(entries)))
    if len(entries) > TRANSCRIPT.items:
        raise NotStrict(Code.TOO_MANY_ITEMS, limit=TRANSCRIPT.items)
    return entries


def _line(line: bytes, index: int) -> Any:
    try:
        return strictjson.parse(line, limits=TRANSCRIPT)
    except NotStrict as refusal:
        raise refusal.within(index) from None


def _member(text: str, wanted: str) -> bytes:
    """The bytes of one member of an object that the strict reader has accepted."""
    decoder = json.JSONDecoder()
    at = text.index("{") + 1
    while True:
        key, at = decoder.raw_decode(text, _after_space(text, at))
        at = _after_space(text, _after_space(text, at) + 1)  # behind the colon
        _, end = decoder.raw_decode(text, at)
        if key == wanted:
            return text[at:end].encode()
        at = _after_space(text, end) + 1  # behind the comma


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
