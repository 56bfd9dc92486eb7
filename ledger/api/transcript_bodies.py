"""Bodies that hold whole transcripts: how large they may be, and how they are refused.

Nothing that is sent here is stored, and none of it reaches a log or a sentence.
"""

import traceback
from pathlib import Path

from ledger import strictjson
from ledger.errors import LedgerError
from ledger.strictjson import JSON, TRANSCRIPT, Code, NotStrict

BY_COMMAND_LINE = (
    "Where the file is, `python3 manage.py transcript repair FILE` takes one of any size."
)
TOO_MUCH = frozenset(
    {
        Code.PAYLOAD_TOO_LARGE,
        Code.TOO_DEEP,
        Code.TOO_MANY_NODES,
        Code.TOO_MANY_ITEMS,
        Code.STRING_TOO_LONG,
    }
)


class TranscriptTooLarge(LedgerError):
    """A transcript has more bytes, entries, values or levels than a request may bring."""

    code = "payload_too_large"
    http = 413
    sentence = f"{{what}} Nothing was kept. {BY_COMMAND_LINE}"


def parsed(body: bytes) -> JSON:
    """A strict value of up to 10 MiB. Raises NotStrict, TranscriptTooLarge."""
    try:
        return strictjson.parse(body, limits=TRANSCRIPT)
    except NotStrict as refusal:
        if refusal.code in TOO_MUCH:
            raise TranscriptTooLarge(what=refusal.sentence, errors=_errors(refusal)) from None
        raise


def _errors(refusal: NotStrict) -> list[dict[str, str]]:
    return [{"pointer": refusal.pointer, "detail": str(refusal.code)}]


class Faulty(Exception):
    """A fault of ours while a transcript was read: its kind and place, and nothing of the text."""


def place_of(fault: Exception) -> str:
    """The kind of a fault and the line of ours that it came from."""
    frames = traceback.extract_tb(fault.__traceback__)
    last = frames[-1] if frames else None
    at = f"{last.name}, {Path(last.filename).name}:{last.lineno}" if last else "nowhere"
    return f"{type(fault).__name__} in {at}"
