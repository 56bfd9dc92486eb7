"""The audit: what repeats cost each tool on each day, and cells that no spreadsheet calculates."""

from datetime import UTC, date, timedelta

import pytest

from ledger import calls, clock
from ledger.models import Tool
from ledger.vocabulary import BudgetScope
from recovery import audits
from tests import builders
from tests.cast import Acme, Globex
from tests.recovery.test_budgets import again, failed_once, fails
from tests.recovery.test_grants import granted

READ = {"recovery_class": "read_only", "timeouts": {"schedule_to_close_s": 86400}}


@pytest.fixture
def lookup(acme: Acme) -> Tool:
    return builders.a_tool(acme, "lookup", **READ)


def today() -> date:
    return clock.now().astimezone(UTC).date()


def row_of(acme: Acme, tool: str) -> dict[str, object]:
    found = audits.day_of(workspace_id=acme.workspace.id, day=today(), tool=tool)
    return found[0] if found else {}


def test_a_day_counts_attempts_repeats_by_rule_and_their_time(acme: Acme, lookup: Tool) -> None:
    call = fails(again(failed_once(acme, lookup)))
    builders.settle(again(call))
    row = row_of(acme, "lookup")
    assert (row["attempts"], row["repeats"], row["repeats_by_rule"]) == (3, 2, {"proven_safe": 2})
    assert row["waiting_s"] == 3.0
    assert isinstance(row["repeating_s"], float)


def test_a_day_counts_what_was_given_back_refused_and_granted(acme: Acme, lookup: Tool) -> None:
    call = failed_once(acme, lookup)
    calls.cancel(workspace_id=call.workspace_id, agent_id=call.agent_id, call_id=call.id)
    spent = failed_once(acme, lookup)
    for _ in range(4):
        spent = fails(again(spent))
    granted(acme, "tool", "lookup", 7)
    row = row_of(acme, "lookup")
    assert (row["given_back"], row["refused"], row["refused_by_scope"]) == (1, 1, {"call": 1})
    assert (row["grants"], row["granted_attempts"], row["grants_by_person"]) == (1, 7, {"olga": 1})


def test_a_day_counts_the_repeats_that_the_ledger_answered(acme: Acme, lookup: Tool) -> None:
    session = builders.a_session(acme)
    builders.a_call(acme, "running", tool=lookup, session_id=session.id)
    again = builders.a_submit(acme, lookup, session_id=session.id, prompt_tokens=1200)
    assert builders.fresh(builders.answer_to(again).call_id).twin_of_id
    row = row_of(acme, "lookup")
    assert (row["attempts"], row["repeats_prevented"], row["tokens_saved"]) == (1, 1, 1200)


def test_a_grant_to_a_session_is_of_no_single_tool(acme: Acme) -> None:
    granted(acme, str(BudgetScope.SESSION), builders.a_session(acme).id, 3)
    [row] = audits.day_of(workspace_id=acme.workspace.id, day=today())
    assert (row["tool"], row["granted_attempts"]) == ("", 3)


def test_a_neighbours_day_is_their_own(acme: Acme, globex: Globex, lookup: Tool) -> None:
    failed_once(acme, lookup)
    assert audits.day_of(workspace_id=globex.workspace.id, day=today()) == []


def test_days_without_anything_have_no_rows(acme: Acme, lookup: Tool) -> None:
    failed_once(acme, lookup)
    first = today() - timedelta(days=3)
    rows = list(audits.rows(workspace_id=acme.workspace.id, first=first, last=today()))
    assert [(row["day"], row["tool"]) for row in rows] == [(today().isoformat(), "lookup")]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_a_text_that_a_spreadsheet_would_calculate_is_quoted(text: str) -> None:
    assert audits.cell(text) == f"'{text}"


def test_words_with_figures_become_one_cell() -> None:
    assert audits.cell({"spent": 2, "proven_safe": 1}) == "proven_safe: 1; spent: 2"
    assert audits.cell({"=cmd": 1}) == "'=cmd: 1"
    assert [audits.cell(value) for value in (3, 1.5, "lookup")] == ["3", "1.500", "lookup"]
