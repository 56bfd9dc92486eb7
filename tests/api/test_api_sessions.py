"""Sessions and turns: opened once for a key, closed, and nobody else's."""

import pytest

from ledger import ids
from ledger.models import Session, Turn
from tests import builders, cast
from tests.api.callers import Caller, the_problem

BINDING = {"label": "Books", "working_directory": "/srv/books", "host": "box-1", "model": "m-1"}


def test_a_session_is_opened_with_its_binding(ada: Caller) -> None:
    answer = ada.post("/sessions", BINDING)

    session = answer.json()
    assert answer.status_code == 201
    assert session["binding"] == {
        "working_directory": "/srv/books", "host": "box-1", "model": "m-1", "epoch": 1,
    }  # fmt: skip
    assert ada.get(f"/sessions/{session['id']}").json() == session


def test_the_same_key_gives_the_same_session(ada: Caller) -> None:
    key = {"Idempotency-Key": "conversation-1"}
    first, second = (ada.post("/sessions", BINDING, headers=key) for _ in range(2))
    other = ada.post("/sessions", BINDING | {"host": "box-2"}, headers=key)

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    the_problem(other, 409, "key_reused")
    assert Session.objects.count() == 1


def test_at_most_one_turn_is_open_and_its_key_gives_it_back(ada: Caller) -> None:
    turns = f"/sessions/{ada.post('/sessions', {}).json()['id']}/turns"

    first = ada.post(turns, {"key": "q1"})
    again = ada.post(turns, {"key": "q1"})
    second = ada.post(turns, {"key": "q2"})

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    the_problem(second, 409, "turn_open")
    assert Turn.objects.count() == 1


def test_a_closed_turn_makes_room_for_the_next(ada: Caller) -> None:
    turns = f"/sessions/{ada.post('/sessions', {}).json()['id']}/turns"
    first = ada.post(turns, {"key": "q1"}).json()

    closed = ada.post(f"{turns}/{first['id']}/end", {"closed_as": "answered"}).json()
    again = ada.post(f"{turns}/{first['id']}/end", {"closed_as": "stopped"}).json()
    second = ada.post(turns, {"key": "q2"})

    assert (closed["open"], closed["closed_as"]) == (False, "answered")
    assert again["closed_as"] == "answered"
    assert (second.status_code, second.json()["number"]) == (201, 2)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/sessions", {"label": 7}),
        ("/sessions", {"label": "x" * 201}),
        ("/sessions", []),
        ("/sessions/{session}/turns", {"key": None}),
        ("/sessions/{session}/turns/{turn}/end", {"closed_as": "done"}),
        ("/sessions/{session}/turns/{turn}/end", {}),
    ],
)
def test_bodies_of_another_shape_are_refused_by_pointer(
    path: str, body: object, ada: Caller, acme: cast.Acme
) -> None:
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    address = path.format(session=session.id, turn=turn.id)

    problem = the_problem(ada.post(address, body), 422, "validation")

    assert problem["errors"][0]["detail"]


def test_sessions_of_others_read_as_absent(
    mallory: Caller, acme: cast.Acme, globex: cast.Globex
) -> None:
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    path = f"/sessions/{ids.shown('session', session.id)}"

    asked = [
        mallory.get(path),
        mallory.post(f"{path}/turns", {}),
        mallory.post(f"{path}/turns/{turn.id}/end", {"closed_as": "stopped"}),
    ]

    for answer in asked:
        the_problem(answer, 404, "not_found")
    turn.refresh_from_db()
    assert turn.closed_at is None


def test_strict_json_holds_beyond_submits(ada: Caller) -> None:
    """The framework's own parser would take each of these."""
    bad = {
        "application/json": (b'{"label":"a","label":"b"}', 422, "validation"),
        "text/plain": (b'{"label":"a"}', 415, "media_type"),
        "application/json; charset=utf-16": ('{"label":"a"}'.encode("utf-16"), 415, "media_type"),
    }

    for media_type, (body, status, code) in bad.items():
        sent = {"content": body, "headers": {"Content-Type": media_type}}
        answer = ada.http.post("/api/v1/sessions", **sent)
        the_problem(answer, status, code)
    assert not Session.objects.exists()
