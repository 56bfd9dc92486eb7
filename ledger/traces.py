"""The trace that a call belongs to, in the words of the W3C's Trace Context (levels 1 and 2).

A `traceparent` names a trace, the span that asked, and flags. It is a label from outside, as a
provider's id of a tool call is: kept with the call, and in no event. Each attempt is a span of its
own below it, named by the attempt's own id, so nothing more is stored. No trace is made up here.
"""

import re
from uuid import UUID

TRACEPARENT = re.compile(
    r"(?P<version>(?!ff)[0-9a-f]{2})-(?P<trace>(?!0{32})[0-9a-f]{32})"
    r"-(?P<parent>(?!0{16})[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-[^,]*)?"
)
"""What may follow the flags has no comma: that is how a header comes that was sent twice."""

KEPT = "^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]$"
"""What `read` gives, for the database to insist on."""

VERSION = "00"
SAMPLED, RANDOM = 0x01, 0x02


def read(header: str | None) -> str | None:
    """What is kept of the header, always in version 00; None where there is none, or a bad one.

    A later version is read as far as this one goes, and flags that nobody has defined are left
    out, as the W3C has it (sections "Versioning of traceparent" and "Other Flags"). Raises nothing:
    whoever traces badly still has a call.
    """
    found = TRACEPARENT.fullmatch(header) if header else None
    if found is None or (found["version"] == VERSION and found["more"]):
        return None
    known = SAMPLED | RANDOM if found["version"] == VERSION else SAMPLED
    return _written(found["trace"], found["parent"], f"{int(found['flags'], 16) & known:02x}")


def of_attempt(traceparent: str | None, attempt_id: UUID) -> str | None:
    """What an attempt sends on: the call's trace and flags with a span of its own; None without.

    The span is the random half of the attempt's UUIDv7; its variant bits are never all zero.
    """
    if traceparent is None:
        return None
    _, trace, _, flags = traceparent.split("-")
    return _written(trace, attempt_id.hex[16:], flags)


def id_of(traceparent: str | None) -> str:
    """The trace's id, 32 hex digits; empty without a trace."""
    return traceparent.split("-")[1] if traceparent else ""


def beginning(trace: str) -> str:
    """How each kept traceparent of a trace begins, for looking it up by the trace's id."""
    return f"{VERSION}-{trace.lower()}-"


def _written(trace: str, span: str, flags: str) -> str:
    return f"{VERSION}-{trace}-{span}-{flags}"
