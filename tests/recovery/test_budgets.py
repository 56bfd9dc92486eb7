"""Budgets: a repeat costs one in call, turn, session and tool, and a spent scope refuses it."""

from collections.abc import Callable

import pytest
from django.db import connection, transaction

from ledger import attempts, calls, clock, ids
from ledger.api import shapes
from ledger.calls import Reader
from ledger.journal import events_of
from ledger.models import Session, Tool, ToolCall, Turn
from ledger.scopes import LIMITS
from ledger.vocabulary import BudgetScope, CallState, Cause, Deadline, Meaning, ProbeFinding
from recovery import accounts, budgets, standings
from recovery.budgets import Allowed
from recovery.models import Refusal, Repeat
from tests import builders, threads, waits
from tests.builders import fresh, past
from tests.cast import Acme
from tests.recovery import deciding

PATIENT = {"timeouts": {"schedule_to_close_s": 86400}}
READ = {"recovery_class": "read_only", **PATIENT}
TURN, SESSION, TOOL = LIMITS


@pytest.fixture
def lookup(acme: Acme) -> Tool:
    return builders.a_tool(acme, "lookup", **READ)


@pytest.fixture
def session(acme: Acme) -> Session:
    return builders.a_session(acme)


@pytest.fixture
def turn(session: Session) -> Turn:
    return builders.a_turn(session)


def running(acme: Acme, tool: Tool, turn: Turn | None = None) -> ToolCall:
    place = {"turn_id": turn.id, "session_id": turn.session_id} if turn else {}
    return builders.a_call(acme, "running", tool=tool, arguments=unlike_any(), **place)


def unlike_any() -> dict[str, str]:
    """Arguments that no call had before: else it would be answered as that one's twin."""
    return {"path": ids.new().hex}


def fails(call: ToolCall, cause: Cause = Cause.SERVER_ERROR) -> ToolCall:
    builders.report(call, cause, Meaning.UNKNOWN)
    return fresh(call)


def failed_once(acme: Acme, tool: Tool, turn: Turn | None = None) -> ToolCall:
    """A read that waits for its second attempt: one repeat is reserved."""
    return fails(running(acme, tool, turn))


def spend(acme: Acme, tool: Tool, turn: Turn | None, times: int) -> list[ToolCall]:
    return [failed_once(acme, tool, turn) for _ in range(times)]


def again(call: ToolCall) -> ToolCall:
    """The dated repeat is published and claimed."""
    past(call, Deadline.BACKOFF)
    builders.fire()
    builders.claimed(call)
    return fresh(call)


def spent(scope: BudgetScope, call: ToolCall) -> int:
    return standings.of_call(call)[scope].spent


# Rule 1: a repeat reserves one from all four


def test_a_first_attempt_costs_nothing(acme: Acme, lookup: Tool, turn: Turn) -> None:
    call = running(acme, lookup, turn)
    assert [standing.spent for standing in standings.of_call(call).values()] == [0, 0, 0]
    assert standings.own(call).spent == 0


