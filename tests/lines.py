"""A line to PostgreSQL that can be cut, or held, at any statement: between client and server.

`Line` listens where Django connections of a test are led, reads the client's side of the wire
protocol, and numbers the statements, BEGIN and COMMIT among them, pipelined or not. What befalls
one of them is real: the server never sees it, or sees it and its answer reaches nobody.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any, NoReturn

from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests import waits

PORT = 5432
LIMIT_S = 10.0
FLUSH = b"H\0\0\0\4"
# Execute has run when one of these comes: completed, suspended, empty, failed.
DONE = frozenset(b"CsIE")


class Died(BaseException):
    """The client's process is gone: whoever would go on with the verb is not there any more."""


class Gone(Exception):
    """One end of the line was closed."""


@dataclass
class Fate:
    """What befalls the first statement that `meets`: cut or held, before it or once answered."""

    meets: Callable[[int, str], bool]
    answered: bool
    cuts: bool
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def happens(self) -> None:
        self.reached.set()
        if self.cuts:
            raise Gone
        self.released.wait(LIMIT_S)


class Line:
    """A listener in front of the test's server; a context manager that closes all it opened."""

    def __init__(self, folder: Path) -> None:
        self.statements: list[str] = []
        self.refusals: list[str] = []  # the SQLSTATE of each error that the server told
        self.pid = 0
        self.fate: Fate | None = None
        self._folder = folder
        self._server = dict(connection.settings_dict)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / f".s.PGSQL.{PORT}"))
        self._listener.listen()
        self._opened: list[BaseDatabaseWrapper] = []
        threading.Thread(target=self._accept, name="line", daemon=True).start()

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *error: object) -> None:
        for each in self._opened:
            each.close()
        # Closing alone would leave the thread in its accept.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    # What a test asks for

    def connect(self) -> BaseDatabaseWrapper:
        """A new Django connection that goes through this line, opened; statements count anew."""
        wrapper = connection.copy()
        wrapper.inc_thread_sharing()
        wrapper.settings_dict |= {"HOST": str(self._folder), "PORT": str(PORT)}
        self._opened.append(wrapper)
        wrapper.ensure_connection()
        self.statements.clear()
        return wrapper

    def cut(self, at: int | str, *, answered: bool) -> Fate:
        """Cut the line at a statement: before it, or once the server has done it.

        The statement is counted from 1, or the next with this very text.
        """
        return self._befalls(Fate(lambda n, text: at in (n, text), answered, cuts=True))

    def hold(self, meets: Callable[[int, str], bool], *, answered: bool) -> Fate:
        """Stop the client at a statement until the fate is `released`."""
        return self._befalls(Fate(meets, answered, cuts=False))

    def _befalls(self, fate: Fate) -> Fate:
        self.statements.clear()
        self.fate = fate
        return fate

    # The two ends

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            pump = _Pump(self, client, self._to_server())
            threading.Thread(target=pump.run, name="line", daemon=True).start()

    def _to_server(self) -> socket.socket:
        host, port = str(self._server["HOST"]), int(self._server["PORT"] or PORT)
        if host.startswith("/") or not host:
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host or '/var/run/postgresql'}/.s.PGSQL.{port}")
            return server
        return socket.create_connection((host, port))


