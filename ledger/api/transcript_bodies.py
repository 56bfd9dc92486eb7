"""Bodies that hold whole transcripts: how large they may be, and how they are refused.

Nothing that is sent here is stored, and none of it reaches a log or a sentence.
"""

import traceback
from pathlib import Path

from ledger import strictjson
from ledger.errors import Invalid, LedgerError
from ledger.strictjson import JSON, TRANSCRIPT, Code, NotStrict
from ledger.transcripts.neutral import Unreadable
from ledger.transcripts.profiles import UnknownProfile
from ledger.transcripts.repair import Unrepairable

BY_COMMAND_LINE = (
    "Where the file is, `python3 manage.py transcript repair FILE` takes one of any size."
)
FOUND_MAX = 100
"""How many faults a refusal lists; the report of a repair lists them all."""

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


class TranscriptUnreadable(LedgerError):
    """A transcript is not of the format that was named; nothing of it was repaired (T24)."""

    code = "transcript_unreadable"
    http = 422
    sentence = (
        "This is no transcript of the format {format}: at {pointer}, {detail}. Nothing was "
        "repaired or kept. Name the format that it is of, or mend that place."
    )


class TranscriptUnrepairable(LedgerError):
    """A provider would still refuse what a repair makes of a transcript, so it is not given out."""

    code = "transcript_unrepairable"
    http = 422
    sentence = (
        "After the repair {profile} would still refuse this transcript, for {faults}. Nothing "
        "was given out or kept. `errors` says where; choose another profile, or mend these places."
    )


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


def unreadable(refusal: Unreadable, format: str) -> TranscriptUnreadable:
    """The refusal with a pointer into the body that was sent."""
    pointer = f"/transcript{refusal.pointer}"
    return TranscriptUnreadable(
        format=format,
        pointer=pointer,
        detail=refusal.detail,
        errors=[{"pointer": pointer, "detail": refusal.detail}],
    )


def unrepairable(refusal: Unrepairable, profile: str) -> TranscriptUnrepairable:
    """The refusal with what remains, each fault with its place in the repaired copy."""
    codes = ", ".join(sorted({each.code for each in refusal.violations}))
    errors = [
        {"pointer": f"/{each.at}", "detail": f"{each.code}: {each.text}"}
        for each in refusal.violations[:FOUND_MAX]
    ]
    return TranscriptUnrepairable(profile=profile, faults=codes, errors=errors)


def unknown(refusal: UnknownProfile, member: str) -> Invalid:
    """The refusal of a format or profile that there is none of."""
    detail = f"There is no {member} of this name; take one of {', '.join(refusal.names)}."
    return Invalid(detail=detail, errors=[{"pointer": f"/{member}", "detail": "unknown"}])


class Faulty(Exception):
    """A fault of ours while a transcript was read: its kind and place, and nothing of the text."""


def place_of(fault: Exception) -> str:
    """The kind of a fault and the line of ours that it came from."""
    frames = traceback.extract_tb(fault.__traceback__)
    last = frames[-1] if frames else None
    at = f"{last.name}, {Path(last.filename).name}:{last.lineno}" if last else "nowhere"
    return f"{type(fault).__name__} in {at}"
