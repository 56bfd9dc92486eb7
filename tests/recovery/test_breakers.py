"""Breakers: opened by real attempts, one trial passes, its end closes or opens again."""

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from ledger import attempts, claims, registered, registry
from ledger.errors import Invalid, NotFound
from ledger.models import Gate, Tool, ToolCall
from ledger.models.attempts import BREAKS
from ledger.submits import Recorded
from ledger.vocabulary import BreakerState, Cause, Deadline, GateKind, Meaning
from recovery import breakers, reports, watchdog
from recovery.models import Breaker, BreakerChange
from tests import builders, threads
from tests.builders import fresh
from tests.cast import Acme, Globex

ONE = {"retry": {"attempts": 1}}
SHOP = {"executor": "http", "config": {"url": "https://shop.example/orders", "method": "POST"}}
OPEN, CLOSED, TRIAL = BreakerState.OPEN, BreakerState.CLOSED, BreakerState.TRIAL


@pytest.fixture
def lookup(acme: Acme) -> Tool:
    return builders.a_tool(acme, "lookup", "read_only", **ONE)


def attempted(acme: Acme, tool: Tool, cause: Cause | None = None, times: int = 1) -> None:
    """So many calls of the tool, each with one attempt that ends well or in this cause."""
    answers = builders.submits.record([builders.a_submit(acme, tool) for _ in range(times)])
    wanted = {answer.call_id for answer in answers if isinstance(answer, Recorded)}
    won = claims.claim(queue="reads", holder=builders.the_worker(), limit=times)
    assert {each.call_id for each in won} == wanted, "another call waits in the queue"
    if cause is None:
        builders.settlements.settle([builders.settlement(each) for each in won])
        return
    for each in won:
        reports.ended(claim=each, cause=cause, means=Meaning.UNKNOWN)


def ended(call: ToolCall, cause: Cause | None) -> None:
    if cause is None:
        builders.settle(call)
    else:
        builders.report(call, cause, Meaning.UNKNOWN)


def sweep() -> int:
    """The watchdog looks, and this process learns of it at once instead of within a second."""
    changed = breakers.sweep()
    registered.forget()
    return changed


def of(name: str, kind: GateKind = GateKind.TOOL) -> Breaker:
    return Breaker.objects.get(name=name, kind=kind)


def opened(acme: Acme, tool: Tool) -> Breaker:
    attempted(acme, tool, Cause.SERVER_ERROR, 20)
    sweep()
    assert of(tool.name).state is OPEN
    return of(tool.name)


def trial_is_due() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_gate SET trial_at = clock_timestamp() - interval '1 s'")
    registered.forget()


def submitted(acme: Acme, tool: Tool) -> ToolCall:
    return fresh(builders.answer_to(builders.a_submit(acme, tool)).call_id)


def trial_of(acme: Acme, tool: Tool) -> ToolCall:
    """The call that passes an open breaker whose time is over, running."""
    trial_is_due()
    call = submitted(acme, tool)
    assert call.state == "scheduled"
    sweep()
    assert of(tool.name).state is TRIAL
    builders.claimed(call)
    return call


def changes(breaker: Breaker) -> list[tuple[str, str, str]]:
    return [(each.source, each.target, each.rule) for each in breaker.changes.order_by("id")]


# Opening


@pytest.mark.parametrize(
    "cause", [Cause.HANG, Cause.CONNECTION_LOST, Cause.GATEWAY_TIMEOUT, Cause.SERVER_ERROR]
)
def test_half_of_twenty_attempts_within_a_minute_open_it(
    acme: Acme, lookup: Tool, cause: Cause
) -> None:
    attempted(acme, lookup, None, 10)
    attempted(acme, lookup, cause, 9)
    sweep()
    assert not Breaker.objects.filter(state=OPEN).exists()
    attempted(acme, lookup, cause)
    sweep()
    change = of("lookup").changes.get()
    assert (change.rule, change.person, change.figures["attempts"], change.figures["bad"]) == (
        "half_failed", None, 20, 10,
    )  # fmt: skip
    assert Gate.objects.get().name == "lookup"