class _Pump:
    """One connection: carries messages both ways and asks the line's fate at each statement."""

    def __init__(self, line: Line, client: socket.socket, server: socket.socket) -> None:
        self._line = line
        self._client, self._server = client, server
        self._from_client = b""
        self._from_server = b""
        self._started = False
        self._texts: dict[bytes, str] = {}
        self._bound = ""
        self._executed = self._done = self._synced = 0
        self._ready = -1  # the server is ready once before it was asked anything
        self._kept: bytes | None = None

    def run(self) -> None:
        try:
            while True:
                for end in select([self._client, self._server], [], [])[0]:
                    self._carry(end)
        except (Gone, OSError):
            self._client.close()
            self._server.close()

    def _carry(self, end: socket.socket) -> None:
        if end is self._server:
            self._answer()
            return
        self._from_client += _read(end)
        while message := self._next_message():
            self._ask(message)

    def _next_message(self) -> bytes:
        """The next whole message of the client; the first one has no letter before its length."""
        head = 1 if self._started else 0
        if len(self._from_client) < head + 4:
            return b""
        size = head + struct.unpack_from("!I", self._from_client, head)[0]
        if len(self._from_client) < size:
            return b""
        message, self._from_client = self._from_client[:size], self._from_client[size:]
        return message

    def _ask(self, message: bytes) -> None:
        kind = message[:1] if self._started else b""
        self._started = True
        if kind == b"P":
            name, text = message[5:].split(b"\0")[:2]
            self._texts[name] = text.decode()
        elif kind == b"B":
            self._bound = self._texts[message[5:].split(b"\0")[1]]
        if kind in (b"E", b"Q"):
            self._statement(message, self._bound if kind == b"E" else message[5:-1].decode())
        else:
            self._synced += kind == b"S"
            self._server.sendall(message)

    def _statement(self, message: bytes, text: str) -> None:
        line = self._line
        line.statements.append(text)
        fate = line.fate
        if fate is None or not fate.meets(len(line.statements), text):
            self._send(message)
            return
        line.fate = None
        if fate.answered:
            self._kept = b""
            self._send(message)
            self._await_answer()
        fate.happens()
        if fate.answered:
            kept, self._kept = self._kept or b"", None
            self._client.sendall(kept)
        else:
            self._send(message)

    def _send(self, message: bytes) -> None:
        self._executed += 1
        self._synced += message[:1] == b"Q"
        self._server.sendall(message)

    def _await_answer(self) -> None:
        """Wait until the server has done the statement; its answer is kept back."""
        synced = self._synced > self._ready
        if not synced and self._from_client[:1] == b"S":
            # Without its Sync a statement outside a transaction is not committed.
            self._ask(self._next_message())
            synced = True
        if not synced:
            self._server.sendall(FLUSH)
        while self._ready < self._synced if synced else self._done < self._executed:
            self._answer()

    def _answer(self) -> None:
        data = _read(self._server)
        self._from_server += data
        while len(self._from_server) >= 5:
            size = 1 + struct.unpack_from("!I", self._from_server, 1)[0]
            if len(self._from_server) < size:
                break
            self._note(self._from_server[:size])
            self._from_server = self._from_server[size:]
        if self._kept is None:
            self._client.sendall(data)
        else:
            self._kept += data

    def _note(self, message: bytes) -> None:
        if message[:1] == b"K":
            self._line.pid = struct.unpack_from("!I", message, 5)[0]
        if message[:1] == b"E":
            codes = [each[1:] for each in message[5:].split(b"\0") if each[:1] == b"C"]
            self._line.refusals += [each.decode() for each in codes]
        self._done += message[0] in DONE
        if message[:1] == b"Z":
            self._ready += 1
            self._done = self._executed


def _read(end: socket.socket) -> bytes:
    data = end.recv(65536)
    if not data:
        raise Gone
    return data


@contextlib.contextmanager
def used(wrapper: BaseDatabaseWrapper) -> Iterator[BaseDatabaseWrapper]:
    """Let all code of this thread use this connection."""
    before = connections["default"]
    connections["default"] = wrapper
    try:
        yield wrapper
    finally:
        connections["default"] = before


def mortal(wrapper: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    """Make a client die with its connection: it never comes back, as a killed process would not."""

    def die(*_: Any) -> NoReturn:
        raise Died

    wrapper.connect = die  # type: ignore[method-assign]
    return wrapper


def until_gone(pid: int) -> None:
    """Wait until the server noticed that a client is gone: what it had not committed is undone."""

    def is_gone() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)", [pid])
            return bool(cursor.fetchone()[0])

    waits.until(is_gone, what=f"server process {pid} to end")
