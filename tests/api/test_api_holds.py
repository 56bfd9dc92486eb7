"""Twins, holds and stopped sessions as agents and people meet them over HTTP."""

from typing import Any

import pytest

from ledger import ids
from ledger.models import Interrupt, Session, Tool, Turn
from recovery import watchdog
from tests import builders, cast
from tests.api.callers import Caller, the_problem
from tests.api.conftest import PATIENT
from tests.ledger.test_twins import Talk, abandon

GROUNDS = {"grounds": "The guest list does not depend on the mail."}


@pytest.fixture
def session(acme: cast.Acme) -> Session:
    return builders.a_session(acme)


@pytest.fixture
def turn(session: Session) -> Turn:
    return builders.a_turn(session)


@pytest.fixture
def mail(acme: cast.Acme) -> Tool:
    return builders.a_tool(acme, "mail.send", **PATIENT)


@pytest.fixture
def approver(acme: cast.Acme, person: Any) -> Caller:
    cast.a_person("arno", acme.workspace, "approver")
    caller: Caller = person("arno")
    return caller


def wish(session: Session, turn: Turn, tool: str = "mail.send", **more: Any) -> dict[str, Any]:
    return {
        "tool": tool, "arguments": {"path": "report.txt"},
        "session": ids.shown("session", session.id), "turn": ids.shown("turn", turn.id),
    } | more  # fmt: skip


def test_a_repeat_is_answered_at_once_with_the_recorded_result(
    ada: Caller, acme: cast.Acme, session: Session, turn: Turn, mail: Tool
) -> None:
    first = builders.a_call(
        acme, "succeeded", tool=mail, session_id=session.id, turn_id=turn.id, tool_call_id="t1"
    )

    answer = ada.post("/calls", wish(session, turn, tool_call_id="t2", prompt_tokens=1200))

    call = answer.json()
    assert answer.status_code == 201
    assert (call["state"], call["effect"], call["replayed"]) == (
        "succeeded", "did_not_happen", True,
    )  # fmt: skip
    assert call["twin_of"] == ids.shown("call", first.id)
    assert call["result"]["json"] == {"ok": True}
    assert call["next_action"] == "use_result"
    shown = ada.get(f"/sessions/{ids.shown('session', session.id)}").json()
    assert (shown["repeats_prevented"], shown["tokens_saved"]) == (1, 1200)


def test_a_joined_repeat_waits_and_asks_nobody(
    ada: Caller, session: Session, turn: Turn, mail: Tool
) -> None:
    first = ada.post("/calls", wish(session, turn, tool_call_id="t1")).json()
    again = ada.post("/calls", wish(session, turn, tool_call_id="t2")).json()

    assert (again["state"], again["reason"]) == ("paused", "twin_open")
    assert (again["twin_of"], again["next_action"]) == (first["id"], "wait")
    assert again["notice"]["template"] == "twin_open"
    assert first["id"] in again["notice"]["text"]


def test_a_repeat_without_a_result_to_give_is_told_what_the_other_is(
    ada: Caller, acme: cast.Acme, session: Session, turn: Turn, mail: Tool
) -> None:
    place = {"session_id": session.id, "turn_id": turn.id, "tool_call_id": "t1"}
    first = builders.a_call(acme, "scheduled", tool=mail, **place)
    again = ada.post("/calls", wish(session, turn, tool_call_id="t2")).json()
    ada.post(f"/calls/{first.id}/cancellation")
    watchdog.end_holds()

    told = [ada.get(f"/calls/{each}").json() for each in (first.id, again["id"])]

    assert [each["state"] for each in told] == ["cancelled", "cancelled"]
    assert told[1]["notice"] == told[0]["notice"]


def test_a_turn_says_what_it_waits_for(
    ada: Caller, acme: cast.Acme, session: Session, turn: Turn, mail: Tool
) -> None:
    path = f"/sessions/{session.id}/turns/{turn.id}"
    assert ada.get(path).json()["continuable"] is True
    call = builders.a_call(acme, "ambiguous", tool=mail, session_id=session.id, turn_id=turn.id)

    shown = ada.get(path).json()

    assert (shown["continuable"], shown["waits_for"]) == (False, ids.shown("call", call.id))
    problem = the_problem(ada.post(f"{path}/end", {"closed_as": "answered"}), 409, "turn_unsettled")
    assert ids.shown("call", call.id) in problem["detail"]
    assert ada.post(f"{path}/end", {"closed_as": "interrupted"}).status_code == 200


def held(acme: cast.Acme, session: Session, turn: Turn, mail: Tool) -> str:
    place = {"session_id": session.id, "turn_id": turn.id}
    builders.a_call(acme, "ambiguous", tool=mail, **place)
    other = builders.a_tool(acme, "calendar.add", **PATIENT)
    return ids.shown("call", builders.a_call(acme, "paused", tool=other, **place).id)