def test_nineteen_attempts_are_too_few_to_judge(acme: Acme, lookup: Tool) -> None:
    attempted(acme, lookup, Cause.HANG, 19)
    sweep()
    assert not Gate.objects.exists()


@pytest.mark.parametrize("cause", [Cause.RATE_LIMITED, Cause.AUTH, Cause.WORKER_LOST])
def test_other_ends_do_not_speak_against_the_outside(
    acme: Acme, lookup: Tool, cause: Cause
) -> None:
    attempted(acme, lookup, cause, 20)
    sweep()
    assert not Gate.objects.exists()


def test_less_than_half_leaves_it_closed(acme: Acme, lookup: Tool) -> None:
    attempted(acme, lookup, None, 12)
    attempted(acme, lookup, Cause.HANG, 11)
    sweep()
    assert not Gate.objects.exists()


def test_what_ended_more_than_a_minute_ago_counts_no_more(acme: Acme, lookup: Tool) -> None:
    attempted(acme, lookup, Cause.HANG, 20)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_attempt SET ended_at = ended_at - interval '61 s'")
    sweep()
    assert not Gate.objects.exists()


def test_attempts_that_hang_until_their_deadline_open_it_too(acme: Acme, lookup: Tool) -> None:
    for _ in range(20):
        call = builders.a_call(acme, "running", tool=lookup)
        builders.past(call, Deadline.START_TO_CLOSE)
    builders.fire()
    watchdog.sweep()
    assert of("lookup").state is OPEN


def test_the_tools_of_a_provider_open_its_breaker_together(acme: Acme) -> None:
    tools = [builders.a_tool(acme, name, "read_only", **SHOP, **ONE) for name in ("look", "list")]
    for tool in tools:
        attempted(acme, tool, Cause.SERVER_ERROR, 10)
    sweep()
    assert of("shop.example", GateKind.PROVIDER).state is OPEN
    assert not Breaker.objects.filter(kind=GateKind.TOOL, state=OPEN).exists()
    renamed = builders.a_tool(acme, "look.again", "read_only", **SHOP)
    assert submitted(acme, renamed).reason == "breaker_open"


def test_a_neighbours_failures_are_their_own(acme: Acme, globex: Globex, lookup: Tool) -> None:
    theirs = builders.a_tool(globex, "lookup", "read_only", **ONE)
    attempted(acme, lookup, Cause.HANG, 20)
    sweep()
    call = builders.answer_to(builders.a_submit(globex, theirs))
    assert call.state == "scheduled"


# While it is open


def test_while_open_no_attempt_begins_and_new_calls_are_rejected(acme: Acme, lookup: Tool) -> None:
    waiting = builders.a_call(acme, tool=lookup)
    attempted_before(acme, lookup, waiting)
    sweep()
    assert claims.claim(queue="reads", holder=builders.the_worker(), limit=5) == []
    assert submitted(acme, lookup).reason == "breaker_open"
    assert fresh(waiting).state == "scheduled"


def attempted_before(acme: Acme, tool: Tool, waiting: ToolCall) -> None:
    """Twenty bad attempts while another call waits further back in the queue."""
    for _ in range(20):
        call = builders.a_call(acme, tool=tool)
        builders.claimed(call)
        ended(call, Cause.HANG)


def test_a_dated_repeat_waits_for_the_trial(acme: Acme) -> None:
    look = builders.a_tool(acme, "look", "read_only", **SHOP, **ONE)
    dated = builders.a_call(
        acme, "running", tool=builders.a_tool(acme, "list", "read_only", **SHOP)
    )
    attempted(acme, look, Cause.HANG, 20)
    sweep()
    ended(dated, Cause.HANG)
    builders.past(dated, Deadline.BACKOFF)
    builders.fire()
    assert claims.claim(queue="reads", holder=builders.the_worker(), limit=5) == []
    trial_is_due()
    sweep()
    assert Gate.objects.get(name="shop.example").trial_call_id == dated.id
    builders.claimed(dated)
    builders.settle(dated)
    sweep()
    sweep()
    assert of("shop.example", GateKind.PROVIDER).state is CLOSED
    assert of("look").state is OPEN


