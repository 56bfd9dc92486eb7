"""Quotas: how much keys, people, workspaces and addresses may ask for, and what they are told."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from ledger import keys
from ledger.api.quotas import Kind, kind_of
from ledger.models import Tool, ToolCall
from tests import builders, cast
from tests.api import callers, served
from tests.api.callers import API, Caller, the_problem
from tests.api.served import Served
from tests.api.wire import Answer, Line, head
from tests.waits import until

LOOKUP = {"tool": "sandbox.lookup", "arguments": {"name": "opening-hours"}}
SMALLEST = "10"
LIMIT = 100
ITEM = re.compile(r'"(\w+)";(\w)=(\d+);(\w)=(\d+)')


@pytest.fixture(scope="session")
def _scarce(
    django_db_setup: None, django_db_blocker: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("scarce")
    with (
        django_db_blocker.unblock(),  # type: ignore[attr-defined]
        served.served(folder, CLEARHOUSE_QUOTA_CALLS=SMALLEST) as web,
    ):
        yield web


@pytest.fixture
def scarce(_scarce: Served, transactional_db: None) -> Iterator[Served]:
    """A web whose keys may submit ten calls a second."""
    yield _scarce
    served.until_quiet()


@pytest.fixture
def opened() -> Iterator[Callable[[Caller], Caller]]:
    """Callers that are closed when the test ends."""
    known: list[Caller] = []

    def note(caller: Caller) -> Caller:
        known.append(caller)
        return caller

    yield note
    for each in known:
        each.close()


def told(answer: httpx2.Response, header: str) -> dict[str, dict[str, int]]:
    """A list of named items with two numbers each, as the draft writes them."""
    return {
        name: {one: int(first), two: int(second)}
        for name, one, first, two, second in ITEM.findall(answer.headers[header])
    }


def batch(size: int) -> dict[str, object]:
    return {"calls": [LOOKUP] * size}


def flood(caller: Caller) -> httpx2.Response:
    """Submit whole batches until one is refused, and give the refusal."""
    return until(
        lambda: (answer := caller.post("/calls", batch(20))).status_code == 429 and answer,
        what="the quota is spent",
        limit_s=20,
    )


def test_each_answer_to_a_key_says_what_its_quotas_are_and_what_is_left(
    ada: Caller, lookup: Tool
) -> None:
    first, second = ada.post("/calls", LOOKUP), ada.post("/calls", batch(100))

    assert told(first, "RateLimit-Policy") == {
        "calls": {"q": 2000, "w": 10},
        "workspace": {"q": 10000, "w": 10},
    }
    assert 1999 <= told(first, "RateLimit")["calls"]["r"] <= 2000
    left = told(second, "RateLimit")
    assert 1900 <= left["calls"]["r"] <= 2000
    assert left["calls"]["t"] <= 1
    assert 9900 <= left["workspace"]["r"] <= 10000

    poll = ada.get(f"/calls/{first.json()['id']}")
    assert told(poll, "RateLimit-Policy")["polls"] == {"q": 5000, "w": 10}


def test_a_route_of_the_framework_tells_the_same(ada: Caller, alma: Caller) -> None:
    for answer in (ada.get("/tools"), alma.get("/tools"), ada.get("/calls/call_1/verdict")):
        assert told(answer, "RateLimit-Policy").keys() == {"requests", "workspace"}
        assert told(answer, "RateLimit")["requests"]["r"] >= 1990


def test_a_spent_quota_answers_429_and_when_to_come_again_and_records_nothing(
    scarce: Served, acme: cast.Acme, lookup: Tool, opened: Callable[[Caller], Caller]
) -> None:
    ada = opened(callers.an_agents(scarce.address, acme.ada))
    refusal = flood(ada)
    recorded = ToolCall.objects.count()

    problem = the_problem(refusal, 429, "rate_limited")
    assert refusal.elapsed.total_seconds() >= 0.5, "who asks again at once would keep the web busy"
    wait_s = int(refusal.headers["Retry-After"])
    assert 1 <= wait_s <= 10
    assert told(refusal, "RateLimit")["calls"]["r"] < LIMIT // 2, "told after it was held up"
    assert "quota 'calls' of 100 in 10 s" in problem["detail"]
    assert recorded % 20 == 0
    answer = until(
        lambda: (one := ada.post("/calls", LOOKUP)).status_code == 201 and one,
        what="one of ten calls a second to be free again",
        limit_s=wait_s + 2,
    )
    assert answer.json()["state"] == "scheduled"
    assert "quota.spent quota=calls" in scarce.logged


def test_who_has_spent_its_calls_still_polls_cancels_and_ends(
    scarce: Served, acme: cast.Acme, lookup: Tool, opened: Callable[[Caller], Caller]
) -> None:
    ada = opened(callers.an_agents(scarce.address, acme.ada))
    call = ada.post("/calls", LOOKUP).json()["id"]
    session = ada.post("/sessions", {}).json()["id"]
    turn = ada.post(f"/sessions/{session}/turns", {}).json()["id"]
    flood(ada)

    assert ada.get(f"/calls/{call}").status_code == 200
    assert ada.post(f"/calls/{call}/cancellation").status_code == 202
    assert ada.post(f"/sessions/{session}/turns/{turn}/end", {"closed_as": "stopped"}).is_success


def test_another_key_and_another_workspace_have_quotas_of_their_own(
    scarce: Served,
    acme: cast.Acme,
    globex: cast.Globex,
    lookup: Tool,
    opened: Callable[[Caller], Caller],
) -> None:
    builders.a_tool(globex, "sandbox.lookup", "read_only")
    flood(opened(callers.an_agents(scarce.address, acme.ada)))

    for neighbour in (acme.ben, globex.mallory):
        caller = opened(callers.an_agents(scarce.address, neighbour))
        assert caller.post("/calls", LOOKUP).status_code == 201


def test_the_keys_of_a_workspace_share_one_quota_and_people_still_act(
    transactional_db: None,
    tmp_path: Path,
    acme: cast.Acme,
    lookup: Tool,
    opened: Callable[[Caller], Caller],
) -> None:
    with served.served(tmp_path, CLEARHOUSE_QUOTA_WORKSPACE=SMALLEST) as web:
        ada = opened(callers.an_agents(web.address, acme.ada))
        ben = opened(callers.an_agents(web.address, acme.ben))
        session = ada.post("/sessions", {}).json()["id"]
        refusal = flood(ada)

        assert "quota 'workspace'" in refusal.json()["detail"]
        assert flood(ben).status_code == 429
        olga = opened(callers.logged_in(web.address, "olga"))
        stopped = olga.post(f"/sessions/{session}/stop", {"grounds": "The agent floods us."})
        assert stopped.status_code == 200, stopped.text
        served.until_quiet()


def test_an_address_is_refused_before_its_body_has_come(
    transactional_db: None, tmp_path: Path
) -> None:
    key = ("Authorization", "Bearer x")
    promised = head("POST", f"{API}/calls", [key, ("Content-Length", "9")])

    def asked(port: int) -> Answer | None:
        with Line(port, limit_s=2) as line:
            try:
                return line.ask(promised)
            except TimeoutError:  # it waits for the body
                return None

    with served.served(tmp_path, CLEARHOUSE_QUOTA_ADDRESS=SMALLEST) as web:
        at_once = LIMIT + LIMIT // 2
        with ThreadPoolExecutor(at_once) as lines:
            answers = list(lines.map(asked, [web.port] * at_once))

        assert answers.count(None) >= LIMIT
        refusals = [answer for answer in answers if answer]
        assert refusals
        for answer in refusals:
            assert answer.status == 429
            assert b"quota 'address'" in answer.body
            assert "retry-after" in answer.headers
        assert httpx2.get(f"{web.address}/healthz").status_code == 200
        assert httpx2.get(f"{web.address}/login").status_code == 200


def test_wrong_keys_hold_up_their_address_and_no_key_that_was_right_before(
    transactional_db: None, tmp_path: Path, acme: cast.Acme, opened: Callable[[Caller], Caller]
) -> None:
    with served.served(tmp_path, CLEARHOUSE_QUOTA_REFUSED_KEYS="1") as web:
        ada = opened(callers.an_agents(web.address, acme.ada))
        assert ada.get("/tools").status_code == 200
        wrong = opened(Caller(web.address, Authorization="Bearer clh_live_wrong"))

        def a_refused_key() -> Caller | None:
            if wrong.get("/tools").status_code != 429:
                return None
            fresh = opened(callers.an_agents(web.address, acme.ben))
            answer = fresh.get("/tools")
            if answer.is_success:  # the address had been given a try again meanwhile
                return None
            the_problem(answer, 429, "rate_limited")
            return fresh

        fresh = until(a_refused_key, what="a key never seen to be refused", limit_s=20)
        assert ada.get("/tools").status_code == 200
        until(lambda: fresh.get("/tools").status_code == 200, what="a key to be tried", limit_s=20)


@pytest.mark.parametrize(
    ("method", "path", "has_key", "kind"),
    [
        ("POST", "/api/v1/calls", True, Kind.CALLS),
        ("POST", "/api/v1/sessions/s/turns/t/replies", True, Kind.CALLS),
        ("GET", "/api/v1/calls/call_1", True, Kind.POLLS),
        ("GET", "/api/v1/calls/call_1", False, Kind.REQUESTS),
        ("GET", "/api/v1/calls", True, Kind.REQUESTS),
        ("GET", "/api/v1/calls/call_1/events", True, Kind.REQUESTS),
        ("POST", "/api/v1/sessions", True, Kind.REQUESTS),
        ("POST", "/api/v1/calls/call_1/cancellation", True, Kind.ACTS),
        ("POST", "/api/v1/sessions/s/turns/t/interruption", True, Kind.ACTS),
        ("POST", "/api/v1/sessions/s/turns/t/end", True, Kind.ACTS),
        ("POST", "/api/v1/incidents/i/resolutions", False, Kind.ACTS),
        ("PUT", "/api/v1/policies/mail", False, Kind.ACTS),
        ("POST", "/incidents/i/decisions", False, Kind.ACTS),
        ("GET", "/inbox", False, Kind.REQUESTS),
        ("HEAD", "/", False, Kind.REQUESTS),
    ],
)
def test_each_request_is_of_one_kind(method: str, path: str, has_key: bool, kind: Kind) -> None:
    assert kind_of(method, path, has_key=has_key) is kind


def test_keys_are_known_again_only_when_they_were_right() -> None:
    assert not keys.was_known("clh_live_wrong")
