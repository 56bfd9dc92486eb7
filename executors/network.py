"""The one table of what a network error or an HTTP status proves of the effect.

Two kinds of row. A *fault* is an exchange without an answer; what it proves turns on one
fact, whether a byte of the request was handed over anywhere in the attempt. A *status* is an
answer; what it proves turns on whether an earlier attempt may have done the work and on what
the tool's policy lists as refused. Whatever has no row is unknown (semantics, section 5).

This module decides nothing about repeating and touches no network.
"""

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import NamedTuple

from ledger.vocabulary import Cause, Meaning


class Proof(NamedTuple):
    """One cause and what it means for the effect (R44)."""

    cause: Cause
    means: Meaning


class Fault(StrEnum):
    """How an exchange ended without a usable answer."""

    NOT_ALLOWED = "not_allowed"
    """The outbound rules of the tool refuse the address."""

    UNFIT_REQUEST = "unfit_request"
    """The arguments or the configuration cannot be made into a request."""

    NAME_NOT_RESOLVED = "name_not_resolved"
    CONNECTION_REFUSED = "connection_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    UNREACHABLE = "unreachable"
    TLS_FAILED = "tls_failed"

    WRITE_FAILED = "write_failed"
    """The peer went away while the request was being handed over."""

    CONNECTION_RESET = "connection_reset"
    CONNECTION_CLOSED = "connection_closed"
    """An orderly end before the answer was complete."""

    OUT_OF_TIME = "out_of_time"
    """What was left of start-to-close is spent."""

    MALFORMED_ANSWER = "malformed_answer"
    """Bytes came back that are not HTTP."""

    TOO_MANY_REDIRECTS = "too_many_redirects"


B, R, U = Meaning.NOT_BEGUN, Meaning.REFUSED, Meaning.UNKNOWN


class FaultRow(NamedTuple):
    """What a fault proves before and after the first byte of the request was handed over."""

    before: Proof
    after: Proof


_NEVER_CONNECTED = FaultRow(Proof(Cause.CONNECT_FAILED, B), Proof(Cause.CONNECTION_LOST, U))

FAULTS: Mapping[Fault, FaultRow] = {
    Fault.NOT_ALLOWED: FaultRow(Proof(Cause.PERMISSION, B), Proof(Cause.PERMISSION, U)),
    Fault.UNFIT_REQUEST: FaultRow(Proof(Cause.VALIDATION, B), Proof(Cause.VALIDATION, U)),
    Fault.NAME_NOT_RESOLVED: _NEVER_CONNECTED,
    Fault.CONNECTION_REFUSED: _NEVER_CONNECTED,
    Fault.CONNECT_TIMEOUT: _NEVER_CONNECTED,
    Fault.UNREACHABLE: _NEVER_CONNECTED,
    Fault.TLS_FAILED: _NEVER_CONNECTED,
    Fault.WRITE_FAILED: _NEVER_CONNECTED,
    Fault.CONNECTION_RESET: _NEVER_CONNECTED,
    Fault.CONNECTION_CLOSED: _NEVER_CONNECTED,
    Fault.OUT_OF_TIME: FaultRow(Proof(Cause.HANG, B), Proof(Cause.HANG, U)),
    Fault.MALFORMED_ANSWER: FaultRow(Proof(Cause.SERVER_ERROR, U), Proof(Cause.SERVER_ERROR, U)),
    Fault.TOO_MANY_REDIRECTS: FaultRow(Proof(Cause.SERVER_ERROR, U), Proof(Cause.SERVER_ERROR, U)),
}

STATUSES: Mapping[int, Proof] = {
    400: Proof(Cause.VALIDATION, R),
    401: Proof(Cause.AUTH, R),
    402: Proof(Cause.PERMISSION, R),
    403: Proof(Cause.PERMISSION, R),
    404: Proof(Cause.NOT_FOUND, R),
    405: Proof(Cause.NOT_FOUND, R),
    407: Proof(Cause.AUTH, R),
    408: Proof(Cause.GATEWAY_TIMEOUT, U),
    409: Proof(Cause.CONFLICT, R),
    410: Proof(Cause.NOT_FOUND, R),
    412: Proof(Cause.CONFLICT, R),
    413: Proof(Cause.VALIDATION, R),
    415: Proof(Cause.VALIDATION, R),
    422: Proof(Cause.VALIDATION, R),
    429: Proof(Cause.RATE_LIMITED, R),
    451: Proof(Cause.PERMISSION, R),
    500: Proof(Cause.SERVER_ERROR, U),
    502: Proof(Cause.GATEWAY_TIMEOUT, U),
    503: Proof(Cause.SERVER_ERROR, U),
    504: Proof(Cause.GATEWAY_TIMEOUT, U),
}

FAMILIES: Mapping[int, Proof] = {
    4: Proof(Cause.VALIDATION, R),
    5: Proof(Cause.SERVER_ERROR, U),
}
"""An unlisted 4xx is a refusal (RFC 9110, 15.5); an unlisted 5xx proves nothing."""

UNEXPECTED = Proof(Cause.SERVER_ERROR, U)
"""An answer the tool did not declare as its success: 1xx, 2xx, or a redirect not followed.

A 307 or 308 asks for the same request elsewhere. It does not say that nothing was done
here, and following it would let one crossing carry an effect twice: it is unknown.
"""

MAY_BE_OWN_ECHO = frozenset({409, 412})
"""Refusals that an earlier attempt under the same key may itself have caused."""

CANNOT_REFUSE = frozenset({500, 502, 504})
"""Never to be listed as refused: the sender of these cannot know what was done behind it."""


def proof_of_fault(fault: Fault, *, handed_over: bool) -> Proof:
    """What an exchange without an answer proves.

    `handed_over` is whether any byte of any request of this attempt left our hands; one
    stray byte rules out `not_begun` (semantics, section 5, rule 1).
    """
    row = FAULTS[fault]
    return row.after if handed_over else row.before


def proof_of_status(
    status: int, *, later_attempt: bool, refused_statuses: Collection[int] = ()
) -> Proof:
    """What an answer other than the tool's declared success proves.

    `later_attempt` says that an earlier attempt ran under the same key: then 409 and 412
    may be the echo of its success. `refused_statuses` are the 5xx the policy calls refused.
    """
    if status in refused_statuses and status not in CANNOT_REFUSE:
        return Proof(Cause.RATE_LIMITED, R)
    if later_attempt and status in MAY_BE_OWN_ECHO:
        return Proof(Cause.CONFLICT, U)
    return STATUSES.get(status) or FAMILIES.get(status // 100) or UNEXPECTED


_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that the outside asks us to wait, or None if it does not say so legibly.

    `headers` has lower-case names. A date is taken against the answer's own `Date`, so no
    clock of ours is compared with theirs. Negative or unreadable is None (semantics, 4.5).
    """
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    until, now = _instant(value), _instant(headers.get("date", ""))
    if until is None or now is None:
        return None
    wait = (until - now).total_seconds()
    return wait if wait >= 0 else None


def _instant(http_date: str) -> datetime | None:
    try:
        instant = parsedate_to_datetime(http_date)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return instant if instant.tzinfo is not None else None