def test_what_runs_is_left_to_end(acme: Acme, lookup: Tool) -> None:
    call = builders.a_call(acme, "running", tool=lookup)
    opened(acme, lookup)
    builders.settle(call)
    assert fresh(call).state == "succeeded"


def test_before_its_time_no_trial_passes(acme: Acme, lookup: Tool) -> None:
    opened(acme, lookup)
    sweep()
    assert Gate.objects.get().trial_call_id is None
    assert submitted(acme, lookup).state == "rejected"


# The trial


def test_a_trial_that_is_answered_closes_it(acme: Acme, lookup: Tool) -> None:
    breaker = opened(acme, lookup)
    ended(trial_of(acme, lookup), None)
    sweep()
    assert changes(breaker) == [
        ("closed", "open", "half_failed"), ("open", "trial", "trial"),
        ("trial", "closed", "trial_passed"),
    ]  # fmt: skip
    assert not Gate.objects.exists()
    assert submitted(acme, lookup).state == "scheduled"


def test_what_failed_before_it_closed_does_not_open_it_again(acme: Acme, lookup: Tool) -> None:
    opened(acme, lookup)
    ended(trial_of(acme, lookup), None)
    sweep()
    registered.forget()
    attempted(acme, lookup, Cause.HANG, 19)
    sweep()
    assert of("lookup").state is CLOSED


@pytest.mark.parametrize("cause", [Cause.RATE_LIMITED, Cause.NOT_FOUND, Cause.TOOL_ERROR])
def test_a_trial_that_is_refused_was_answered(acme: Acme, lookup: Tool, cause: Cause) -> None:
    opened(acme, lookup)
    ended(trial_of(acme, lookup), cause)
    sweep()
    assert of("lookup").state is CLOSED


@pytest.mark.parametrize("cause", [Cause.HANG, Cause.CONNECT_FAILED])
def test_a_trial_that_fails_opens_it_for_twice_as_long(
    acme: Acme, lookup: Tool, cause: Cause
) -> None:
    breaker = opened(acme, lookup)
    waits = [wait_s()]
    for _ in range(5):
        ended(trial_of(acme, lookup), cause)
        sweep()
        waits.append(wait_s())
    assert waits == [30, 60, 120, 240, 480, 600]
    assert changes(breaker)[-1] == ("trial", "open", "trial_failed")


def wait_s() -> int:
    gate = Gate.objects.get()
    assert gate.trial_at is not None
    return round((gate.trial_at - of(gate.name).since).total_seconds())


def test_a_trial_that_says_nothing_of_the_outside_lets_another_pass(
    acme: Acme, lookup: Tool
) -> None:
    breaker = opened(acme, lookup)
    ended(trial_of(acme, lookup), Cause.WORKER_LOST)
    sweep()
    assert changes(breaker)[-1] == ("trial", "open", "trial_void")
    assert submitted(acme, lookup).state == "scheduled"


def test_a_trial_that_a_worker_gives_back_lets_another_pass(acme: Acme, lookup: Tool) -> None:
    breaker = opened(acme, lookup)
    call = trial_of(acme, lookup)
    attempts.release(call_id=call.id, fence=fresh(call).fence, grounds="The worker drains.")
    sweep()
    assert changes(breaker)[-1] == ("trial", "open", "trial_void")


def test_a_trial_that_nobody_claimed_lets_another_pass(acme: Acme, lookup: Tool) -> None:
    breaker = opened(acme, lookup)
    trial_is_due()
    call = submitted(acme, lookup)
    sweep()
    builders.past(call, Deadline.SCHEDULE_TO_START)
    builders.fire()
    sweep()
    assert changes(breaker)[-1] == ("trial", "open", "trial_void")
    assert Gate.objects.get().trial_call_id is None


