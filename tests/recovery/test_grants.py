"""Grants: a person adds to a budget with grounds; under a spent wider one it is refused."""

from dataclasses import replace

import pytest
from django.db import DatabaseError, transaction

from ledger.errors import AlreadySettled, BudgetSpent, Invalid, KeyReused, NotFound
from ledger.journal import events_of
from ledger.models import Session, Tool, ToolCall, Turn
from ledger.scopes import Limit
from ledger.vocabulary import BudgetScope, CallState
from recovery import grants, standings
from recovery.grants import Wanted
from recovery.models import Grant
from recovery.refusals import GrantUnconfirmed
from tests import builders
from tests.builders import fresh
from tests.cast import Acme, Globex
from tests.recovery.test_budgets import failed_once, failed_once_in, fails, running, spend

READ = {"recovery_class": "read_only", "timeouts": {"schedule_to_close_s": 86400}}
GROUNDS = "The shop is back since noon."


@pytest.fixture
def lookup(acme: Acme) -> Tool:
    return builders.a_tool(acme, "lookup", **READ)


@pytest.fixture
def session(acme: Acme) -> Session:
    return builders.a_session(acme)


@pytest.fixture
def turn(session: Session) -> Turn:
    return builders.a_turn(session)


def granted(acme: Acme, scope: str, of: object, attempts: int = 1, **more: object) -> Grant:
    wanted = {"attempts": attempts, "seconds": 0.0, "grounds": GROUNDS} | {
        name: value for name, value in more.items() if name != "key"
    }
    return grants.grant(
        workspace_id=acme.workspace.id,
        wanted=Wanted(scope=BudgetScope(scope), key=str(of), **wanted),  # type: ignore[arg-type]
        person=acme.olga,
        key=str(more.get("key", "")),
    )[0]


def test_a_grant_to_a_call_allows_that_many_attempts_more_and_is_an_event(
    acme: Acme, lookup: Tool
) -> None:
    call = failed_once(acme, lookup)
    made = granted(acme, "call", call.id, 3)
    event = events_of(call.id)[-1]
    assert fresh(call).attempts_allowed == 8
    assert (event.kind, event.actor, event.actor_id) == (
        "budget_granted", "operator", str(acme.olga.pk),
    )  # fmt: skip
    assert event.facts_json == {"attempts": 3, "grant": made.id.hex, "grounds": GROUNDS}
    assert standings.own(fresh(call)).granted == 3


def test_a_granted_attempt_is_exactly_one(acme: Acme) -> None:
    tool = builders.a_tool(acme, "once", **READ | {"retry": {"attempts": 1}})
    call = running(acme, tool)
    granted(acme, "call", call.id, 1, confirm="once 1")
    call = fails(call)
    assert call.state is CallState.BACKING_OFF
    builders.past(call, "backoff")
    builders.fire()
    builders.claimed(call)
    assert (fails(call).state, fresh(call).attempts_used) == ("failed", 2)


@pytest.mark.parametrize("scope", ["turn", "session", "tool"])
def test_a_grant_to_a_spent_scope_makes_room(
    acme: Acme, lookup: Tool, turn: Turn, scope: str
) -> None:
    key = {"turn": turn.id, "session": turn.session_id, "tool": lookup.name}[scope]
    before = standings.of_call(running(acme, lookup, turn))[BudgetScope(scope)]
    granted(acme, scope, key, 5)
    after = standings.of_call(running(acme, lookup, turn))[BudgetScope(scope)]
    assert (after.limit, after.granted) == (before.limit + 5, 5)


