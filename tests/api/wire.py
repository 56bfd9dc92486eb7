"""Requests byte by byte: what no well-behaved client would send."""

import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse

from standalone.ports import LOOPBACK

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it came; `status` 0 when the server closed instead of answering."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


CLOSED = Answer(0)


def head(method: str, target: str, headers: Pairs) -> bytes:
    """A request's head; header values go as UTF-8, also where HTTP knows no such header."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def with_length(headers: Pairs, body: bytes) -> list[tuple[str, str]]:
    """The headers, with the body's length unless they say how it is framed."""
    pairs = list(headers)
    if not {name.lower() for name, _ in pairs} & {"content-length", "transfer-encoding"}:
        pairs.append(("Content-Length", str(len(body))))
    return pairs


def chunked(body: bytes, size: int = 65536) -> bytes:
    """The body in chunks, with the last one."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class Line:
    """One connection; `ask` sends bytes and reads one answer."""

    def __init__(self, port: int, *, limit_s: float = 30.0) -> None:
        self.socket = socket.create_connection((LOOPBACK, port), timeout=limit_s)

    def ask(self, request: bytes, *, bytes_a_second: float = 0) -> Answer:
        """Send, as far as the server lets us, and read what it says."""
        try:
            self._send(request, bytes_a_second)
        except (ConnectionError, TimeoutError):
            pass  # it may have answered before it closed
        return self._read()

    def _send(self, request: bytes, bytes_a_second: float) -> None:
        if not bytes_a_second:
            self.socket.sendall(request)
            return
        headers, _, body = request.partition(b"\r\n\r\n")
        self.socket.sendall(headers + b"\r\n\r\n")
        for byte in body:
            self.socket.sendall(bytes([byte]))
            if self._has_answer(1 / bytes_a_second):
                return

    def _has_answer(self, within_s: float) -> bool:
        limit_s = self.socket.gettimeout()
        self.socket.settimeout(within_s)
        try:
            return self.socket.recv(1, socket.MSG_PEEK) is not None
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(limit_s)

    def _read(self) -> Answer:
        answer = HTTPResponse(self.socket)
        try:
            answer.begin()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, headers, answer.read())
        except (HTTPException, ConnectionError):
            return CLOSED

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def exchange(port: int, request: bytes, *, bytes_a_second: float = 0) -> Answer:
    """One request on a connection of its own."""
    with Line(port) as line:
        return line.ask(request, bytes_a_second=bytes_a_second)


def seconds_of(port: int, request: bytes) -> float:
    """How long an answer takes on a fresh connection."""
    with Line(port) as line:
        began = time.perf_counter()
        line.ask(request)
        return time.perf_counter() - began