def test_a_repeat_costs_one_in_every_scope_when_it_is_scheduled(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    call = failed_once(acme, lookup, turn)
    assert call.state is CallState.BACKING_OFF
    assert [standing.spent for standing in standings.of_call(call).values()] == [1, 1, 1]
    line = Repeat.objects.get(call=call)
    assert (line.call_left, line.turn_left, line.session_left, line.tool_left) == (3, 11, 59, 99)
    assert (line.number, line.rule, line.cause) == (2, "proven_safe", "server_error")


def test_a_call_without_a_session_spends_from_its_tool(acme: Acme, lookup: Tool) -> None:
    call = failed_once(acme, lookup)
    assert list(standings.of_call(call)) == [TOOL]
    assert Repeat.objects.get(call=call).turn_left is None


def test_a_turn_that_is_spent_refuses_and_is_named(acme: Acme, lookup: Tool, turn: Turn) -> None:
    spend(acme, lookup, turn, 12)
    call = failed_once(acme, lookup, turn)
    facts = events_of(call.id)[-1].facts_json
    assert (call.state, call.reason) == ("failed", "budget_spent")
    assert (facts["scope"], facts["grounds"]) == (
        "turn", "All 12 repeats of this turn are spent.",
    )  # fmt: skip
    assert Refusal.objects.get(call=call).scope == TURN
    assert Repeat.objects.count() == 12


def test_the_model_is_told_which_budget_is_spent(acme: Acme, lookup: Tool, turn: Turn) -> None:
    spend(acme, lookup, turn, 12)
    call = failed_once(acme, lookup, turn)
    [read] = calls.read_many([(Reader(acme.workspace.id), call.id)])
    told = shapes.told_of(read)
    assert told is not None
    assert told.template == "budget_spent"
    assert "the retry budget of this turn is spent" in told.text


def test_another_turn_of_the_session_has_its_own_budget(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    spend(acme, lookup, turn, 12)
    builders.sessions.close_turn(turn=turn, closed_as="stopped")
    call = failed_once(acme, lookup, builders.a_turn(turn.session, key="next"))
    assert call.state is CallState.BACKING_OFF
    assert spent(SESSION, call) == 13


@pytest.mark.parametrize(("scope", "limit"), [(SESSION, 60), (TOOL, 100)])
def test_a_rolling_scope_that_is_spent_refuses_and_is_named(
    acme: Acme, lookup: Tool, session: Session, scope: BudgetScope, limit: int
) -> None:
    other = builders.a_tool(acme, "other", **READ)
    for n in range(limit):
        tool = lookup if scope is TOOL or n % 2 else other
        failed_once_in(acme, tool, session if scope is SESSION else None)
    call = failed_once_in(acme, lookup, session)
    assert (call.state, events_of(call.id)[-1].facts_json["scope"]) == ("failed", scope)


def failed_once_in(acme: Acme, tool: Tool, session: Session | None) -> ToolCall:
    place = {"session_id": session.id} if session else {}
    return fails(builders.a_call(acme, "running", tool=tool, arguments=unlike_any(), **place))


@pytest.mark.parametrize(("scope", "window"), [(SESSION, "24 hours"), (TOOL, "10 minutes")])
def test_what_lies_before_the_window_counts_no_more(
    acme: Acme, lookup: Tool, turn: Turn, scope: BudgetScope, window: str
) -> None:
    call = failed_once(acme, lookup, turn)
    made_earlier(call, window)
    assert spent(scope, call) == 0
    assert spent(TURN, call) == 1


def made_earlier(call: ToolCall, window: str) -> None:
    """Let the call's line on the account have been written this long ago."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "UPDATE recovery_repeat SET at = at - %s::interval WHERE call_id = %s",
            [window, call.id],
        )
        cursor.execute("SET LOCAL session_replication_role = origin")


def test_a_turn_that_has_waited_and_repeated_ten_minutes_repeats_no_more(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    call = again(failed_once(acme, lookup, turn))
    ran_for(call, "10 minutes")
    standing = standings.of_call(call)[TURN]
    assert standing.seconds_left == 0
    other = failed_once(acme, lookup, turn)
    assert other.state is CallState.FAILED
    assert (
        "600 s that this turn may wait and repeat" in events_of(other.id)[-1].facts_json["grounds"]
    )


def ran_for(call: ToolCall, interval: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_attempt SET claimed_at = claimed_at - %s::interval "
            "WHERE call_id = %s AND ended_at IS NULL",
            [interval, call.id],
        )


def test_a_wait_that_does_not_fit_into_the_turns_time_is_not_begun(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    ran_for(again(failed_once(acme, lookup, turn)), "9 minutes 50 seconds")
    call = running(acme, lookup, turn)
    builders.report(call, Cause.RATE_LIMITED, Meaning.REFUSED, retry_after_s=60.0)
    assert fresh(call).reason == "budget_spent"


@pytest.mark.parametrize(
    ("recovery_class", "state"), [("idempotent_write", "ambiguous"), ("provider_auth", "expired")]
)
def test_spent_with_a_possible_effect_goes_to_the_operator_or_expires(
    acme: Acme, lookup: Tool, turn: Turn, recovery_class: str, state: str
) -> None:
    spend(acme, lookup, turn, 12)
    tool = builders.a_tool(acme, "write", recovery_class)
    call = running(acme, tool, turn)
    builders.cross(call)
    builders.report(call, Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    past(call, Deadline.NEXT_STEP)
    builders.fire()
    call = fresh(call)
    assert (call.state, call.effect) == (state, "possible")
    facts = events_of(call.id)[-1].facts_json
    assert facts["scope"] == "turn"
    if state == "ambiguous":
        assert call.incidents.get().reason == "work_budget_exceeded"
        assert facts["reason"] == "work_budget_exceeded"


def test_a_no_that_counts_still_settles_when_the_budget_is_spent(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    spend(acme, lookup, turn, 12)
    tool = builders.a_tool(acme, "pay", probe={"authoritative": True})
    call = running(acme, tool, turn)
    builders.cross(call)
    builders.lost(call)
    builders.unlock_denial(call)
    past(call, Deadline.NEXT_STEP)
    builders.fire()
    builders.probe(call, ProbeFinding.DID_NOT_HAPPEN)
    past(call, Deadline.NEXT_STEP)
    builders.fire()
    call = fresh(call)
    assert (call.state, call.effect, call.reason) == ("expired", "did_not_happen", "budget_spent")


def test_the_calls_own_attempts_are_refused_by_name_too(acme: Acme, lookup: Tool) -> None:
    call = failed_once(acme, lookup)
    for _ in range(4):
        call = fails(again(call))
    assert (call.state, call.attempts_used) == ("failed", 5)
    assert Refusal.objects.get(call=call).scope == BudgetScope.CALL
    assert Repeat.objects.filter(call=call).count() == 4


# Rule 2: given back if never claimed, kept while the effect is possible


def test_a_repeat_that_was_never_claimed_is_given_back(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    call = failed_once(acme, lookup, turn)
    calls.cancel(workspace_id=call.workspace_id, agent_id=call.agent_id, call_id=call.id)
    call = fresh(call)
    assert [standing.spent for standing in standings.of_call(call).values()] == [0, 0, 0]
    assert [line.use for line in lines(call)] == ["claimed", "given_back"]


def test_a_repeat_that_no_worker_took_in_time_is_given_back(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    call = failed_once(acme, lookup, turn)
    past(call, Deadline.BACKOFF)
    builders.fire()
    past(call, Deadline.SCHEDULE_TO_START)
    builders.fire()
    assert (fresh(call).state, spent(TURN, fresh(call))) == ("expired", 0)


def test_a_repeat_that_was_claimed_is_spent_whatever_came_of_it(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    call = again(failed_once(acme, lookup, turn))
    builders.settle(call)
    assert spent(TURN, fresh(call)) == 1


def test_a_repeat_is_kept_while_the_effect_is_possible(acme: Acme, turn: Turn) -> None:
    tool = builders.a_tool(acme, "write", "idempotent_write")
    call = running(acme, tool, turn)
    builders.cross(call)
    builders.report(call, Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    past(call, Deadline.NEXT_STEP)
    builders.fire()
    past(call, Deadline.BACKOFF)
    builders.fire()
    past(call, Deadline.SCHEDULE_TO_START)
    builders.fire()
    past(call, Deadline.NEXT_STEP)
    builders.fire()
    call = fresh(call)
    assert (call.state, call.attempts_used, spent(TURN, call)) == ("ambiguous", 1, 1)


def test_a_released_attempt_spends_no_second_repeat(acme: Acme, lookup: Tool, turn: Turn) -> None:
    call = again(failed_once(acme, lookup, turn))
    attempts.release(call_id=call.id, fence=call.fence, grounds="The worker drains.")
    call = again(call)
    assert (spent(TURN, call), call.attempts_used) == (1, 2)


# Rule 3: a resolution that repeats


def test_a_persons_repeat_passes_a_spent_turn_and_counts(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    spend(acme, lookup, turn, 12)
    call = deciding.ambiguous(acme, "idempotent_write", delivery_delay_s=0, turn=turn)
    deciding.decide(acme, call, "retry_same_key")
    line = Repeat.objects.get(call=call)
    assert (line.granted_by, line.granted_by_name, line.turn_left) == (acme.olga, "olga", 0)
    assert spent(TURN, call) == 13


def test_a_persons_repeat_is_one_attempt_more_and_no_other(acme: Acme) -> None:
    call = deciding.ambiguous(acme, "idempotent_write", delivery_delay_s=0)
    deciding.decide(acme, call, "retry_same_key")
    assert (fresh(call).attempts_used, fresh(call).attempts_allowed) == (1, 2)
    assert Repeat.objects.get(call=call).call_left == 0


# Rule 6: the account


def lines(call: ToolCall) -> list[accounts.Line]:
    return accounts.lines_of(fresh(call), now=clock.now())


def test_the_account_says_why_each_attempt_was_allowed_and_what_it_left(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    call = fails(again(failed_once(acme, lookup, turn)))
    first, second, third = lines(call)
    assert (first.rule, first.cost) == ("first", {})
    assert (second.rule, second.fence, second.use) == ("proven_safe", 2, "claimed")
    assert second.cost == {"call": 1, "turn": 1, "session": 1, "tool": 1}
    assert (third.left, third.use) == (
        {"call": 2, "turn": 10, "session": 58, "tool": 98}, "reserved",
    )  # fmt: skip
    assert "only reads" in third.grounds
    assert (second.wait_s, third.wait_s) == (1.0, 2.0)


# Races


def until_one_is_left(acme: Acme, tool: Tool, turn: Turn) -> None:
    spend(acme, tool, turn, 11)


@pytest.mark.django_db(transaction=True)
def test_two_connections_cannot_both_take_the_last_repeat(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    until_one_is_left(acme, lookup, turn)
    last = [running(acme, lookup, turn) for _ in range(4)]
    answers = threads.at_once([reporting(call) for call in last])
    assert answers == [None] * 4
    states = sorted(str(fresh(call).state) for call in last)
    assert states == ["backing_off", "failed", "failed", "failed"]
    assert spent(TURN, last[0]) == 12


def reporting(call: ToolCall) -> Callable[[], None]:
    return lambda: builders.report(call, Cause.SERVER_ERROR, Meaning.UNKNOWN)


@pytest.mark.django_db(transaction=True)
def test_a_repeat_waits_for_the_one_that_is_being_reserved(
    acme: Acme, lookup: Tool, turn: Turn
) -> None:
    until_one_is_left(acme, lookup, turn)
    mine, other = running(acme, lookup, turn), running(acme, lookup, turn)
    pids: list[int] = []

    def report_the_other() -> None:
        pids.append(waits.backend_pid())
        builders.report(other, Cause.SERVER_ERROR, Meaning.UNKNOWN)

    with threads.ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            builders.report(mine, Cause.SERVER_ERROR, Meaning.UNKNOWN)
            waiting = pool.submit(threads.with_own_connection(report_the_other))
            waits.until(lambda: pids, what="the other connection")
            waits.until_blocked(pids[0], by=waits.backend_pid())
        waiting.result(timeout=10)
    assert (fresh(mine).state, fresh(other).state) == ("backing_off", "failed")


@pytest.mark.django_db(transaction=True)
def test_scopes_are_locked_from_narrow_to_wide(acme: Acme, lookup: Tool, turn: Turn) -> None:
    call = running(acme, lookup, turn)
    with transaction.atomic():
        budgets.reserve(call, Allowed(rule="proven_safe", grounds="It only reads."))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 "
                "AND pid = pg_backend_pid()"
            )
            assert cursor.fetchone()[0] == 3
    assert list(standings.keys_of(call)) == [TURN, SESSION, TOOL]
