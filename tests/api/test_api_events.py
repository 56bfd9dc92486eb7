"""The stream of a session's events, over the web as it runs: followed, left, and taken up again."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from ledger import keys, sessions
from ledger.models import ApiKey, Session, Turn
from tests import builders, cast, waits
from tests.api.callers import Caller, the_problem
from tests.api.served import Served

LIMIT_S = 30


class Follower:
    """One open stream, read event by event."""

    def __init__(self, caller: Caller, session: Session, **headers: str) -> None:
        self.stream = caller.http.stream(
            "GET", "/api/v1/events", params={"session": f"ses_{session.id.hex}"}, headers=headers,
            timeout=LIMIT_S,
        )  # fmt: skip
        self.answer = self.stream.__enter__()
        assert self.answer.status_code == 200, self.answer.read()
        self._lines = self.answer.iter_lines()

    def block(self) -> dict[str, str]:
        """The members of the next block, empty for a comment alone."""
        found: dict[str, str] = {}
        for line in self._lines:
            if not line:
                return found
            name, _, value = line.partition(": ")
            found[name] = value
        raise AssertionError("the stream ended")

    def event(self) -> dict[str, Any]:
        """The next event with its data."""
        while not (found := self.block()).get("event"):
            pass
        return found | {"data": json.loads(found["data"])}

    def begins(self) -> str:
        """Wait for the place from which on events are told."""
        while not (found := self.block()).get("id"):
            pass
        return found["id"]

    def close(self) -> None:
        self.stream.__exit__(None, None, None)


@pytest.fixture
def turn(acme: cast.Acme) -> Turn:
    return builders.a_turn(builders.a_session(acme))


@pytest.fixture
def follower(ada: Caller, turn: Turn) -> Iterator[Follower]:
    found = Follower(ada, turn.session)
    yield found
    found.close()


def settled(acme: cast.Acme, turn: Turn) -> Any:
    return builders.a_call(acme, "succeeded", session_id=turn.session_id, turn_id=turn.id)


def test_a_settled_call_and_the_end_of_its_turn_are_told(
    acme: cast.Acme, turn: Turn, follower: Follower
) -> None:
    assert follower.answer.headers["Content-Type"] == "text/event-stream"
    follower.begins()
    call = settled(acme, turn)
    event = follower.event()
    assert (event["event"], event["data"]["call"]) == ("call.settled", str(call))
    assert (event["data"]["state"], event["data"]["seq"]) == ("succeeded", call.seq)
    sessions.close_turn(turn=turn, closed_as="answered")
    assert follower.event()["event"] == "turn.closed"


def test_a_stream_is_taken_up_behind_the_last_event(
    acme: cast.Acme, ada: Caller, turn: Turn
) -> None:
    first = Follower(ada, turn.session)
    first.begins()
    settled(acme, turn)
    last = first.event()["id"]
    first.close()
    missed = settled(acme, turn)
    again = Follower(ada, turn.session, **{"Last-Event-ID": last})
    event = again.event()
    again.close()
    assert event["data"]["call"] == str(missed)


def test_a_stream_from_0_begins_with_the_first_event(
    acme: cast.Acme, ada: Caller, turn: Turn
) -> None:
    call = settled(acme, turn)
    stream = Follower(ada, turn.session, **{"Last-Event-ID": "0"})
    assert stream.event()["data"]["call"] == str(call)
    stream.close()


def test_a_place_beyond_the_present_is_told_as_a_reset(ada: Caller, turn: Turn) -> None:
    stream = Follower(ada, turn.session, **{"Last-Event-ID": f"{2**40}-{'0' * 32}-0"})
    assert stream.event()["event"] == "reset"
    stream.close()


def test_a_revoked_key_ends_the_stream(ada: Caller, turn: Turn, follower: Follower) -> None:
    follower.begins()
    keys.revoke(key_id=ApiKey.objects.get().id)
    assert follower.event()["event"] == "end"


def test_a_session_of_another_workspace_reads_as_absent(mallory: Caller, turn: Turn) -> None:
    answer = mallory.get(f"/events?session=ses_{turn.session_id.hex}")
    the_problem(answer, 404, "not_found")


def test_what_is_no_place_is_refused(ada: Caller, turn: Turn) -> None:
    answer = ada.get(
        f"/events?session=ses_{turn.session_id.hex}", headers={"Last-Event-ID": "seven"}
    )
    the_problem(answer, 422, "validation")


def test_streams_of_an_agent_are_bounded_and_given_back_when_their_clients_are_gone(
    ada: Caller, turn: Turn, web: Served
) -> None:
    path = f"/events?session=ses_{turn.session_id.hex}"
    token = ada.http.headers["Authorization"]
    request = f"GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n\r\n"
    lines = []
    for _ in range(8):
        line = socket.create_connection(("127.0.0.1", web.port), timeout=LIMIT_S)
        line.sendall(request.encode())
        assert b"200 OK" in line.recv(4096)
        lines.append(line)
    the_problem(ada.get(path), 429, "rate_limited")
    for line in lines:
        line.close()

    def is_free() -> bool:
        stream = ada.http.stream("GET", f"/api/v1{path}", timeout=LIMIT_S)
        with stream as answer:
            return answer.status_code == 200

    waits.until(is_free, what="the streams to be given back", limit_s=LIMIT_S)
