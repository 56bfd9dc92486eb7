"""The page of budgets: shares by numbers, who granted, granting, and what refuses it."""

import re
from typing import Any

import pytest
from django.test import Client

from dashboard import budgets
from ledger import clock, ids
from ledger.models import Tool
from ledger.scopes import Limit
from ledger.vocabulary import BudgetScope
from recovery import grants, standings
from recovery.models import Grant
from tests import builders, cast
from tests.cast import Acme, Globex
from tests.dashboard.test_pages import signed_in
from tests.dashboard.test_tools_pages import text_of
from tests.recovery.deciding import incident_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def put(acme: Acme) -> Tool:
    return builders.a_tool(acme, "put", "idempotent_write")


@pytest.fixture
def anna(acme: Acme) -> Client:
    """Acme's admin, signed in."""
    return signed_in(cast.a_person("anna", acme.workspace, "admin"))


def repeated(acme: Acme, tool: Tool, number: int = 1, **place: Any) -> Any:
    """An open call with one repeat on its account."""
    return builders.a_call(acme, "backing_off", tool=tool, arguments={"path": str(number)}, **place)


def test_nothing_above_half_says_so_and_links_to_all(acme: Acme, put: Tool) -> None:
    repeated(acme, put)
    vera = signed_in(acme.vera)
    assert "Nothing above half." in text_of(vera.get("/budgets"))
    page = text_of(vera.get("/budgets?all=1"))
    assert "tool put 1 % 1 of 100 99 repeats" in page


def test_a_call_a_turn_a_session_and_a_tool_stand_by_the_share_used(acme: Acme, put: Tool) -> None:
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    call = repeated(acme, put, session_id=session.id, turn_id=turn.id)
    builders.past(call, "backoff")
    builders.fire()
    builders.claimed(builders.fresh(call))

    rows = budgets.rows(acme.workspace.id, clock.now(), every=True)

    assert [str(row.standing.scope) for row in rows] == ["call", "turn", "session", "tool"]
    assert (rows[0].standing.spent, rows[0].pips) == (1, "●○○○")
    assert rows[1].pips == "●○○○○○○○○○○○"
    assert rows[3].pips == ""


def test_a_turn_leads_to_its_place_in_the_session(acme: Acme, put: Tool) -> None:
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    repeated(acme, put, session_id=session.id, turn_id=turn.id)
    page = signed_in(acme.vera).get("/budgets?all=1").content.decode()
    assert f'href="/sessions/{ids.shown("session", session.id)}?turn=1#turn-1"' in page


def test_one_statement_reads_many_scopes_as_each_by_itself(acme: Acme, put: Tool) -> None:
    sessions = [builders.a_session(acme) for _ in range(3)]
    for number, session in enumerate(sessions):
        repeated(acme, put, number, session_id=session.id)
    keys = [str(session.id) for session in sessions]

    many = standings.read_many(BudgetScope.SESSION, acme.workspace.id, keys)

    assert many == [standings.read(BudgetScope.SESSION, acme.workspace.id, key) for key in keys]
    assert [each.spent for each in many] == [1, 1, 1]


@pytest.mark.parametrize("size", [1, 6])
def test_the_page_costs_the_same_queries_however_many_budgets(
    acme: Acme, size: int, django_assert_max_num_queries: Any
) -> None:
    for number in range(size):
        tool = builders.a_tool(acme, f"put-{number}", "idempotent_write")
        repeated(acme, tool, number, session_id=builders.a_session(acme).id)
    client = signed_in(acme.olga)
    with django_assert_max_num_queries(22):
        assert client.get("/budgets?all=1").status_code == 200


def test_an_admin_grants_and_the_page_says_who_and_why(acme: Acme, anna: Client, put: Tool) -> None:
    repeated(acme, put)
    sent = {"scope": "tool", "id": "put", "attempts": "20", "seconds": "0",
            "grounds": "The shop is back.", "once": "k"}  # fmt: skip
    answer = anna.post("/budgets/grants", sent, follow=True)
    anna.post("/budgets/grants", sent)

    page = text_of(answer)
    assert "Granted to the tool put." in page
    assert "+20 attempts to the tool put by anna : The shop is back." in page
    assert "+20 by anna" in text_of(anna.get("/budgets?all=1"))
    assert Grant.objects.count() == 1


@pytest.mark.parametrize(
    ("typed", "says", "code"),
    [
        ({"attempts": "many"}, "whole numbers", 422),
        ({"seconds": "9" * 400}, "whole numbers", 422),
        ({"attempts": "0"}, "at least one attempt", 422),
        ({"scope": "world"}, "Choose what is granted to", 422),
        ({"id": "unknown.tool"}, "no tool with this id", 404),
        ({"grounds": " "}, "needs grounds", 422),
    ],
)
def test_a_grant_that_is_refused_keeps_what_was_typed(
    anna: Client, put: Tool, typed: dict[str, str], says: str, code: int
) -> None:
    sent = {"scope": "tool", "id": "put", "attempts": "5", "grounds": "Because.", "once": "k"}
    answer = anna.post("/budgets/grants", sent | typed)
    assert answer.status_code == code
    assert says in text_of(answer)
    assert f'value="{(sent | typed)["id"]}"' in answer.content.decode()
    assert not Grant.objects.exists()


