"""Compactions and hand-offs over the API: cut, carried over, offered, taken, refused in words."""

from collections.abc import Callable
from typing import Any

from ledger import ids
from ledger.models import Compaction, HandOff, Session, Tool, Turn
from tests import builders, cast
from tests.api.callers import Caller, the_problem


def a_session_with_a_call(acme: cast.Acme, lookup: Tool) -> tuple[str, str]:
    """A closed turn without calls, then an open one with a call: session and call as shown."""
    session = builders.a_session(acme)
    Turn.objects.filter(id=builders.a_turn(session).id).update(
        closed_at=session.created_at, closed_as="answered"
    )
    call = builders.a_call(acme, "scheduled", tool=lookup, session_id=session.id,
                           turn_id=builders.a_turn(session).id, tool_call_id="toolu_1")  # fmt: skip
    return ids.shown("session", session.id), ids.shown("call", call.id)


def prepared(who: Caller, session: str, query: str = "") -> dict[str, Any]:
    answer = who.get(f"/sessions/{session}/transcript/cuts{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def body(cuts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"token": cuts["token"], "cut": {"turn": 1, "position": 0}, "summary": "Done.", **more}


def test_a_session_is_cut_and_its_open_call_is_carried_over(
    ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    session, call = a_session_with_a_call(acme, lookup)
    cuts = prepared(ada, session)
    assert cuts["cuts"] == [{"turn": 1, "position": 0, "passes": []}]
    assert (cuts["allowed"], cuts["valid_s"]) == (cuts["cuts"][0], 120)
    assert call in cuts["carry_over_text"]
    answer = ada.post(f"/sessions/{session}/compactions", body(cuts))
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert (made["unresolved"], made["version"]) == ([call], cuts["version"] + 1)
    again = ada.post(f"/sessions/{session}/compactions", body(cuts))
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    read = ada.get(f"/sessions/{session}/compactions/{made['id']}").json()
    assert (read["summary"], read["missing"]) == ("Done.", [])


def test_reading_the_cuts_changes_no_row(ada: Caller, acme: cast.Acme, lookup: Tool) -> None:
    session, _ = a_session_with_a_call(acme, lookup)
    before = list(Session.objects.values())
    prepared(ada, session, "?turn=1&position=0")
    assert (list(Session.objects.values()), Compaction.objects.count()) == (before, 0)


def test_refusals_are_told_in_words(ada: Caller, acme: cast.Acme, lookup: Tool) -> None:
    session, _ = a_session_with_a_call(acme, lookup)
    path, cuts = f"/sessions/{session}/compactions", prepared(ada, session)
    wrong = {"turn": 2, "position": 0}
    the_problem(ada.post(path, body(cuts, cut=wrong)), 422, "cut_refused")
    the_problem(ada.post(path, body(cuts, token="made up")), 422, "validation")
    the_problem(ada.post(path, body(cuts, epoch=9)), 409, "stale_epoch")
    the_problem(ada.get(f"/sessions/{session}/transcript/cuts?position=1"), 422, "validation")
    Session.objects.update(version=99)
    the_problem(ada.post(path, body(cuts)), 409, "stale_transcript")
    stale = f"/sessions/{session}/transcript/cuts?version={cuts['version']}"
    the_problem(ada.get(stale), 409, "stale_transcript")
    assert not Compaction.objects.exists()


def test_an_agents_own_transcript_gets_its_missing_lines(
    ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    session, call = a_session_with_a_call(acme, lookup)
    made = ada.post(f"/sessions/{session}/compactions", body(prepared(ada, session))).json()
    path = f"/sessions/{session}/compactions/{made['id']}"
    found = ada.post(f"{path}/check", {"transcript": [{"role": "user", "content": "Go on."}]})
    assert found.status_code == 201, found.text
    assert (found.json()["complete"], found.json()["missing"][0]["call"]) == (False, call)
    assert ada.get(path).json()["missing"][0]["call"] == call
    whole = ada.post(f"{path}/check", {"transcript": [found.json()["missing_text"]]}).json()
    assert whole["complete"] is True


def test_calls_are_offered_read_and_taken(
    ada: Caller, acme: cast.Acme, agent: Callable[..., Caller], lookup: Tool
) -> None:
    session, call = a_session_with_a_call(acme, lookup)
    ben, mine = agent(acme.ben), ids.shown("session", builders.a_session(acme, agent=acme.ben).id)
    offer = {"to": {"agent": "ben"}, "grounds": "Ben knows the books.", "key": "k"}
    made = ada.post(f"/sessions/{session}/handoffs", offer)
    assert (made.status_code, made.json()["state"]) == (201, "offered")
    again = ada.post(f"/sessions/{session}/handoffs", offer)
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
    path = f"/handoffs/{made.json()['id']}"
    assert [line["call"] for line in ben.get(path).json()["lines"]] == [call]
    the_problem(ben.get(f"/calls/{call}"), 404, "not_found")
    taken = ben.post(f"{path}/acceptance", {"session": mine})
    assert (taken.status_code, taken.json()["calls"]) == (201, [call])
    assert ben.post(f"{path}/acceptance", {"session": mine}).status_code == 200
    assert ben.get(f"/calls/{call}").json()["id"] == call
    assert [each["id"] for each in ben.get("/calls").json()["items"]] == [call]
    the_problem(ada.post(f"/calls/{call}/cancellation"), 404, "not_found")


def test_a_declined_offer_leaves_everything_where_it_was(
    ada: Caller, acme: cast.Acme, agent: Callable[..., Caller], lookup: Tool
) -> None:
    session, call = a_session_with_a_call(acme, lookup)
    ben = agent(acme.ben)
    offer = {"to": {"agent": "ben"}, "grounds": "Ben knows the books."}
    path = f"/handoffs/{ada.post(f'/sessions/{session}/handoffs', offer).json()['id']}"
    said = ben.post(f"{path}/refusal", {"why": "Not mine."})
    assert (said.status_code, said.json()["state"]) == (201, "declined")
    the_problem(ben.post(f"{path}/acceptance", {"session": session}), 404, "not_found")
    assert ada.get(f"/calls/{call}").json()["state"] == "scheduled"


def test_nothing_of_it_is_seen_from_another_workspace(
    ada: Caller, mallory: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    session, _ = a_session_with_a_call(acme, lookup)
    made = ada.post(f"/sessions/{session}/compactions", body(prepared(ada, session))).json()
    offer = {"to": {"agent": "ben"}, "grounds": "Ben knows the books."}
    hand_off = ada.post(f"/sessions/{session}/handoffs", offer).json()["id"]
    of_session = f"/sessions/{session}"
    for path in (f"{of_session}/transcript/cuts", f"{of_session}/compactions/{made['id']}",
                 f"/handoffs/{hand_off}"):  # fmt: skip
        the_problem(mallory.get(path), 404, "not_found")
    the_problem(mallory.post(f"/sessions/{session}/handoffs", offer), 404, "not_found")
    the_problem(mallory.post(f"/handoffs/{hand_off}/acceptance", {}), 404, "not_found")
    assert HandOff.objects.get().ended_at is None
