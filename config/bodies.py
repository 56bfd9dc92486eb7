"""Counts a request's body while it arrives, and refuses it before it is held (S12, rule 1)."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from config import problems
from ledger import strictjson

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LIMIT_BYTES = strictjson.API.size_bytes


class TooLarge(Exception):
    """More bytes came than a body may have."""


def counted(application: Application) -> Application:
    """Wrap an application so that it never holds a body over the limit; the client gets a 413."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        try:
            first = await _whole_body(receive)
        except TooLarge:
            await refuse(send, scope, 413, "payload_too_large", _SENTENCE)
            return
        await application(scope, _replaying(first, receive), send)

    return run


async def _whole_body(receive: Receive) -> MutableMapping[str, Any]:
    """Read to the end of the body and give it as one message."""
    message = await receive()
    if message["type"] != "http.request" or not message.get("more_body"):
        if len(message.get("body", b"")) > LIMIT_BYTES:
            raise TooLarge
        return message
    parts = [message["body"]]
    size = len(message["body"])
    while message.get("more_body"):
        message = await receive()
        if message["type"] != "http.request":
            return message
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LIMIT_BYTES:
            raise TooLarge
    return {"type": "http.request", "body": b"".join(parts), "more_body": False}


def _replaying(first: MutableMapping[str, Any], receive: Receive) -> Receive:
    pending = [first]

    async def receive_again() -> MutableMapping[str, Any]:
        return pending.pop() if pending else await receive()

    return receive_again


_SENTENCE = (
    f"The body is larger than {LIMIT_BYTES} bytes. Nothing was recorded. Send less, or store the "
    "large part elsewhere and send its address."
)


async def refuse(send: Send, scope: Scope, status: int, code: str, detail: str) -> None:
    """Answer with a problem document without any framework."""
    body = problems.document(
        status=status, code=code, detail=detail, instance=scope["path"], request_id=""
    )
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store"),
               (b"connection", b"close")]  # fmt: skip
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