def test_a_waiting_call_that_only_reads_passes_before_an_older_one(acme: Acme) -> None:
    pay = builders.a_tool(acme, "pay", "side_effect", **SHOP)
    look = builders.a_tool(acme, "look", "read_only", **SHOP, **ONE)
    paying, reading = builders.a_call(acme, tool=pay), builders.a_call(acme, tool=look)
    for _ in range(20):
        call = builders.a_call(acme, tool=look)
        builders.claimed(call)
        ended(call, Cause.SERVER_ERROR)
    sweep()
    trial_is_due()
    sweep()
    assert set(Gate.objects.values_list("trial_call_id", flat=True)) == {reading.id}
    assert fresh(paying).state == "scheduled"


# By a person


def put(acme: Acme, breaker: Breaker, state: BreakerState, grounds: str = "It is back.") -> Breaker:
    return breakers.put(
        workspace_id=acme.workspace.id, breaker_id=breaker.id, state=state, grounds=grounds,
        person=acme.olga,
    )  # fmt: skip


def test_a_person_closes_an_open_breaker_and_opens_a_closed_one(acme: Acme, lookup: Tool) -> None:
    breaker = opened(acme, lookup)
    put(acme, breaker, CLOSED)
    assert submitted(acme, lookup).state == "scheduled"
    put(acme, breaker, OPEN)
    assert submitted(acme, lookup).reason == "breaker_open"
    last = breaker.changes.order_by("id").last()
    assert last is not None
    assert (last.person, last.person_name, last.grounds, last.rule) == (
        acme.olga, "olga", "It is back.", "",
    )  # fmt: skip


def test_pressing_twice_changes_once(acme: Acme, lookup: Tool) -> None:
    breaker = opened(acme, lookup)
    for _ in range(2):
        put(acme, breaker, CLOSED)
    assert len(changes(breaker)) == 2


@pytest.mark.parametrize(("state", "grounds"), [(CLOSED, " "), (TRIAL, "Let one pass.")])
def test_without_grounds_or_for_a_trial_nothing_changes(
    acme: Acme, lookup: Tool, state: BreakerState, grounds: str
) -> None:
    breaker = opened(acme, lookup)
    with pytest.raises(Invalid):
        put(acme, breaker, state, grounds)
    assert of("lookup").state is OPEN


def test_anothers_breaker_reads_as_absent(acme: Acme, globex: Globex, lookup: Tool) -> None:
    breaker = opened(acme, lookup)
    with pytest.raises(NotFound):
        breakers.put(workspace_id=globex.workspace.id, breaker_id=breaker.id, state=CLOSED,
                     grounds="Mischief.", person=globex.mallory_herself)  # fmt: skip


def test_a_change_cannot_be_rewritten(acme: Acme, lookup: Tool) -> None:
    opened(acme, lookup)
    with pytest.raises(DatabaseError, match="Cannot update"), transaction.atomic():
        BreakerChange.objects.update(grounds="Another.")


def test_a_breaker_whose_gate_is_gone_gets_one_that_is_due(acme: Acme, lookup: Tool) -> None:
    opened(acme, lookup)
    Gate.objects.all().delete()
    sweep()
    assert Gate.objects.get().name == "lookup"


# Two at once


@pytest.mark.django_db(transaction=True)
def test_two_watchdogs_open_it_once(acme: Acme, lookup: Tool) -> None:
    attempted(acme, lookup, Cause.SERVER_ERROR, 20)
    answers: list[Any] = threads.at_once([breakers.sweep for _ in range(3)])
    assert sum(answers) == 1
    assert len(changes(of("lookup"))) == 1


def test_a_bad_end_is_found_by_an_index_that_holds_no_other(db: None) -> None:
    words = ", ".join(f"'{cause}'" for cause in BREAKS)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            f"EXPLAIN SELECT FROM ledger_attempt a WHERE a.cause IN ({words}) "
            "AND a.ended_at > statement_timestamp() - interval '60 s'"
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert f"a.cause IN ({words})" in breakers.SUSPECTS
    assert "attempt_ended_badly" in plan


def test_a_tool_can_be_switched_off_while_its_breaker_is_open(acme: Acme, lookup: Tool) -> None:
    opened(acme, lookup)
    by = builders.AUTHOR
    registry.switch(workspace_id=acme.workspace.id, tool_name="lookup", on=False, by=by)
    put(acme, of("lookup"), CLOSED)
    assert submitted(acme, lookup).reason == "switched_off"
