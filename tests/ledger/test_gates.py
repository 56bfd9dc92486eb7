"""Gates: behind one no new attempt begins; what runs is left to end, open calls run out."""

import pytest
from django.db import DatabaseError, connection, transaction

from ledger import claims, gates, pressure, registered, registry
from ledger.models import Gate, Switch, Tool, ToolCall
from ledger.registry import Declaration
from ledger.vocabulary import CallState, Deadline, GateKind, GateReason
from tests import builders, threads
from tests.builders import fresh, past
from tests.cast import Acme, Globex
from tests.refusals import sql

READ = {"recovery_class": "read_only", "timeouts": {"schedule_to_close_s": 86400}}
SHOP = {"executor": "http", "config": {"url": "https://shop.example/orders", "method": "POST"}}


@pytest.fixture
def pay(acme: Acme) -> Tool:
    return builders.a_tool(acme, "pay", "side_effect", **SHOP)


def switch(acme: Acme, tool: Tool, *, on: bool = False) -> None:
    registry.switch(workspace_id=acme.workspace.id, tool_name=tool.name, on=on, by=builders.AUTHOR)


def gate(acme: Acme, name: str, kind: GateKind = GateKind.TOOL, trial_in_s: float = 60.0) -> Gate:
    """An open breaker's gate, as its breaker puts it up."""
    gates.close(
        workspace_id=acme.workspace.id, kind=kind, name=name, why=GateReason.BREAKER_OPEN,
        trial_in_s=trial_in_s,
    )  # fmt: skip
    registered.forget()
    return Gate.objects.get(kind=kind, name=name)


def claimed_of(queue: str = "effects") -> list[object]:
    return [each.call_id for each in claims.claim(
        queue=queue, holder=builders.the_worker(), limit=10)]  # fmt: skip


# The switch of a tool


def test_a_switched_off_tool_begins_no_attempt_of_a_call_that_waits(acme: Acme, pay: Tool) -> None:
    call = builders.a_call(acme, tool=pay)
    switch(acme, pay)
    assert claimed_of() == []
    assert not claims.are_due("effects")
    switch(acme, pay, on=True)
    assert claimed_of() == [call.id]


def test_a_call_that_waits_behind_a_gate_runs_out_on_its_own_deadline(
    acme: Acme, pay: Tool
) -> None:
    call = builders.a_call(acme, tool=pay)
    switch(acme, pay)
    past(call, Deadline.SCHEDULE_TO_START)
    builders.fire()
    assert (fresh(call).state, fresh(call).effect) == ("expired", "not_begun")


def test_what_has_crossed_is_left_to_end(acme: Acme, pay: Tool) -> None:
    call = builders.a_call(acme, "running", tool=pay, crossed=True)
    switch(acme, pay)
    builders.settle(call)
    assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")


def test_a_parked_job_is_followed_while_its_tool_is_off(acme: Acme) -> None:
    render = builders.a_tool(acme, "render", "long_running")
    call = builders.a_call(acme, "parked", tool=render)
    switch(acme, render)
    assert builders.poll(call).kind == "poll"


def test_each_press_is_kept_with_who_why_and_when(acme: Acme, pay: Tool) -> None:
    switch(acme, pay)
    switch(acme, pay, on=True)
    presses = [(each.on, each.person_name, each.grounds) for each in Switch.objects.order_by("id")]
    assert presses == [(False, "olga", "The tests need it."), (True, "olga", "The tests need it.")]
    assert not Gate.objects.exists()
    with pytest.raises(DatabaseError, match="Cannot update"), transaction.atomic():
        Switch.objects.update(grounds="Another.")


def test_another_tool_and_another_workspace_are_not_behind_it(
    acme: Acme, globex: Globex, pay: Tool
) -> None:
    other = builders.a_call(acme, tool=builders.a_tool(acme, "other"))
    theirs = builders.a_call(globex, tool=builders.a_tool(globex, "pay"))
    switch(acme, pay)
    assert claimed_of() == [other.id, theirs.id]


