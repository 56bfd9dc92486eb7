"""Budgets and breakers over the API: read by keys and people, granted and changed by people."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from dashboard.models import Deed
from ledger import clock, cursors, ids
from ledger.models import Tool, ToolCall
from recovery.models import Breaker, Grant
from tests import builders, cast
from tests.api.callers import Caller, the_problem
from tests.recovery.test_budgets import again, failed_once

GROUNDS = "The shop is back since noon."
GRANT = {"scope": "tool", "id": "lookup", "attempts": 5, "grounds": GROUNDS}


@pytest.fixture
def tool(acme: cast.Acme) -> Tool:
    return builders.a_tool(acme, "lookup", "read_only", timeouts={"schedule_to_close_s": 86400})


@pytest.fixture
def failed(acme: cast.Acme, tool: Tool) -> ToolCall:
    session = builders.a_session(acme)
    return again(failed_once(acme, tool, builders.a_turn(session)))


@pytest.fixture
def exporter(acme: cast.Acme, agent: Callable[..., Caller]) -> Caller:
    return agent(acme.ada, "export:read")


def test_a_call_shows_its_scopes_and_why_each_attempt_was_allowed(
    ada: Caller, failed: ToolCall
) -> None:
    body = ada.get(f"/calls/{failed.id}/budget").json()
    assert [each["scope"] for each in body["scopes"]] == ["call", "turn", "session", "tool"]
    assert body["scopes"][1]["repeats"] == {"limit": 12, "granted": 0, "spent": 1, "left": 11}
    assert body["scopes"][1]["seconds"]["limit"] == 600
    first, second = body["account"]
    assert (first["rule"], second["rule"], second["use"]) == ("first", "proven_safe", "claimed")
    assert second["left"] == {"call": 3, "turn": 11, "session": 59, "tool": 99}
    assert body["seconds_left"] > 86000


def test_one_scope_is_asked_for_by_its_id(ada: Caller, failed: ToolCall) -> None:
    named = {"turn": failed.turn_id, "session": failed.session_id, "call": failed.id,
             "tool": "lookup"}  # fmt: skip
    for scope, key in named.items():
        [found] = ada.get(f"/budgets?scope={scope}&id={key}").json()["items"]
        assert (found["scope"], found["repeats"]["spent"]) == (scope, 1)
        shown = key if scope == "tool" else ids.shown(scope, key)  # type: ignore[arg-type]
        assert found["id"] == shown


def test_a_person_sees_every_scope_that_has_spent_the_fullest_first(
    alma: Caller, failed: ToolCall
) -> None:
    items = alma.get("/budgets").json()["items"]
    assert [each["scope"] for each in items] == ["call", "turn", "session", "tool"]
    assert items == sorted(items, key=lambda each: -each["share_used"])


@pytest.mark.parametrize("query", ["scope=week&id=1", "scope=turn&id=1", "scope=tool&id=nothing"])
def test_a_scope_that_is_none_is_refused(ada: Caller, tool: Tool, query: str) -> None:
    answer = ada.get(f"/budgets?{query}")
    assert answer.status_code in (404, 422)


def test_an_agent_does_not_see_the_turns_of_another(
    agent: Callable[..., Caller], acme: cast.Acme, failed: ToolCall
) -> None:
    ben = agent(acme.ben)
    the_problem(ben.get(f"/budgets?scope=turn&id={failed.turn_id}"), 404, "not_found")
    the_problem(ben.get(f"/calls/{failed.id}/budget"), 404, "not_found")
    the_problem(ben.get("/budgets"), 422, "validation")


def test_an_admin_grants_once_for_a_key(
    acme: cast.Acme, person: Callable[..., Caller], tool: Tool
) -> None:
    cast.a_person("petra", acme.workspace, "admin")
    petra = person("petra")
    key = {"Idempotency-Key": "grant-1"}
    first, second = (petra.post("/budgets/grants", GRANT, headers=key) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert (first.json()["by"], first.json()["attempts"], first.json()["of"]) == (
        "petra", 5, "lookup",
    )  # fmt: skip
    other = petra.post("/budgets/grants", GRANT | {"attempts": 6}, headers=key)
    the_problem(other, 409, "key_reused")
    assert petra.get("/budgets/grants").json()["items"] == [first.json()]


@pytest.mark.parametrize("name", ["olga", "vera", "petra"])
def test_others_grant_nothing(
    acme: cast.Acme, person: Callable[..., Caller], name: str, tool: Tool
) -> None:
    cast.a_person("petra", acme.workspace, "approver")
    the_problem(person(name).post("/budgets/grants", GRANT), 403, "permission_missing")
    assert not Grant.objects.exists()


@pytest.mark.parametrize(
    "change",
    [{"scope": "week"}, {"attempts": 0}, {"attempts": "5"}, {"attempts": 10**9}, {"grounds": ""},
     {"seconds": 5}, {"attempts": True}],
)  # fmt: skip
def test_a_grant_that_cannot_hold_is_refused(
    alma: Caller, tool: Tool, change: dict[str, Any]
) -> None:
    the_problem(alma.post("/budgets/grants", GRANT | change), 422, "validation")
    assert not Grant.objects.exists()


def test_a_grant_to_a_call_lengthens_it(alma: Caller, failed: ToolCall) -> None:
    body = GRANT | {"scope": "call", "id": ids.shown("call", failed.id), "attempts": 2}
    assert alma.post("/budgets/grants", body).status_code == 201
    shown = alma.get(f"/calls/{failed.id}/budget").json()
    assert shown["scopes"][0]["repeats"] == {"limit": 6, "granted": 2, "spent": 1, "left": 5}
    assert [each["by"] for each in shown["granted"]] == ["alma"]
    assert builders.fresh(failed).attempts_allowed == 7


def test_a_grant_to_a_spent_call_is_made_once_it_is_confirmed(
    alma: Caller, acme: cast.Acme
) -> None:
    once = builders.a_tool(acme, "once", "read_only", retry={"attempts": 1})
    call = ids.shown("call", builders.a_call(acme, "running", tool=once).id)
    body = GRANT | {"scope": "call", "id": call, "attempts": 2}

    problem = the_problem(alma.post("/budgets/grants", body), 422, "confirmation_required")

    assert problem["current"] == {"confirm": "once 2"}
    assert not Grant.objects.exists()
    assert alma.post("/budgets/grants", body | problem["current"]).status_code == 201


def test_the_audit_pages_by_tool_and_day(
    exporter: Caller, acme: cast.Acme, failed: ToolCall
) -> None:
    failed_once(acme, builders.a_tool(acme, "other", "read_only"))
    builders.settle(failed)
    whole = exporter.get("/budgets/audit").json()
    first = exporter.get("/budgets/audit?limit=1").json()
    rest = exporter.get(f"/budgets/audit?limit=1&cursor={first['next_cursor']}").json()
    assert [each["tool"] for each in whole["items"]] == ["lookup", "other"]
    assert first["items"] + rest["items"] == whole["items"]
    assert rest["next_cursor"] is None
    foreign = exporter.get(f"/budgets/audit?tool=other&cursor={first['next_cursor']}")
    the_problem(foreign, 422, "validation")


def test_the_audit_is_written_as_a_file_while_it_is_read(
    exporter: Caller, acme: cast.Acme, failed: ToolCall
) -> None:
    builders.a_call(acme, "running", tool=builders.a_tool(acme, "-2.hostile"))
    lines = exporter.get("/budgets/audit?format=csv&from=2026-01-01&to=2026-12-31")
    assert lines.headers["Content-Type"].startswith("text/csv")
    assert lines.headers["Content-Disposition"].startswith("attachment")
    rows = list(csv.DictReader(io.StringIO(lines.text)))
    assert [row["tool"] for row in rows] == ["'-2.hostile", "lookup"]
    assert rows[1]["repeats_by_rule"] == "proven_safe: 1"
    text = exporter.get("/budgets/audit?format=jsonl").text
    assert [json.loads(line)["tool"] for line in text.splitlines()] == ["-2.hostile", "lookup"]


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_file_that_a_person_takes_stands_in_the_audit(
    person: Callable[..., Caller], exporter: Caller, tool: Tool, format: str
) -> None:
    vera, asked = person("vera"), "from=2026-01-01&to=2026-01-31&tool=lookup"
    assert exporter.get(f"/budgets/audit?format={format}").status_code == 200
    assert vera.get(f"/budgets/audit?{asked}").status_code == 200
    assert not Deed.objects.exists()  # a key is no person, and a page is no file
    assert vera.get(f"/budgets/audit?{asked}&format={format}").status_code == 200
    [line] = vera.get("/audit?target=budgets").json()["items"]
    assert (line["actor"], line["deed"]) == ("vera", "exported the budgets")
    assert line["grounds"] == f"2026-01-01 to 2026-01-31, tool lookup, {format}"


def test_a_cursor_that_was_made_up_asks_for_no_day_before_the_range(
    exporter: Caller, failed: ToolCall
) -> None:
    today = clock.now().date()
    bound = {"from": today, "to": today, "tool": ""}
    forged = cursors.written(("0001-01-01", ""), bound)
    page = exporter.get(f"/budgets/audit?from={today}&to={today}&cursor={forged}").json()
    assert [each["tool"] for each in page["items"]] == ["lookup"]


def test_the_same_key_gives_the_same_grant_and_says_so(alma: Caller, tool: Tool) -> None:
    first, second = (
        alma.post("/budgets/grants", GRANT, headers={"Idempotency-Key": "g-1"}) for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (201, 200)
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert second.json() == first.json()


@pytest.mark.parametrize(
    "query",
    ["from=yesterday", "from=2026-02-30", "from=2026-05-01&to=2026-04-01", "from=2020-01-01",
     "to=9999-12-31", "to=0001-01-01", "to=9999-12-31&format=csv", "from=0001-01-01",
     "format=xlsx", "limit=0", "limit=1000", "tool=a%00b", "cursor=x", "cursor=W10="],
)  # fmt: skip
def test_an_audit_that_cannot_be_is_refused(exporter: Caller, query: str) -> None:
    the_problem(exporter.get(f"/budgets/audit?{query}"), 422, "validation")


def test_a_person_closes_a_breaker_and_its_changes_say_so(
    acme: cast.Acme, person: Callable[..., Caller], tool: Tool
) -> None:
    breaker = Breaker.objects.create(workspace=acme.workspace, kind="tool", name="lookup")
    olga, address = person("olga"), f"/breakers/brk_{breaker.id.hex}"
    opened = olga.post(address, {"state": "open", "grounds": "It hangs."}).json()
    closed = olga.post(address, {"state": "closed", "grounds": GROUNDS}).json()
    assert (opened["state"], closed["state"]) == ("open", "closed")
    assert opened["trial_at"]
    last, first = olga.get(address).json()["changes"]
    assert (last["to"], last["by"], last["grounds"], last["rule"]) == (
        "closed", "olga", GROUNDS, None,
    )  # fmt: skip
    assert first["to"] == "open"
    assert [each["id"] for each in olga.get("/breakers").json()["items"]] == [opened["id"]]


def test_a_switch_shows_every_press(alma: Caller, ada: Caller, tool: Tool) -> None:
    for on in (False, True):
        alma.put("/tools/lookup/switch", {"on": on, "grounds": GROUNDS})
    items = ada.get("/tools/lookup/switch").json()["items"]
    assert [(each["on"], each["by"], each["grounds"]) for each in items] == [
        (True, "alma", GROUNDS), (False, "alma", GROUNDS),
    ]  # fmt: skip
