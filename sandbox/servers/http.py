"""A small HTTP/1.1 server for loopback: one request a connection, JSON answers.

Routes are data, `(method, pattern) -> function`. A function returns an `Answer`, or `RESET`
to break the connection without one, which no ordinary framework offers and drills need.
Requests from a browser are refused: they carry an Origin, or a Host that is not loopback.
"""

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from sandbox.addresses import HOST

logger = logging.getLogger(__name__)

HEAD_BYTES_MAX = 16 * 1024
BODY_BYTES_MAX = 1024 * 1024
READ_S = 10


@dataclass(frozen=True, slots=True)
class Request:
    """One request: `fields` is its JSON object or form, `found` what the pattern caught."""

    method: str
    path: str
    host: str
    query: Mapping[str, str]
    fields: Mapping[str, Any]
    found: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status code and a JSON value."""

    code: int
    body: Any = None


RESET = object()
"""Returned in place of an `Answer`: reset the connection, say nothing."""

Reply = Callable[[Request], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """A method, a pattern that must match the whole path, and who answers."""

    method: str
    pattern: str
    reply: Reply


class Malformed(ValueError):
    """The request cannot be understood, or is not for us. `code` says how."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


async def listen(routes: Sequence[Route], port: int) -> asyncio.Server:
    """Serve `routes` on loopback; port 0 takes a free one."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _converse(routes, reader, writer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            logger.info("sandbox.connection_lost: %s", error)
        finally:
            writer.close()

    return await asyncio.start_server(connected, HOST, port, limit=HEAD_BYTES_MAX)


async def _converse(
    routes: Sequence[Route], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        async with asyncio.timeout(READ_S):
            request = await _read(reader)
    except Malformed as error:
        said = {"error": "invalid_request", "error_description": str(error)}
        answer: Any = Answer(error.code, said)
    else:
        answer = await _answered(routes, request)
    if answer is RESET:
        writer.transport.abort()
        return
    writer.write(_written(answer))
    await writer.drain()


async def _answered(routes: Sequence[Route], request: Request) -> Any:
    try:
        return await _reply(routes, request)
    except Exception:
        logger.exception("sandbox.request_broke")
        return Answer(500, {"error": "server_error"})


async def _read(reader: asyncio.StreamReader) -> Request:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise Malformed(431, "The head of the request is too long.") from None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    match = re.fullmatch(r"([A-Z]+) (/\S*) HTTP/1\.[01]", first)
    if not match:
        raise Malformed(400, "This is not a request line of HTTP/1.1.")
    headers = {name.strip().lower(): value.strip() for name, _, value in map(_split, lines)}
    _refuse_browsers(headers)
    address = urlsplit(match[2])
    return Request(
        method=match[1],
        path=unquote(address.path),
        host=headers["host"],
        query=dict(parse_qsl(address.query)),
        fields=_fields(headers, await _body(headers, reader)),
    )


def _split(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def _refuse_browsers(headers: Mapping[str, str]) -> None:
    host = headers.get("host", "").rpartition(":")[0]
    if "origin" in headers or host not in (HOST, "localhost"):
        raise Malformed(421, "The sandbox answers programs on this machine, not web pages.")


async def _body(headers: Mapping[str, str], reader: asyncio.StreamReader) -> bytes:
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not length.isdecimal():
        raise Malformed(411, "The request needs a Content-Length.")
    if int(length) > BODY_BYTES_MAX:
        raise Malformed(413, f"The body is longer than {BODY_BYTES_MAX} bytes.")
    return await reader.readexactly(int(length))


def _fields(headers: Mapping[str, str], body: bytes) -> Mapping[str, Any]:
    if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(body.decode("latin-1")))
    if not body:
        return {}
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise Malformed(400, "The body is not JSON.") from None
    if not isinstance(fields, dict):
        raise Malformed(400, "The body is not a JSON object.")
    return fields


async def _reply(routes: Sequence[Route], request: Request) -> Any:
    matches = [(route, re.fullmatch(route.pattern, request.path)) for route in routes]
    here = [(route, found) for route, found in matches if found]
    for route, found in here:
        if route.method == request.method:
            return await route.reply(replace(request, found=found.groupdict()))
    return Answer(405 if here else 404, {"error": "not_found"})


def _written(answer: Answer) -> bytes:
    body = json.dumps(answer.body).encode()
    head = (
        f"HTTP/1.1 {answer.code} {HTTPStatus(answer.code).phrase}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
