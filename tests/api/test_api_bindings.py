"""Bindings over HTTP: two processes of one agent, of which a person replaces one."""

from typing import Any

import pytest

from ledger import ids
from ledger.models import ForeignAsk, Message, Offer, Session, Tool, ToolCall, Turn
from tests import builders, cast, waits
from tests.api.callers import Caller, the_problem

HERE = {"working_directory": "/srv/books", "host": "box-1"}
MOVED = {"host": "box-2", "grounds": "box-1 has no power."}
EPOCH = "Clearhouse-Epoch"


@pytest.fixture
def session(acme: cast.Acme) -> Session:
    return builders.a_session(acme, **HERE)


@pytest.fixture
def olga(acme: cast.Acme, person: Any) -> Caller:
    return person("olga")  # type: ignore[no-any-return]


def at(session: Session, rest: str = "") -> str:
    return f"/sessions/{ids.shown('session', session.id)}{rest}"


def rebound(olga: Caller, session: Session, **more: Any) -> None:
    answer = olga.post(at(session, "/binding"), MOVED | {"epoch": 1} | more)
    assert answer.status_code == 200, answer.text


def test_a_rebind_answers_the_new_epoch_and_its_tag(olga: Caller, session: Session) -> None:
    tag = olga.get(at(session, "/binding")).headers["ETag"]
    answer = olga.post(at(session, "/binding"), MOVED, headers={"If-Match": tag})
    assert (tag, answer.headers["ETag"]) == ('"1"', '"2"')
    assert answer.json()["binding"] == HERE | {"host": "box-2", "model": "", "epoch": 2}


def test_a_rebind_names_the_epoch_that_was_looked_at(olga: Caller, session: Session) -> None:
    the_problem(olga.post(at(session, "/binding"), MOVED), 428, "precondition_required")
    rebound(olga, session)
    late = MOVED | {"host": "box-3"}
    conflict = olga.post(at(session, "/binding"), late | {"epoch": 1})
    failed = olga.post(at(session, "/binding"), late, headers={"If-Match": '"1"'})
    assert "olga raised it" in the_problem(conflict, 409, "version_conflict")["detail"]
    the_problem(failed, 412, "version_conflict")
    session.refresh_from_db()
    assert (session.epoch, session.host) == (2, "box-2")


def test_a_viewer_and_a_key_bind_nothing(person: Any, ada: Caller, session: Session) -> None:
    for caller in (person("vera"), ada):
        answer = caller.post(at(session, "/binding"), MOVED | {"epoch": 1})
        the_problem(answer, 403, "permission_missing")
    session.refresh_from_db()
    assert session.epoch == 1


def test_who_bound_it_anew_is_on_file(olga: Caller, session: Session) -> None:
    rebound(olga, session)
    (change,) = olga.get(at(session, "/changes")).json()["items"]
    assert (change["kind"], change["by"], change["grounds"]) == (
        "rebound", "olga", MOVED["grounds"],
    )  # fmt: skip
    assert change["facts"]["changed"] == {"host": ["box-1", "box-2"]}


def test_a_process_that_comes_back_gets_its_turn(ada: Caller, session: Session) -> None:
    turn = builders.a_turn(session)
    answer = ada.post(at(session, "/resumption"), HERE | {"epoch": 1})
    assert answer.json()["turn"]["id"] == ids.shown("turn", turn.id)
    the_problem(ada.post(at(session, "/resumption"), {"host": "box-2"}), 409, "binding_drift")