def test_another_process_sees_the_switch_within_a_second(
    acme: Acme, pay: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this process remembers of a tool is as old as another's would be."""
    builders.a_call(acme, tool=pay)
    with monkeypatch.context() as patched:
        patched.setattr(registered, "forget", lambda: None)
        switch(acme, pay)
    assert registered.REMEMBERED_S <= 1.0
    waiting = builders.a_call(acme, tool=pay)
    assert claimed_of() == []
    assert waiting.state is CallState.SCHEDULED
    for key, (_, known) in list(registered._remembered.items()):
        registered._remembered[key] = (0.0, known)
    assert builders.a_call(acme, "rejected", tool=pay).reason == "switched_off"


# A breaker's gate


def test_behind_a_breaker_a_new_call_is_recorded_and_rejected_at_once(
    acme: Acme, pay: Tool
) -> None:
    gate(acme, "pay")
    call = submitted(acme, pay)
    assert (call.state, call.reason, call.effect) == ("rejected", "breaker_open", "not_begun")


def submitted(acme: Acme, tool: Tool) -> ToolCall:
    return fresh(builders.answer_to(builders.a_submit(acme, tool)).call_id)


def test_a_full_queue_behind_a_gate_rejects_and_never_answers_429(acme: Acme, pay: Tool) -> None:
    waiting = builders.a_call(acme, tool=pay)
    sql("UPDATE ledger_toolcall SET published_at = published_at - interval '20 s' WHERE id = %s",
        waiting.id)  # fmt: skip
    pressure.forget()
    gate(acme, "pay")
    assert submitted(acme, pay).state is CallState.REJECTED


def test_a_providers_gate_stands_before_all_its_tools_whatever_they_are_called(
    acme: Acme, pay: Tool
) -> None:
    waiting = builders.a_call(acme, tool=pay)
    gate(acme, "shop.example", GateKind.PROVIDER)
    renamed = builders.a_tool(acme, "pay.again", **SHOP)
    elsewhere = builders.a_tool(acme, "mail", executor="http", config={"url": "https://m.example/"})
    assert submitted(acme, renamed).reason == "breaker_open"
    assert claimed_of() == []
    assert submitted(acme, elsewhere).state is CallState.SCHEDULED
    assert fresh(waiting).state is CallState.SCHEDULED


def test_a_declared_provider_holds_for_tools_of_any_executor(acme: Acme) -> None:
    tool = registry.put(
        workspace=acme.workspace, policy={}, by=builders.AUTHOR,
        declaration=Declaration(name="fetch", executor="python", provider="Shop.Example"),
    )  # fmt: skip
    assert tool.versions.get().provider == "shop.example"
    gate(acme, "shop.example", GateKind.PROVIDER)
    assert submitted(acme, tool).reason == "breaker_open"


def test_when_the_trial_is_due_exactly_one_new_call_passes(acme: Acme, pay: Tool) -> None:
    gate(acme, "pay", trial_in_s=0.0)
    first, second = submitted(acme, pay), submitted(acme, pay)
    assert (first.state, second.reason) == ("scheduled", "breaker_open")
    assert Gate.objects.get().trial_call_id == first.id
    assert claimed_of() == [first.id]


@pytest.mark.django_db(transaction=True)
def test_of_many_submits_at_once_one_is_the_trial(acme: Acme, pay: Tool) -> None:
    gate(acme, "pay", trial_in_s=0.0)
    calls = threads.at_once([lambda: submitted(acme, pay) for _ in range(6)])
    states = sorted(str(each.state) for each in calls)  # type: ignore[union-attr]
    assert states == ["rejected"] * 5 + ["scheduled"]


def test_a_new_call_does_not_pass_while_one_that_only_reads_waits(acme: Acme) -> None:
    pay, look = (
        builders.a_tool(acme, name, klass, **SHOP)
        for name, klass in (("pay", "side_effect"), ("look", "read_only"))
    )
    reading = builders.a_call(acme, tool=look)
    closed = gate(acme, "shop.example", GateKind.PROVIDER, trial_in_s=0.0)
    assert submitted(acme, pay).reason == "breaker_open"
    waiting = gates.next_trial(closed.id)
    assert waiting is not None
    assert (waiting.call_id, waiting.queue) == (reading.id, "reads")


def test_a_call_behind_two_gates_passes_both_or_neither(acme: Acme, pay: Tool) -> None:
    waiting = builders.a_call(acme, tool=pay)
    own = gate(acme, "pay", trial_in_s=0.0)
    shared = gate(acme, "shop.example", GateKind.PROVIDER, trial_in_s=60.0)
    assert gates.next_trial(own.id) is None
    gates.close(workspace_id=acme.workspace.id, kind=GateKind.PROVIDER, name="shop.example",
                why=GateReason.BREAKER_OPEN, trial_in_s=0.0)  # fmt: skip
    found = gates.next_trial(own.id)
    assert found is not None
    assert set(found.gate_ids) == {own.id, shared.id}
    assert gates.admit(found.gate_ids, found.call_id)
    assert claimed_of() == [waiting.id]


def test_the_trial_of_a_breaker_does_not_pass_a_tool_that_is_switched_off(
    acme: Acme, pay: Tool
) -> None:
    gate(acme, "pay", trial_in_s=0.0)
    call = submitted(acme, pay)
    switch(acme, pay)
    assert claimed_of() == []
    assert submitted(acme, pay).reason == "switched_off"
    assert fresh(call).state is CallState.SCHEDULED


def test_without_a_gate_the_claim_is_served_by_its_index(acme: Acme, pay: Tool) -> None:
    with connection.cursor() as cursor:
        # On a handful of rows any plan is cheap; asked is whether the index serves the order.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(
            f"EXPLAIN SELECT c.id FROM ledger_toolcall c WHERE {claims.CLAIMABLE['run']} LIMIT 1 "
            "FOR UPDATE OF c SKIP LOCKED",
            ["effects"],
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Scan using call_claimable" in plan
    assert "Sort" not in plan
