"""Real servers on loopback that can be told to misbehave, and the tools that call them."""

import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from executors.contract import Assignment
from executors.http.addresses import OutboundRules
from executors.http.client import Request
from executors.http.targets import read_url
from ledger.vocabulary import Boundary, RecoveryClass
from tests.executors.recording_context import an_assignment

LIMIT_S = 5.0
RESET = struct.pack("ii", 1, 0)


@dataclass
class Received:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Conversation:
    """The server's side of one connection."""

    def __init__(self, connected: socket.socket, server: "Loopback") -> None:
        self.socket = connected
        self.server = server
        self._buffer = b""

    def read_request(self) -> Received:
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, rest = self._buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", "0"))
        while len(rest) < length:
            self._more()
            rest = self._buffer.partition(b"\r\n\r\n")[2]
        received = Received(method, path, headers, rest[:length])
        self.server.requests.append(received)
        return received

    def read_all(self) -> bytes:
        """Everything until the peer ends; raises ConnectionResetError at a reset."""
        while self._more():
            pass
        return self._buffer

    def send(self, payload: bytes) -> None:
        self.socket.sendall(payload)

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.socket.close()

    def wait_for_peer_to_leave(self) -> None:
        """Keep the connection open until the client closes it."""
        try:
            while self.socket.recv(65536):
                pass
        except OSError:
            return

    def _more(self) -> bool:
        chunk = self.socket.recv(65536)
        with self.server.changed:
            self.server.bytes_read += len(chunk)
            self.server.changed.notify_all()
        self._buffer += chunk
        if not chunk and b"\r\n\r\n" not in self._buffer:
            raise ConnectionError("the client left before the end of its request")
        return bool(chunk)


Script = Callable[[Conversation], None]


@dataclass
class Loopback:
    """A server whose n-th connection follows the n-th script; the last script repeats."""

    scripts: tuple[Script, ...]
    address: str = "127.0.0.1"
    wrap: Callable[[socket.socket], socket.socket] = lambda connected: connected
    connections: int = 0
    bytes_read: int = 0
    finished: int = 0
    requests: list[Received] = field(default_factory=list)
    endings: list[BaseException] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._listener = socket.create_server((self.address, 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    def wait_until(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, LIMIT_S), f"not within {LIMIT_S} s"

    def serve(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            script = self.scripts[min(self.connections, len(self.scripts) - 1)]
            with self.changed:
                self.connections += 1
                self.changed.notify_all()
            self._open.append(connected)
            thread = threading.Thread(target=self._converse, args=(connected, script), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _converse(self, connected: socket.socket, script: Script) -> None:
        try:
            connected.settimeout(LIMIT_S)
            wrapped = self.wrap(connected)
            self._open.append(wrapped)
            script(Conversation(wrapped, self))
            wrapped.close()
        except (OSError, ValueError) as ending:
            self.endings.append(ending)
        finally:
            connected.close()
            with self.changed:
                self.finished += 1
                self.changed.notify_all()

    def stop(self, accepting: threading.Thread) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        accepting.join(LIMIT_S)
        for connected in self._open:
            connected.close()
        for thread in self._threads:
            thread.join(LIMIT_S)


@contextmanager
def serving(*scripts: Script, **settings: Any) -> Iterator[Loopback]:
    server = Loopback(scripts, **settings)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop(thread)


def raw_reply(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> bytes:
    given = {name.lower(): value for name, value in (headers or {}).items()}
    given.setdefault("content-length", str(len(body)))
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body


def reply(status: int, body: Any = b"", **headers: str) -> Script:
    """Read the request, answer it, close. A body that is not bytes is sent as JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if not isinstance(body, bytes):
        body, named = json.dumps(body).encode(), {"content-type": "application/json", **named}

    def script(conversation: Conversation) -> None:
        conversation.read_request()
        conversation.send(raw_reply(status, body, named))

    return script


def gzipped(body: bytes) -> Script:
    return reply(200, gzip.compress(body), content_encoding="gzip")


def rules_for(*servers: Loopback, **changes: Any) -> OutboundRules:
    settings: dict[str, Any] = {
        "private_hosts": tuple({server.address for server in servers}),
        "schemes": ("http", "https"),
        "ports": tuple(server.port for server in servers),
    }
    return OutboundRules(**{**settings, **changes})


def a_request(server: Loopback, path: str = "/", **changes: Any) -> Request:
    settings: dict[str, Any] = {"method": "GET", "target": read_url(server.url + path)}
    return Request(**{**settings, **changes})


def a_tool(server: Loopback, path: str = "/orders", **changes: Any) -> dict[str, Any]:
    """The configuration of a tool that posts its arguments to `server`."""
    config = {
        "method": "POST",
        "url": server.url + path,
        "body": "arguments",
        "allow": {
            "private_hosts": [server.address],
            "schemes": ["http", "https"],
            "ports": [server.port],
        },
    }
    return {**config, **changes}


def an_effect(config: dict[str, Any], **changes: Any) -> Assignment:
    settings = {
        "executor": "http",
        "executor_config": config,
        "boundary": Boundary.TRANSPORT,
        "arguments": {"item": "tea"},
    }
    return an_assignment(**{**settings, **changes})


def a_read(config: dict[str, Any], **changes: Any) -> Assignment:
    return an_effect(config, **{"recovery_class": RecoveryClass.READ_ONLY, **changes})