@pytest.mark.parametrize("said", [{EPOCH: "1"}, {}], ids=["said", "unsaid"])
def test_a_process_that_was_replaced_can_change_nothing(
    ada: Caller, olga: Caller, acme: cast.Acme, session: Session, lookup: Tool, said: dict[str, str]
) -> None:
    turn = builders.a_turn(session)
    call = builders.a_call(acme, tool=lookup, session_id=session.id, turn_id=turn.id)
    here = {"session": ids.shown("session", session.id), "turn": ids.shown("turn", turn.id)}
    turns = at(session, "/turns")
    text = {"format": "openai-chat", "message": {"role": "user", "content": "And now?"}}
    reply = {"format": "openai-chat", "reply": {"role": "assistant", "content": "Well."}}
    shown = {"turn": here["turn"], "mode": "append_both", "close": True}
    offer = ada.post(at(session, "/deliveries"), shown).json()
    rebound(olga, session)
    before = list(ToolCall.objects.values_list("id", "seq"))

    answers = [
        ada.post(f"{turns}/{here['turn']}/messages", text, headers=said),
        ada.post(f"{turns}/{here['turn']}/replies", reply, headers=said),
        ada.post(f"{turns}/{here['turn']}/interruption", {}, headers=said),
        ada.post(at(session, "/deliveries"), shown, headers=said),
        ada.post(f"/deliveries/{offer['id']}/acknowledgement", {}, headers=said),
        ada.post("/calls", here | {"tool": lookup.name}, headers=said),
        ada.post(f"/calls/{ids.shown('call', call.id)}/cancellation", headers=said),
        ada.post(f"{turns}/{here['turn']}/end", {"closed_as": "stopped"}, headers=said),
        ada.post(turns, {"key": "next"}, headers=said),
        ada.post(at(session, "/resumption"), HERE, headers=said),
    ]

    for answer in answers:
        the_problem(answer, 409, "stale_epoch")
    assert list(ToolCall.objects.values_list("id", "seq")) == before
    assert (Turn.objects.get().takes_calls, Message.objects.count()) == (True, 0)
    assert not Offer.objects.filter(acknowledged_at__isnull=False).exists()


def test_the_process_in_its_place_states_the_epoch_once_for_each_request(
    ada: Caller, olga: Caller, session: Session, lookup: Tool
) -> None:
    rebound(olga, session)
    wish = {"session": ids.shown("session", session.id), "tool": lookup.name}
    new = {EPOCH: ada.get(at(session)).headers["ETag"].strip('"')}

    by_header = ada.post("/calls", wish | {"arguments": {"n": 1}}, headers=new)
    by_body = ada.post("/calls", wish | {"arguments": {"n": 2}, "epoch": 2})
    turn = ada.post(at(session, "/turns"), {"key": "k"}, headers=new).json()["id"]
    reply = {
        "format": "openai-chat",
        "names": {"look": lookup.name},
        "reply": {
            "role": "assistant",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ],
        },
    }
    replied = ada.post(at(session, f"/turns/{turn}/replies"), reply, headers=new)
    batch = {"calls": [wish | {"arguments": {"n": 3}}, wish | {"epoch": 1, "arguments": {"n": 4}}]}
    items = ada.post("/calls", batch, headers=new).json()["items"]

    assert (by_header.status_code, by_body.status_code, replied.status_code) == (201, 201, 201)
    assert [each["state"] for each in replied.json()["calls"]] == ["scheduled"]
    assert (items[0]["state"], items[1]["code"]) == ("scheduled", "stale_epoch")


def test_who_asks_for_what_is_anothers_is_told_404_and_noted(
    mallory: Caller, ada: Caller, acme: cast.Acme, globex: cast.Globex, session: Session
) -> None:
    call = builders.a_call(acme, session_id=session.id)
    builders.a_tool(globex, "pay")
    asked = [
        mallory.get(at(session)),
        mallory.get(f"/calls/{ids.shown('call', call.id)}"),
        mallory.post(f"/calls/{ids.shown('call', call.id)}/cancellation"),
        mallory.get(f"/calls/{ids.shown('call', ids.new())}"),
        mallory.post(at(session, "/resumption"), {}),
        mallory.post("/calls", {"tool": "pay", "session": ids.shown("session", session.id)}),
    ]
    for answer in asked:
        the_problem(answer, 404, "not_found")
    ada.get(at(session))

    waits.until(lambda: told() == [("call", 2), ("session", 3)], what="the asks to be noted")
    assert set(ForeignAsk.objects.values_list("workspace", "by_id")) == {
        (acme.workspace.id, globex.mallory.id.hex)
    }


def told() -> list[tuple[str, int]]:
    return list(ForeignAsk.objects.order_by("noun").values_list("noun", "times"))


@pytest.mark.parametrize("epoch", ["one", "-1", "1.0", "", "9" * 10, "1, 1"])
def test_an_epoch_that_is_no_number_is_refused(
    ada: Caller, session: Session, lookup: Tool, epoch: str
) -> None:
    wish = {"session": ids.shown("session", session.id), "tool": lookup.name}
    the_problem(ada.post("/calls", wish, headers={EPOCH: epoch}), 422, "validation")
    assert not ToolCall.objects.exists()