def test_a_turn_goes_on_after_a_grant_and_stops_after_that_many(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    spend(acme, lookup, turn, 12)
    granted(acme, "turn", turn.id, 1, confirm="turn 1")
    assert [str(failed_once(acme, lookup, turn).state) for _ in range(2)] == [
        "backing_off", "failed",
    ]  # fmt: skip


def test_a_turn_can_be_granted_time(acme: Acme, lookup: Tool, turn: Turn) -> None:
    granted(acme, "turn", turn.id, 0, seconds=120.0)
    assert standings.of_call(running(acme, lookup, turn))[BudgetScope.TURN].seconds_limit == 720


def test_what_is_granted_to_a_rolling_scope_ends_with_its_window(acme: Acme, lookup: Tool) -> None:
    made = granted(acme, "tool", lookup.name, 5)
    assert made.until is not None
    assert round((made.until - made.at).total_seconds()) == 600
    turn_of_life = granted(acme, "turn", builders.a_turn(builders.a_session(acme)).id)
    assert turn_of_life.until is None


def test_a_grant_under_a_spent_wider_scope_is_refused_and_says_which(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    spend(acme, lookup, turn, 12)
    call = running(acme, lookup, turn)
    with pytest.raises(BudgetSpent, match="All 12 repeats of this turn are spent") as refusal:
        granted(acme, "call", call.id)
    assert refusal.value.facts["scope"] == BudgetScope.TURN
    assert not Grant.objects.exists()
    assert fresh(call).attempts_allowed == 5


@pytest.mark.parametrize("scope", ["turn", "tool"])
def test_more_for_a_spent_budget_is_granted_only_by_name_and_number(
    acme: Acme, lookup: Tool, turn: Turn, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tight = {each: replace(limit, repeats=1) for each, limit in standings.LIMITS.items()}
    monkeypatch.setattr(standings, "LIMITS", tight | {BudgetScope.SESSION: Limit(repeats=9)})
    spend(acme, lookup, turn, 1)
    key, confirm = {"turn": (turn.id, "turn 3"), "tool": ("lookup", "lookup 3")}[scope]

    for typed in ("", "3", confirm.replace("3", "4")):
        with pytest.raises(GrantUnconfirmed, match="repeats of this .* are spent") as refusal:
            granted(acme, scope, key, 3, confirm=typed)
        assert refusal.value.facts["confirm"] == confirm
    assert not Grant.objects.exists()

    granted(acme, scope, key, 3, confirm=confirm)
    granted(acme, scope, key, 2)
    assert Grant.objects.count() == 2


def test_more_time_for_a_turn_without_any_is_confirmed_by_its_seconds(
    acme: Acme, lookup: Tool, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeless = {BudgetScope.TURN: replace(standings.LIMITS[BudgetScope.TURN], seconds=0.0)}
    monkeypatch.setattr(standings, "LIMITS", standings.LIMITS | timeless)
    with pytest.raises(GrantUnconfirmed, match="'turn 90'"):
        granted(acme, "turn", turn.id, 0, seconds=90.0)
    assert granted(acme, "turn", turn.id, 0, seconds=90.0, confirm="turn 90").seconds == 90


def test_a_confirmed_grant_that_is_sent_again_is_the_same_one(acme: Acme) -> None:
    call = running(acme, builders.a_tool(acme, "once", **READ | {"retry": {"attempts": 1}}))
    first = granted(acme, "call", call.id, confirm="once 1", key="k1")
    assert granted(acme, "call", call.id, key="k1").id == first.id


def test_a_grant_to_a_turn_is_refused_under_a_spent_session(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    other = builders.a_tool(acme, "other", **READ)
    for n in range(60):
        failed_once_in(acme, other if n % 2 else lookup, turn.session)
    with pytest.raises(BudgetSpent, match="Grant to the session first"):
        granted(acme, "turn", turn.id)


def test_a_settled_call_takes_no_grant_and_asks_for_no_typing(acme: Acme) -> None:
    once = builders.a_tool(acme, "once", **READ | {"retry": {"attempts": 1}})
    call = builders.a_call(acme, "succeeded", tool=once)
    with pytest.raises(AlreadySettled):
        granted(acme, "call", call.id)
    assert not Grant.objects.exists()


@pytest.mark.parametrize(
    ("scope", "attempts", "seconds"),
    [("call", 21, 0), ("call", 0, 0), ("call", 1, 60), ("turn", 101, 0), ("turn", 0, 3601),
     ("session", 0, 1), ("tool", 1001, 0), ("tool", -1, 0)],
)  # fmt: skip
def test_a_grant_of_nothing_or_of_too_much_is_refused(
    acme: Acme, lookup: Tool, scope: str, attempts: int, seconds: int
) -> None:
    with pytest.raises(Invalid):
        granted(acme, scope, "any", attempts, seconds=float(seconds))


def test_a_grant_without_grounds_is_refused(acme: Acme, lookup: Tool) -> None:
    with pytest.raises(Invalid, match="grounds"):
        granted(acme, "tool", lookup.name, grounds="  ")


def test_the_same_key_grants_once(acme: Acme, lookup: Tool) -> None:
    first = granted(acme, "tool", lookup.name, 5, key="k1")
    assert granted(acme, "tool", lookup.name, 5, key="k1").id == first.id
    with pytest.raises(KeyReused):
        granted(acme, "tool", lookup.name, 6, key="k1")
    assert Grant.objects.count() == 1


@pytest.mark.parametrize("scope", ["call", "turn", "session", "tool"])
def test_what_is_anothers_takes_no_grant(acme: Acme, globex: Globex, scope: str) -> None:
    session = builders.a_session(globex)
    tool = builders.a_tool(globex, "theirs")
    call = builders.a_call(globex, tool=tool)
    key = {"call": call.id, "turn": builders.a_turn(session).id, "session": session.id,
           "tool": tool.name}[scope]  # fmt: skip
    with pytest.raises(NotFound):
        granted(acme, scope, key)


def test_a_grant_cannot_be_changed_afterwards(acme: Acme, lookup: Tool) -> None:
    made = granted(acme, "tool", lookup.name)
    with pytest.raises(DatabaseError, match="Cannot update"), transaction.atomic():
        Grant.objects.filter(id=made.id).update(attempts=99)


def test_waiting_for_a_person_spends_nothing(acme: Acme) -> None:
    call: ToolCall = builders.a_call(acme, "ambiguous")
    builders.past(call, "review")
    builders.fire()
    assert [each.spent for each in standings.of_call(fresh(call)).values()] == [0]