def test_an_approver_lets_a_held_call_run(
    acme: cast.Acme, approver: Caller, session: Session, turn: Turn, mail: Tool
) -> None:
    call_id = held(acme, session, turn, mail)

    answers = [approver.post(f"/calls/{call_id}/hold-release", GROUNDS) for _ in range(2)]

    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0].json()["state"] == "scheduled"
    hold = Interrupt.objects.get(call=ids.read("call", call_id))
    assert (hold.answered_by, hold.grounds) == ("operator", GROUNDS["grounds"])
    other = approver.post(f"/calls/{call_id}/hold-release", GROUNDS | {"answer": "reject"})
    the_problem(other, 409, "interrupt_answered")


def test_nobody_else_answers_a_hold(
    acme: cast.Acme, ada: Caller, person: Any, session: Session, turn: Turn, mail: Tool
) -> None:
    path = f"/calls/{held(acme, session, turn, mail)}/hold-release"
    the_problem(person("olga").post(path, GROUNDS), 403, "permission_missing")
    the_problem(ada.post(path, GROUNDS), 403, "permission_missing")


def test_what_is_held_by_nothing_is_not_released(
    acme: cast.Acme, approver: Caller, globex: cast.Globex
) -> None:
    call = builders.a_call(acme)
    theirs = builders.a_call(globex)
    path = "/calls/{}/hold-release"
    the_problem(approver.post(path.format(call.id), GROUNDS), 409, "not_held")
    the_problem(approver.post(path.format(theirs.id), GROUNDS), 404, "not_found")
    the_problem(approver.post(path.format(call.id), {"grounds": ""}), 422, "validation")


def test_an_operator_stops_a_session_and_lets_it_go_on(
    ada: Caller, person: Any, session: Session, turn: Turn, mail: Tool
) -> None:
    olga, path = person("olga"), f"/sessions/{session.id}"

    stopped = olga.post(f"{path}/stop", GROUNDS)
    call = ada.post("/calls", wish(session, turn, tool_call_id="t1"))
    resumed = olga.post(f"{path}/resume", GROUNDS)
    again = ada.post("/calls", wish(session, turn, tool_call_id="t2"))

    assert (stopped.status_code, resumed.status_code) == (200, 200)
    assert stopped.json()["stopped_at"] is not None
    assert (call.status_code, call.json()["state"], call.json()["reason"]) == (
        201, "rejected", "stopped",
    )  # fmt: skip
    assert resumed.json()["stopped_at"] is None
    assert again.json()["state"] == "scheduled"


def test_no_key_and_no_neighbour_stops_a_session(
    ada: Caller, globex: cast.Globex, person: Any, session: Session
) -> None:
    path = f"/sessions/{session.id}/stop"
    the_problem(ada.post(path, GROUNDS), 403, "permission_missing")
    the_problem(person("mallory").post(path, GROUNDS), 404, "not_found")
    session.refresh_from_db()
    assert session.stopped_at is None


# Their list


def listed(who: Caller, query: str = "") -> list[dict[str, Any]]:
    answer = who.get(f"/holds?{query}")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_held_calls_are_listed_with_what_they_wait_for(
    ada: Caller, mallory: Caller, acme: cast.Acme
) -> None:
    waiting = builders.a_call(acme, "paused")
    talk = Talk(acme, "side_effect", delivery_delay_s=0)
    abandon(acme, talk.ask("ambiguous"))
    asking = talk.ask()

    newest, older = listed(ada)

    assert (newest["call"], newest["reason"]) == (ids.shown("call", asking.id), "twin_abandoned")
    assert (older["call"], older["tool"]) == (ids.shown("call", waiting.id), waiting.tool)
    assert older["session"] == ids.shown("session", waiting.session_id)
    assert older["asked_at"] < older["expires_at"]
    assert listed(ada, "needs_answer=true") == [newest], "the other ends by itself"
    assert listed(ada, "sort=oldest") == [older, newest]
    assert listed(mallory) == []


def test_holds_take_the_filters_of_the_inbox(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "paused")
    for query in ("kind=hold", "state=paused", "class=side_effect", "taken=nobody", "aside=no",
                  f"session={call.session_id}", "from=2020-01-01", "agent=ada"):  # fmt: skip
        assert len(listed(ada, query)) == 1, query
    for query in ("kind=recovery", "taken=olga", "assigned=somebody", "aside=yes", "overdue=true",
                  "until=2020-01-01", "age_min=1", "agent=ben", "state=running"):  # fmt: skip
        assert listed(ada, query) == [], query
    the_problem(ada.get("/holds?kind=x"), 422, "validation")


def test_no_filter_shows_an_agent_the_hold_of_another(
    ada: Caller, alma: Caller, acme: cast.Acme
) -> None:
    builders.a_call(acme, "paused", agent=acme.ben)
    assert len(listed(alma, "agent=ben")) == 1
    assert listed(ada) == listed(ada, "agent=ben") == listed(ada, "kind=hold") == []
