"""The HTTP server answers programs on this machine, and nobody else."""

import socket

import pytest

from tests.sandbox.world import World


def raw(world: World, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", world.ports.http), timeout=10) as line:
        line.sendall(request)
        return b"".join(iter(lambda: line.recv(65536), b""))


def test_it_says_that_it_is_alive(world: World) -> None:
    assert world.ask("GET", "/healthz") == (200, {"alive": True})


@pytest.mark.parametrize(
    ("method", "path", "code"), [("GET", "/nowhere", 404), ("DELETE", "/mailbox", 405)]
)
def test_an_address_that_does_not_exist_says_so(
    world: World, method: str, path: str, code: int
) -> None:
    assert world.ask(method, path)[0] == code


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Host": "evil.example:80"}, {"Host": ""}]
)
def test_a_request_of_a_web_page_is_refused(world: World, headers: dict[str, str]) -> None:
    assert world.ask("GET", "/mailbox", headers=headers)[0] == 421


HOST = b"Host: 127.0.0.1:1\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST /renders HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\n{x}", b"400"),
        (b"POST /renders HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\n[]", b"400"),
        (b"POST /renders HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", b"411"),
        (b"POST /renders HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST /renders HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999\r\n\r\n", b"413"),
        (b"GET /mailbox HTTP/1.1\r\n" + b"X: " + b"a" * 20_000 + b"\r\n\r\n", b"431"),
    ],
    ids=["line", "not-json", "not-an-object", "negative", "chunked", "long-body", "long-head"],
)
def test_a_malformed_request_is_answered_with_its_code(
    world: World, request_bytes: bytes, code: bytes
) -> None:
    assert raw(world, request_bytes).split(b" ")[1] == code


def test_a_connection_closed_in_the_middle_harms_nobody(world: World) -> None:
    with socket.create_connection(("127.0.0.1", world.ports.http), timeout=10) as line:
        line.sendall(b"POST /renders HTTP/1.1\r\nContent-Le")
    assert world.ask("GET", "/healthz")[0] == 200
