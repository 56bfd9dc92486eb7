"""Sizes and times of requests: refused by what arrives, never by what was announced."""

import threading
import time

from ledger.models import Session, Tool, ToolCall
from tests.api.callers import API, Caller
from tests.api.served import Served
from tests.api.wire import Answer, Line, chunked, exchange, head, with_length

MIB = 2**20
SUBMIT = b'{"tool":"sandbox.lookup","arguments":{}}'
PATHS = ("/calls", "/sessions", "/calls/call_1/cancellation", "/nothing")


def padded(size: int) -> bytes:
    return SUBMIT + b" " * (size - len(SUBMIT))


def post(
    web: Served, who: Caller, body: bytes, *headers: tuple[str, str], path: str = "/calls"
) -> Answer:
    sent = [("Authorization", who.http.headers["Authorization"]), *headers]
    if not any(name == "Content-Type" for name, _ in headers):
        sent.append(("Content-Type", "application/json"))
    return exchange(web.port, head("POST", API + path, with_length(sent, body)) + body)


def test_the_largest_body_is_taken_and_one_byte_more_is_not(
    web: Served, ada: Caller, lookup: Tool
) -> None:
    assert post(web, ada, padded(MIB)).status == 201
    for path in PATHS:
        assert post(web, ada, padded(MIB + 1), path=path).status == 413, path
    assert ToolCall.objects.count() == 1


def test_chunks_are_counted_while_they_come(web: Served, ada: Caller, lookup: Tool) -> None:
    framed = ("Transfer-Encoding", "chunked")

    assert post(web, ada, chunked(padded(MIB)), framed).status == 201
    for path in PATHS:
        assert post(web, ada, chunked(padded(MIB + 1)), framed, path=path).status == 413, path
    assert ToolCall.objects.count() == 1


def test_chunks_without_end_are_refused_before_they_end(
    web: Served, ada: Caller, lookup: Tool
) -> None:
    sent = [
        ("Authorization", ada.http.headers["Authorization"]),
        ("Content-Type", "application/json"),
        ("Transfer-Encoding", "chunked"),
    ]
    endless = chunked(padded(3 * MIB)).removesuffix(b"0\r\n\r\n")
    with Line(web.port, limit_s=5) as line:
        answer = line.ask(head("POST", f"{API}/calls", sent) + endless)

    assert answer.status == 413
    assert answer.headers["connection"] == "close"


def test_no_body_comes_compressed(web: Served, ada: Caller, lookup: Tool) -> None:
    for encoding in ("gzip", "br", "deflate", "identity"):
        for path in ("/calls", "/sessions"):
            answer = post(web, ada, SUBMIT, ("Content-Encoding", encoding), path=path)
            assert answer.status == 415, (encoding, path)
    assert not ToolCall.objects.exists()


def test_two_lengths_or_a_length_beside_chunks_are_refused(
    web: Served, ada: Caller, lookup: Tool
) -> None:
    length = ("Content-Length", str(len(SUBMIT)))
    for framing in ([length, ("Content-Length", "3")], [length, ("Transfer-Encoding", "chunked")]):
        assert post(web, ada, SUBMIT, *framing).status in (0, 400), framing
    assert not ToolCall.objects.exists()


def test_what_follows_a_short_length_is_no_second_request(
    web: Served, ada: Caller, lookup: Tool
) -> None:
    smuggled = head(
        "POST",
        f"{API}/sessions",
        with_length(
            [
                ("Authorization", ada.http.headers["Authorization"]),
                ("Content-Type", "application/json"),
            ],
            b"{}",
        ),
    )
    answer = post(web, ada, SUBMIT + smuggled, ("Content-Length", str(len(SUBMIT) - 1)))

    assert answer.status in (400, 422)
    assert not ToolCall.objects.exists()
    assert not Session.objects.exists()


def test_slow_bodies_hold_up_nobody_and_end(web: Served, ada: Caller, lookup: Tool) -> None:
    sent = [
        ("Authorization", ada.http.headers["Authorization"]),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(SUBMIT))),
    ]
    lines = [Line(web.port) for _ in range(100)]
    for line in lines:
        line.socket.sendall(head("POST", f"{API}/calls", sent) + SUBMIT[:5])

    began = time.perf_counter()
    taken = ada.post("/calls", {"tool": "sandbox.lookup"}).elapsed.total_seconds()
    answers: list[int] = []
    readers = [
        threading.Thread(target=lambda line=line: answers.append(line.ask(b"").status))
        for line in lines
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(timeout=20)

    assert taken < 1
    assert answers == [408] * 100
    assert 9 < time.perf_counter() - began < 15
    for line in lines:
        line.close()
    assert ToolCall.objects.count() == 1
