"""How a transcript that cannot be read or mended is refused, wherever it was brought."""

from ledger.errors import Invalid, LedgerError
from ledger.transcripts.neutral import Unreadable
from ledger.transcripts.profiles import UnknownProfile
from ledger.transcripts.repair import Unrepairable

FOUND_MAX = 100
"""How many faults a refusal lists; the report of a repair lists them all."""


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


def unreadable(refusal: Unreadable, format: str, *, within: str = "") -> TranscriptUnreadable:
    """The refusal with its place; `within` is where in a body the transcript stands."""
    pointer = f"{within}{refusal.pointer}"
    return TranscriptUnreadable(
        format=format,
        pointer=pointer or "/",
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
