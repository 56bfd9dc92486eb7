"""The header `traceparent`: taken by whatever records calls, by both ways in, and shown."""

import json
from typing import Any

import pytest
from django.test import Client

from ledger import keys
from ledger.models import Tool, ToolCall
from tests import builders, cast
from tests.api import wire
from tests.api.callers import API, Caller
from tests.api.served import Served
from tests.api.test_api_turns import HELLO, asking

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SENT = f"00-{TRACE}-00f067aa0ba902b7-01"
WISH = {"tool": "sandbox.lookup", "arguments": {"name": "opening-hours"}}


def submit(caller: Caller, body: Any = WISH, traceparent: str = SENT) -> Any:
    answer = caller.post("/calls", body, headers={"traceparent": traceparent})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_submit_shows_the_trace_that_it_was_sent_with(ada: Caller, lookup: Tool) -> None:
    call = submit(ada)
    assert call["traceparent"] == SENT
    assert ada.get(f"/calls/{call['id']}").json()["traceparent"] == SENT
    assert ada.get("/calls").json()["items"][0]["traceparent"] == SENT


def test_a_submit_without_one_has_none(ada: Caller, lookup: Tool) -> None:
    assert ada.post("/calls", WISH).json()["traceparent"] is None


def test_a_batch_is_of_one_trace(ada: Caller, lookup: Tool) -> None:
    items = submit(ada, {"calls": [WISH, {**WISH, "arguments": {"name": "prices"}}]})["items"]
    assert [each["traceparent"] for each in items] == [SENT, SENT]


def test_a_reply_hands_its_trace_to_its_calls(ada: Caller, lookup: Tool) -> None:
    turns = f"/sessions/{ada.post('/sessions', {}).json()['id']}/turns"
    turn = ada.post(turns, {"key": "q1", **HELLO}).json()["id"]
    body = asking(("c1", lookup.name, {"n": 1}), ("c2", lookup.name, {"n": 2}))
    answer = ada.post(f"{turns}/{turn}/replies", body, headers={"traceparent": SENT})
    assert [each["traceparent"] for each in answer.json()["calls"]] == [SENT, SENT]


BAD = ("", "nonsense", SENT.upper(), f"ff{SENT[2:]}", f"{SENT}-more", "é" * 60, "0" * 10_000)


@pytest.mark.parametrize("header", BAD, ids=[repr(each[:20]) for each in BAD])
def test_a_bad_header_is_no_error(ada: Caller, web: Served, lookup: Tool, header: str) -> None:
    key = ada.http.headers["Authorization"]
    headers = [("Authorization", key), ("Content-Type", "application/json"),
               ("TraceParent", header)]  # fmt: skip
    assert _sent(web, headers) is None


def test_the_name_of_the_header_may_be_in_any_case(ada: Caller, web: Served, lookup: Tool) -> None:
    headers = [("Authorization", ada.http.headers["Authorization"]),
               ("Content-Type", "application/json"), ("TRACEPARENT", SENT)]  # fmt: skip
    assert _sent(web, headers) == SENT


def test_a_header_that_is_sent_twice_is_none(ada: Caller, web: Served, lookup: Tool) -> None:
    headers = [("Authorization", ada.http.headers["Authorization"]),
               ("Content-Type", "application/json"), ("traceparent", SENT),
               ("traceparent", SENT)]  # fmt: skip
    assert _sent(web, headers) is None


def _sent(web: Served, headers: list[tuple[str, str]]) -> Any:
    """The trace of a call that is submitted byte by byte."""
    body = json.dumps(WISH).encode()
    head = wire.head("POST", f"{API}/calls", wire.with_length(headers, body))
    answer = wire.exchange(web.port, head + body)
    assert answer.status == 201, answer
    return json.loads(answer.body)["traceparent"]


@pytest.mark.parametrize(("header", "kept"), [(SENT, SENT), ("nonsense", None)])
def test_djangos_own_route_reads_it_the_same(
    acme: cast.Acme, lookup: Tool, header: str, kept: str | None
) -> None:
    headers = {"Authorization": f"Bearer {keys.issue(agent=acme.ada, scopes=keys.AGENT_SCOPES)}",
               "traceparent": header}  # fmt: skip
    answer = Client().post(f"{API}/calls", WISH, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["traceparent"]) == (201, kept)


def test_each_attempt_shows_what_it_sent_on(ada: Caller, acme: cast.Acme, lookup: Tool) -> None:
    call = ToolCall.objects.get(id=submit(ada)["id"].removeprefix("call_"))
    claim = builders.claimed(call)
    (attempt,) = ada.get(f"/calls/{call.id.hex}/attempts").json()["items"]
    assert attempt["traceparent"] == claim.traceparent
    assert attempt["traceparent"] == f"00-{TRACE}-{claim.attempt_id.hex[16:]}-01"


def test_the_attempts_of_a_call_without_a_trace_sent_none_on(
    ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    call = ToolCall.objects.get(id=ada.post("/calls", WISH).json()["id"].removeprefix("call_"))
    builders.claimed(call)
    (attempt,) = ada.get(f"/calls/{call.id.hex}/attempts").json()["items"]
    assert attempt["traceparent"] is None


def test_the_description_names_the_header_where_calls_are_recorded(ada: Caller) -> None:
    described = ada.get("/openapi.json").json()
    header = {"$ref": "#/components/parameters/Traceparent"}
    takers = {
        path.removeprefix(API)
        for path, methods in described["paths"].items()
        for operation in methods.values()
        if header in operation["parameters"]
    }
    assert described["components"]["parameters"]["Traceparent"]["name"] == "traceparent"
    assert takers == {"/calls", "/sessions/{session_id}/turns/{turn_id}/replies"}
