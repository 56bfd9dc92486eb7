"""The line between workers and PostgreSQL: it forwards, and breaks in the ways it is told."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from drills.link import Link
from drills.waits import until

LIMIT_S = 10.0


class Server:
    """Answers every chunk with the same in capitals, and keeps what it has heard."""

    def __init__(self) -> None:
        self.heard = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._listener.accept()
                threading.Thread(target=self._talk, args=(line,), daemon=True).start()

    def _talk(self, line: socket.socket) -> None:
        with contextlib.suppress(OSError), line:
            while chunk := line.recv(1024):
                self.heard += chunk
                line.sendall(chunk.upper())

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def link(server: Server) -> Iterator[Link]:
    link = Link(server.port)
    yield link
    link.close()


def connected(link: Link) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=LIMIT_S)


def asked(line: socket.socket, words: bytes) -> bytes:
    """What comes back; b"" where the line was cut."""
    try:
        line.sendall(words)
        return line.recv(1024)
    except ConnectionError:
        return b""


def test_a_link_forwards_both_ways(link: Link) -> None:
    with connected(link) as line:
        assert asked(line, b"select 1") == b"SELECT 1"


def test_a_cut_ends_every_connection_and_the_next_one_works(link: Link) -> None:
    with connected(link) as line:
        assert asked(line, b"one") == b"ONE"
        link.cut()
        assert asked(line, b"two") == b"" or asked(line, b"three") == b""
    with connected(link) as line:
        assert asked(line, b"four") == b"FOUR"


def test_a_commit_arrives_and_its_answer_is_lost(link: Link, server: Server) -> None:
    with connected(link) as line:
        assert asked(line, b"begin") == b"BEGIN"
        link.cut_after_commit()
        until(lambda: _lost(line, b"COMMIT"), "the answer of a commit is lost", LIMIT_S)
    assert b"COMMIT" in server.heard


def test_a_lost_commit_never_arrives(link: Link, server: Server) -> None:
    with connected(link) as line:
        assert asked(line, b"begin") == b"BEGIN"
        link.lose_commit()
        link.lose_commit()
        until(lambda: _lost(line, b"x COMMIT"), "a commit is lost", LIMIT_S)
    with connected(link) as line:
        assert asked(line, b"after COMMIT") == b""
    assert b"after COMMIT" not in server.heard


def test_a_hole_swallows_everything_and_then_closes(link: Link) -> None:
    with connected(link) as line:
        assert asked(line, b"one") == b"ONE"
        link.hole(0.2)
        until(lambda: not asked(line, b"two") or None, "the line is closed", LIMIT_S)


def _lost(line: socket.socket, words: bytes) -> bool:
    """Whether this one was broken: the order may still be on its way to the link."""
    return asked(line, words) == b""
