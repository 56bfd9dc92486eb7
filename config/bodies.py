"""Counts a request's body while it arrives, and refuses it before it is held (S12, rule 1).

A body has a size and a time: one that is too large is answered 413 and one that does not come
to its end 408; headers beyond all use are answered 431. No framework is asked, and the connection
is closed. Addresses that take whole transcripts have limits of their own.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from config import problems
from config.headers import SAME_ON_ALL
from config.middleware import request_id_from
from ledger import strictjson
from ledger.api.transcript_bodies import BY_COMMAND_LINE
from ledger.errors import LedgerError
from ledger.strictjson import Limits

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS_MAX = 100
HEADER_BYTES_MAX = 32 * 1024  # of all names and values


class TooLarge(LedgerError):
    """More bytes came than a body may have."""

    code = "payload_too_large"
    http = 413
    sentence = "The body is larger than {limit} bytes. Nothing was recorded. {remedy}"


class TooSlow(LedgerError):
    """The body did not come to its end in time."""

    code = "body_too_slow"
    http = 408
    sentence = (
        "The body had not come to its end after {seconds:g} s. Nothing was recorded. Send it "
        "again in one piece, with the length that it has."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What the bodies of an address may be: `seconds` from the first byte to the last."""

    limits: Limits
    seconds: float
    remedy: str


ORDINARY = Bound(
    limits=strictjson.API,
    seconds=10.0,  # the largest body at a megabit a second
    remedy="Send less, or store the large part elsewhere and send its address.",
)
TRANSCRIPT = Bound(
    limits=strictjson.TRANSCRIPT,
    seconds=45.0,  # the largest body at two megabits a second
    remedy=BY_COMMAND_LINE,
)
TRANSCRIPTS_AT = frozenset(
    f"/api/v1{path}" for path in ("/transcripts/validation", "/transcripts/repair", "/imports")
) | {"/transcripts/repair", "/imports/new"}
"""The API's addresses, and the console's forms that take the same."""
OF_A_SESSION = re.compile(r"/sessions/[^/]{1,64}/repair")


def bound_of(path: str) -> Bound:
    """What a body that is sent to this path may be."""
    takes_transcripts = path in TRANSCRIPTS_AT or OF_A_SESSION.fullmatch(path)
    return TRANSCRIPT if takes_transcripts else ORDINARY


class HeadersTooLarge(LedgerError):
    """The request has more headers, or longer ones, than any caller needs."""

    code = "headers_too_large"
    http = 431
    sentence = (
        f"The request has more than {HEADERS_MAX} headers, or more than {HEADER_BYTES_MAX} bytes "
        "of them. Nothing was recorded. Send only the headers that the API names."
    )


def counted(application: Application) -> Application:
    """Wrap an application so that it never holds a body over the limits, in bytes and seconds."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        try:
            _check_headers(scope["headers"])
            first = await _in_time(receive, bound_of(scope["path"]))
        except (TooLarge, TooSlow, HeadersTooLarge) as refusal:
            await refuse(send, scope, refusal)
            return
        await application(scope, _replaying(first, receive), send)

    return run


def _check_headers(headers: Sequence[tuple[bytes, bytes]]) -> None:
    size = sum(len(name) + len(value) for name, value in headers)
    if len(headers) > HEADERS_MAX or size > HEADER_BYTES_MAX:
        raise HeadersTooLarge


async def _in_time(receive: Receive, bound: Bound) -> MutableMapping[str, Any]:
    try:
        async with asyncio.timeout(bound.seconds):
            return await _whole_body(receive, bound)
    except TimeoutError:
        raise TooSlow(seconds=bound.seconds) from None


async def _whole_body(receive: Receive, bound: Bound) -> MutableMapping[str, Any]:
    """Read to the end of the body and give it as one message."""
    message = await receive()
    if message["type"] != "http.request" or not message.get("more_body"):
        _check_size(len(message.get("body", b"")), bound)
        return message
    parts = [message["body"]]
    size = len(message["body"])
    while message.get("more_body"):
        message = await receive()
        if message["type"] != "http.request":
            return message
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        _check_size(size, bound)
    return {"type": "http.request", "body": b"".join(parts), "more_body": False}


def _check_size(size: int, bound: Bound) -> None:
    if size > bound.limits.size_bytes:
        raise TooLarge(limit=bound.limits.size_bytes, remedy=bound.remedy)


def _replaying(first: MutableMapping[str, Any], receive: Receive) -> Receive:
    pending = [first]

    async def receive_again() -> MutableMapping[str, Any]:
        return pending.pop() if pending else await receive()

    return receive_again


async def refuse(send: Send, scope: Scope, refusal: LedgerError) -> None:
    """Answer with a problem document without any framework, and close the connection."""
    sent = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    request_id = request_id_from(sent)
    status, code, detail, more, _ = problems.of_refusal(refusal)
    body = json.dumps(
        problems.document(
            status=status, code=code, detail=detail, instance=scope["path"], request_id=request_id
        )
    ).encode()
    headers = [
        *SAME_ON_ALL,
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"x-request-id", request_id.encode()),
        (b"connection", b"close"),
        *((name.lower().encode(), value.encode("latin-1")) for name, value in more.items()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