def test_a_grant_is_refused_while_a_wider_budget_is_spent_and_names_it(
    acme: Acme, anna: Client, put: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = repeated(acme, put)
    limit = standings.LIMITS[BudgetScope.TOOL]
    tight = {**standings.LIMITS, BudgetScope.TOOL: type(limit)(repeats=1, window_s=600)}
    monkeypatch.setattr(standings, "LIMITS", tight)
    sent = {"scope": "call", "id": f"call_{call.id.hex}", "attempts": "1", "grounds": "Once more.",
            "once": "k"}  # fmt: skip

    answer = anna.post("/budgets/grants", sent)

    assert answer.status_code == 409
    assert "tool" in text_of(answer)
    assert "Once more." in answer.content.decode()


def test_more_for_a_spent_budget_is_granted_after_typing_tool_and_number(
    acme: Acme, anna: Client, put: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeated(acme, put)
    tight = {**standings.LIMITS, BudgetScope.TOOL: Limit(repeats=1, window_s=600, granted_max=9)}
    monkeypatch.setattr(standings, "LIMITS", tight)
    monkeypatch.setattr(grants, "LIMITS", tight)
    sent = {"scope": "tool", "id": "put", "attempts": "5", "grounds": "It is back.", "once": "k"}

    answer = anna.post("/budgets/grants", sent)

    assert answer.status_code == 422
    assert "Level 4: to grant it all the same, type put 5" in text_of(answer)
    assert "All 1 repeats of this tool are spent. Nothing was granted." in text_of(answer)
    assert "It is back." in answer.content.decode()
    assert not Grant.objects.exists()

    typed = sent | {"confirm": " put 5 ", "once": "l"}
    assert anna.post("/budgets/grants", typed).status_code == 302
    assert Grant.objects.get().attempts == 5


@pytest.mark.parametrize("role", ["operator", "approver"])
def test_only_an_admin_grants(acme: Acme, put: Tool, role: str) -> None:
    other = signed_in(cast.a_person("petra", acme.workspace, role))
    assert 'aria-disabled="true"' in other.get("/budgets").content.decode()
    sent = {"scope": "tool", "id": "put", "attempts": "1", "grounds": "x", "once": "k"}
    assert other.post("/budgets/grants", sent).status_code == 403
    assert not Grant.objects.exists()


def test_the_part_is_not_drawn_again_while_nothing_changed(acme: Acme, put: Tool) -> None:
    repeated(acme, put)
    vera = signed_in(acme.vera)
    first = vera.get("/parts/budgets?all=1")
    tag = first["HX-PTag"]
    assert vera.get("/parts/budgets?all=1", headers={"HX-PTag": tag}).status_code == 304
    repeated(acme, put, 2)
    assert vera.get("/parts/budgets?all=1", headers={"HX-PTag": tag}).status_code == 200


def test_budgets_of_another_workspace_are_not_there(acme: Acme, globex: Globex, put: Tool) -> None:
    repeated(acme, put)
    page = text_of(signed_in(globex.mallory_herself).get("/budgets?all=1"))
    assert "No budget has spent anything." in page


def test_the_budgets_of_a_call_stand_where_one_decides_about_it(acme: Acme, put: Tool) -> None:
    turn = builders.a_turn(builders.a_session(acme))
    place = {"session_id": turn.session_id, "turn_id": turn.id}
    repeated(acme, put, **place)
    call = builders.a_call(acme, "ambiguous", **place)
    olga = signed_in(acme.olga)
    shown = re.compile(
        r"Budget call ○ 0 of 1 repeats · turn ●○{11} 1 of 12 repeats, \d s of 600 s · "
        r"session 1 of 60 repeats · tool 0 of 100 repeats"
    )
    for address in (f"/calls/{ids.shown('call', call.id)}",
                    f"/incidents/{ids.shown('incident', incident_of(call).id)}"):  # fmt: skip
        assert shown.search(text_of(olga.get(address)))


def test_a_settled_call_has_no_budget_any_more(acme: Acme, put: Tool) -> None:
    call = builders.a_call(acme, "succeeded", tool=put)
    page = signed_in(acme.olga).get(f"/calls/{ids.shown('call', call.id)}").content.decode()
    assert 'class="quietly budgets"' not in page


def test_a_calls_shared_budgets_are_read_by_one_statement(
    acme: Acme, put: Tool, django_assert_num_queries: Any
) -> None:
    turn = builders.a_turn(builders.a_session(acme))
    call = repeated(acme, put, session_id=turn.session_id, turn_id=turn.id)
    budgets.of_call(call)
    with django_assert_num_queries(1):
        found = standings.of_call(call)
    assert [(str(scope), each.spent) for scope, each in found.items()] == [
        ("turn", 1), ("session", 1), ("tool", 1)
    ]  # fmt: skip
