"""GET /calls/{id}: as it stands, woken when it settles, unchanged, absent alike for all reasons."""

import select
import time
from typing import Any
from uuid import uuid4

import pytest

from ledger import calls, ids
from ledger.models import Tool, ToolCall
from tests import builders, cast, waits
from tests.api.callers import API, Caller, the_problem
from tests.api.served import Served
from tests.api.wire import Line, head

NOTICE_S = 0.3  # long enough for an answer that would not wait


def shown(call: ToolCall) -> str:
    return ids.shown("call", call.id)


def waiting(web: Served, who: Caller, call: ToolCall, seconds: int = 20) -> Line:
    """A request that waits for the call: it was sent, and no answer came at once."""
    line = Line(web.port)
    sent = [("Authorization", who.http.headers["Authorization"])]
    line.socket.sendall(head("GET", f"{API}/calls/{shown(call)}?wait={seconds}", sent))
    assert not select.select([line.socket], [], [], NOTICE_S)[0], "it did not wait"
    return line


def answer_after(line: Line, act: Any) -> tuple[float, Any]:
    """Seconds from the act's commit to the answer, and the answer."""
    act()
    began = time.perf_counter()
    answer = line.ask(b"")
    line.close()
    return time.perf_counter() - began, answer


def test_a_settled_call_comes_with_its_result(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "running", crossed=True)
    builders.settle(call, {"sent": [1, 2.0, "größe"]})

    answer = ada.get(f"/calls/{shown(call)}")

    body = answer.json()
    assert answer.headers["Cache-Control"] == "no-store"
    assert (body["state"], body["effect"], body["next_action"]) == (
        "succeeded", "happened", "use_result",
    )  # fmt: skip
    assert body["result"]["json"] == {"sent": [1, 2.0, "größe"]}
    assert body["boundary_crossed"] is True
    assert body["times"].keys() >= {"recorded", "started", "crossed", "settled"}


@pytest.mark.parametrize("in_state", ["failed", "cancelled", "expired", "ambiguous", "parked"])
def test_every_end_says_what_the_agent_may_do_next(
    in_state: str, ada: Caller, acme: cast.Acme
) -> None:
    kind = "long_running" if in_state == "parked" else "side_effect"
    call = builders.a_call(acme, in_state, kind)
    next_action = {"ambiguous": "ask_person", "parked": "wait"}.get(in_state, "submit_new")

    body = ada.get(f"/calls/{shown(call)}").json()

    assert (body["state"], body["next_action"]) == (in_state, next_action)
    assert body["retryable"] is (next_action == "submit_new")


def test_a_waiting_fetch_is_woken_by_the_settlement(
    web: Served, ada: Caller, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "running", crossed=True)
    line = waiting(web, ada, call)

    seconds, answer = answer_after(line, lambda: builders.settle(call))

    assert answer.status == 200
    assert b'"succeeded"' in answer.body
    assert seconds < 1, f"woken after {seconds:.2f} s"


def test_a_waiting_fetch_is_woken_when_it_is_a_persons_turn(
    web: Served, ada: Caller, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "interrupted")
    line = waiting(web, ada, call)

    def escalate() -> None:
        builders.past(call, "recovery_window")
        builders.fire()

    seconds, answer = answer_after(line, escalate)

    assert b'"ask_person"' in answer.body
    assert seconds < 1, f"woken after {seconds:.2f} s"


def test_thirty_who_wait_for_one_call_are_all_woken(
    web: Served, ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    call = builders.a_call(acme, tool=lookup)
    lines = [Line(web.port) for _ in range(30)]
    sent = [("Authorization", ada.http.headers["Authorization"])]
    for line in lines:
        line.socket.sendall(head("GET", f"{API}/calls/{shown(call)}?wait=20", sent))
    assert not select.select([line.socket for line in lines], [], [], NOTICE_S)[0]

    calls.cancel(workspace_id=call.workspace_id, agent_id=call.agent_id, call_id=call.id)
    began = time.perf_counter()
    answers = [line.ask(b"") for line in lines]

    assert {answer.status for answer in answers} == {200}
    assert time.perf_counter() - began < 2
    for line in lines:
        line.close()


def test_a_submit_that_waits_brings_the_outcome(
    web: Served, ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    body = b'{"tool":"sandbox.lookup","arguments":{}}'
    line = Line(web.port)
    headers = [
        ("Authorization", ada.http.headers["Authorization"]),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
    ]
    line.socket.sendall(head("POST", f"{API}/calls?wait=20", headers) + body)
    call = waits.until(ToolCall.objects.first, what="the call")
    assert not select.select([line.socket], [], [], NOTICE_S)[0], "it did not wait"
    builders.claimed(call)

    seconds, answer = answer_after(line, lambda: builders.settle(call, {"entry": 1}))

    assert (answer.status, b'"entry"' in answer.body) == (201, True)
    assert seconds < 1


def test_a_wait_that_is_over_gives_the_call_as_it_stands(
    ada: Caller, acme: cast.Acme, lookup: Tool
) -> None:
    call = builders.a_call(acme, tool=lookup)
    began = time.perf_counter()

    body = ada.get(f"/calls/{shown(call)}?wait=0.5").json()

    assert body["state"] == "scheduled"
    assert 0.4 < time.perf_counter() - began < 5


@pytest.mark.parametrize("wait", ["-1", "31", "nan", "inf", "soon", "1e9"])
def test_a_wait_without_bounds_is_refused(wait: str, ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme)

    the_problem(ada.get(f"/calls/{shown(call)}?wait={wait}"), 422, "validation")


def test_what_has_not_changed_is_not_sent_again(ada: Caller, acme: cast.Acme, lookup: Tool) -> None:
    call = builders.a_call(acme, tool=lookup)
    path = f"/calls/{shown(call)}"
    etag = ada.get(path).headers["ETag"]

    same = [ada.get(path, headers={"If-None-Match": each}) for each in (etag, f'"x", {etag}', "*")]
    builders.claimed(call)
    changed = ada.get(path, headers={"If-None-Match": etag})

    assert [(answer.status_code, answer.content) for answer in same] == [(304, b"")] * 3
    assert same[0].headers["ETag"] == etag
    assert (changed.status_code, changed.headers["ETag"] != etag) == (200, True)


def test_absent_malformed_and_foreign_calls_read_alike(
    ada: Caller, mallory: Caller, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "succeeded")
    absent = f"call_{uuid4().hex}"
    asked = [
        mallory.get(f"/calls/{each}{below}")
        for each in (shown(call), absent, "call_1", "x" * 64, f"ses_{call.id.hex}")
        for below in ("", "/events", "/attempts", "/verdict")
    ] + [mallory.post(f"/calls/{each}/cancellation") for each in (shown(call), absent, "call_1")]

    documents = [the_problem(answer, 404, "not_found") for answer in asked]

    for document in documents:
        del document["instance"], document["request_id"]
    assert all(document == documents[0] for document in documents)
    assert ada.get(f"/calls/{shown(call)}").status_code == 200


def test_what_an_agent_fetched_is_in_the_verdict(ada: Caller, acme: cast.Acme) -> None:
    call = builders.a_call(acme, "succeeded")
    sha256 = ada.get(f"/calls/{shown(call)}").json()["result"]["sha256"]

    def saw() -> str:
        answer: str = ada.get(f"/calls/{shown(call)}/verdict").json()["model_saw"]["sentence"]
        return answer if "fetched" in answer else ""

    assert sha256[:16] in waits.until(saw, what="the fetch to be recorded")
