"""Lists and what belongs to one call: filters, pages, events, attempts, verdict."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest

from ledger import ids, sessions
from ledger.models import Tool
from tests import builders, cast
from tests.api.callers import Caller, the_problem


def listed(who: Caller, query: str = "") -> list[dict[str, Any]]:
    answer = who.get(f"/calls?{query}")
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_calls_are_listed_newest_first_and_only_the_workspaces_own(
    ada: Caller, mallory: Caller, acme: cast.Acme, globex: cast.Globex
) -> None:
    made = [builders.a_call(acme) for _ in range(3)]
    builders.a_call(globex)

    assert [call["id"] for call in listed(ada)] == [
        ids.shown("call", call.id) for call in reversed(made)
    ]
    assert len(listed(mallory)) == 1


def test_filters_narrow_and_combine(ada: Caller, acme: cast.Acme) -> None:
    builders.a_call(acme, "succeeded")
    failed = builders.a_call(acme, "failed")
    read = builders.a_call(acme, "scheduled", "read_only")

    assert {call["state"] for call in listed(ada, "state=succeeded,failed")} == {
        "succeeded", "failed",
    }  # fmt: skip
    assert [call["id"] for call in listed(ada, f"tool={failed.tool}&state=failed")] == [
        ids.shown("call", failed.id)
    ]
    assert len(listed(ada, "recovery_class=read_only&effect=none")) == 1
    assert [call["tool"] for call in listed(ada, "state=scheduled")] == [read.tool]
    assert listed(ada, f"tool={failed.tool}&state=expired") == []
    assert {call["cause"] for call in listed(ada, "cause=validation")} == {"validation"}


def test_calls_of_a_session_and_of_a_turn_are_found(ada: Caller, acme: cast.Acme) -> None:
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    within = builders.a_call(acme, session_id=session.id, turn_id=turn.id)
    builders.a_call(acme)
    wanted = [ids.shown("call", within.id)]

    for query in (f"session={ids.shown('session', session.id)}", f"turn={turn.id}"):
        assert [call["id"] for call in listed(ada, query)] == wanted


def test_no_settled_result_lists_what_nobody_has_an_outcome_for(
    ada: Caller, acme: cast.Acme
) -> None:
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    left_open = builders.a_call(acme, session_id=session.id, turn_id=turn.id)
    wanted = {builders.a_call(acme, state).id for state in ("interrupted", "ambiguous")}
    builders.a_call(acme, "succeeded")
    builders.a_call(acme, "scheduled")
    sessions.close_turn(turn=turn, closed_as="stopped")

    found = {call["id"] for call in listed(ada, "no_settled_result=true")}

    assert found == {ids.shown("call", each) for each in wanted | {left_open.id}}


def test_pages_follow_each_other_without_gap_or_repeat(
    ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    made = [ids.shown("call", builders.a_call(acme, tool=lookup).id) for _ in range(7)]
    seen, cursor = [], ""
    for _ in range(4):
        answer = ada.get(f"/calls?limit=2&cursor={cursor}")
        seen += [call["id"] for call in answer.json()["items"]]
        cursor = answer.json()["next_cursor"]
        named = f'</api/v1/calls?limit=2&cursor={cursor}>; rel="next"' if cursor else None
        assert answer.headers.get("link") == named

    assert seen == made[::-1]
    assert cursor is None


def test_a_cursor_is_bound_to_its_filters(ada: Caller, acme: cast.Acme, lookup: Tool) -> None:
    for _ in range(3):
        builders.a_call(acme, tool=lookup)
    cursor = ada.get("/calls?limit=1&state=scheduled").json()["next_cursor"]

    assert ada.get(f"/calls?limit=1&state=scheduled&cursor={cursor}").status_code == 200
    for query in (f"cursor={cursor}", f"state=succeeded&cursor={cursor}"):
        the_problem(ada.get(f"/calls?{query}"), 422, "validation")


@pytest.mark.parametrize(
    "query",
    [
        "state=done", "state=%00", "effect=maybe", "cause=%F0%9F%98%80", "recovery_class=",
        "tool=%00", "tool=a%00b", "tool=,", "tool=" + "a" * 129, "limit=0", "limit=201",
        "limit=-1", "limit=x", "limit=1.5", "limit=" + "9" * 5000, "cursor=x", "cursor=%C3%A9",
        "cursor=AAAA", "cursor=%00", "no_settled_result=perhaps",
    ],
)  # fmt: skip
def test_a_query_that_means_nothing_is_refused(query: str, ada: Caller) -> None:
    answer = ada.get(f"/calls?{query}")

    if query == "recovery_class=":
        assert answer.status_code == 200  # an empty filter is none
    else:
        the_problem(answer, 422, "validation")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("state=done", "it is one of recorded,"), ("class=x", "class has no value 'x'"),
        ("recovery_class=x", "recovery_class has no value"), ("session=x", "no id of a session"),
        ("session=x%00", "has a NUL character"),
        ("turn=x", "no id of a turn"), ("bulk=1", "no id of a bulk run"),
        ("policy=0", "policy is a number from 1"), ("repeats=400", "number from 1 to 366"),
        ("saw=gossip", "it is one of nothing yet,"), ("read=no", "it is one of yes, not_yet"),
        ("basis=rumour", "it is one of tool result,"), ("from=yesterday", "from is a date"),
        ("until=2027-02-30", "until is a date"), ("agent=%00", "without NUL"),
        ("taken=%00", "without NUL"), ("q=" + "x" * 301, "at most 300"),
        ("sort=oldest,newest", "sort is newest or oldest"),
    ],
)  # fmt: skip
def test_a_value_that_says_nothing_is_refused_with_what_it_may_be(
    query: str, says: str, ada: Caller
) -> None:
    assert says in the_problem(ada.get(f"/calls?{query}"), 422, "validation")["detail"]


def test_a_name_that_is_no_filter_is_not_looked_at(ada: Caller, acme: cast.Acme) -> None:
    builders.a_call(acme)

    assert len(listed(ada, "colour=green")) == 1


def test_the_class_goes_by_the_consoles_name_too(ada: Caller, acme: cast.Acme) -> None:
    read = builders.a_call(acme, "scheduled", "read_only")
    builders.a_call(acme)

    for name in ("class", "recovery_class"):
        assert [each["id"] for each in listed(ada, f"{name}=read_only")] == [
            ids.shown("call", read.id)
        ]
    assert listed(ada, "class=read_only&recovery_class=side_effect") == []


def test_a_moment_without_an_offset_is_in_utc(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme)
    before = call.recorded_at - timedelta(seconds=1)
    tokyo = before.astimezone(ZoneInfo("Asia/Tokyo")).isoformat()

    for moment in (f"{before:%Y-%m-%dT%H:%M:%S.%fZ}", f"{before:%Y-%m-%dT%H:%M:%S.%f}", tokyo):
        assert len(listed(ada, urlencode({"from": moment}))) == 1, moment
        assert listed(ada, urlencode({"until": moment})) == [], moment


def test_the_oldest_come_first_where_that_is_asked(
    ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    made = [ids.shown("call", builders.a_call(acme, tool=lookup).id) for _ in range(3)]
    first = ada.get("/calls?sort=oldest&limit=2").json()
    rest = ada.get(f"/calls?sort=oldest&limit=2&cursor={first['next_cursor']}").json()

    assert [call["id"] for call in first["items"] + rest["items"]] == made
    assert rest["next_cursor"] is None
    the_problem(ada.get(f"/calls?limit=2&cursor={first['next_cursor']}"), 422, "validation")


FILTERS = {
    "state": "scheduled", "class": "side_effect", "agent": "ben", "saw": "nothing yet",
    "taken": "nobody", "from": "2020-01-01", "policy": "1", "read": "not_yet", "effect": "none",
}  # fmt: skip


def test_no_filter_shows_an_agent_the_calls_of_another(ada: Caller, acme: cast.Acme) -> None:
    session = builders.a_session(acme, agent=acme.ben)
    of_ben = builders.a_call(
        acme, agent=acme.ben, session_id=session.id, idempotency_key="of-ben", tool_call_id="t_9"
    )
    asked = FILTERS | {
        "session": str(session.id), "tool": of_ben.tool, "q": ids.shown("call", of_ben.id),
    }  # fmt: skip
    for name, value in [*asked.items(), ("q", "of-ben"), ("q", "t_9")]:
        assert listed(ada, urlencode({name: value})) == [], name


# Sessions


def names_of(who: Caller, query: str = "") -> list[str]:
    return [each["label"] for each in who.get(f"/sessions?{query}").json()["items"]]


def test_an_agent_lists_its_own_sessions_and_a_person_those_of_the_workspace(
    ada: Caller, mallory: Caller, alma: Caller, acme: cast.Acme
) -> None:
    builders.a_session(acme, label="Ada's")
    builders.a_session(acme, label="Ben's", agent=acme.ben)

    assert names_of(ada) == ["Ada's"]
    assert names_of(ada, "agent=ben") == names_of(ada, "q=ben") == []
    assert names_of(alma) == ["Ben's", "Ada's"]
    assert names_of(alma, "agent=ben") == names_of(alma, "q=BEN") == ["Ben's"]
    assert names_of(mallory) == []


def test_sessions_are_kept_by_what_stands_open_in_them(ada: Caller, acme: cast.Acme) -> None:
    quiet = builders.a_session(acme, label="quiet")
    turning = builders.a_session(acme, label="turning")
    builders.a_turn(turning)
    doubtful = builders.a_session(acme, label="doubtful")
    builders.a_call(acme, "ambiguous", session_id=doubtful.id)

    assert names_of(ada, "show=open") == ["turning"]
    assert names_of(ada, "show=unresolved") == ["doubtful"]
    assert names_of(ada, "show=open,unresolved") == ["doubtful", "turning"]
    assert names_of(ada, "show=drift") == names_of(ada, "show=stopped") == []
    the_problem(ada.get("/sessions?show=quiet"), 422, "validation")
    one = ada.get(f"/sessions/{ids.shown('session', quiet.id)}").json()
    assert one in ada.get("/sessions").json()["items"]


def test_events_come_in_order_with_their_hashes(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "succeeded")

    events = ada.get(f"/calls/{ids.shown('call', call.id)}/events").json()["items"]

    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event["kind"] for event in events] == [
        "recorded", "scheduled", "started", "crossed", "succeeded",
    ]  # fmt: skip
    assert len({event["hash"] for event in events}) == 5
    assert events[-1]["to_state"] == "succeeded"


def test_attempts_say_who_held_the_fence_and_what_came_of_it(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", crossed=True)
    builders.lost(call)

    (attempt,) = ada.get(f"/calls/{ids.shown('call', call.id)}/attempts").json()["items"]

    assert (attempt["fence"], attempt["worker"]) == (1, "worker-1")
    assert attempt["crossed_at"]
    assert attempt["outcome"] == "lost"


@pytest.mark.parametrize("in_state", sorted(builders.WALKS))
def test_every_verdict_names_events_that_exist(in_state: str, ada: Caller, acme: cast.Acme) -> None:
    kind = "long_running" if in_state == "parked" else "side_effect"
    path = f"/calls/{ids.shown('call', builders.a_call(acme, in_state, kind).id)}"

    verdict = ada.get(f"{path}/verdict").json()
    known = {event["seq"] for event in ada.get(f"{path}/events").json()["items"]}

    assert verdict["decided"]
    for question in ("started", "effect", "model_saw"):
        assert verdict[question]["sentence"]
        assert set(verdict[question]["events"]) <= known
    assert verdict["started"]["events"]


def test_an_incident_names_the_runbook_of_its_failure_point(ada: Caller, acme: cast.Acme) -> None:
    named = {"runbook": "Ask Olga.", "runbooks": {"during_execution": "https://wiki.example/sent"}}
    builders.a_call(acme, "ambiguous", policy=named)
    (incident,) = ada.get("/incidents").json()["items"]
    assert incident["runbook"] == "https://wiki.example/sent"
    assert ada.get(f"/incidents/{incident['id']}").json()["runbook"] == incident["runbook"]


def test_incidents_are_read_and_filtered(ada: Caller, mallory: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "ambiguous")
    builders.a_call(acme, "succeeded")

    (incident,) = ada.get("/incidents?open=true").json()["items"]
    one = ada.get(f"/incidents/{incident['id']}").json()

    assert {name: one[name] for name in incident} == incident
    assert incident["call"] == ids.shown("call", call.id)
    assert incident["failure_point"]
    assert incident["steps"]
    assert ada.get("/incidents?open=false").json()["items"] == []
    assert len(ada.get(f"/incidents?call={call.id}").json()["items"]) == 1
    assert mallory.get("/incidents").json()["items"] == []
    the_problem(mallory.get(f"/incidents/{incident['id']}"), 404, "not_found")
