"""The same call asked for again: every cell of the table, by recovery class."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger import calls, claims, holds, ids, offers, registry, sessions, submits, twins
from ledger.errors import KeyReused
from ledger.journal import events_of
from ledger.models import Attempt, Fetch, Interrupt, Result, Session, ToolCall, Turn
from ledger.policies import PRESETS
from ledger.registry import Declaration
from ledger.submits import Recorded
from ledger.twins import Earlier, Wish
from ledger.vocabulary import CallState, Deadline, DeliveryMode, Effect, ProbeFinding, RecoveryClass
from recovery import watchdog
from tests import builders
from tests.builders import a_submit, answer_to, fresh
from tests.cast import Acme
from tests.ledger.saying import place_of
from tests.recovery.deciding import decide
from tests.threads import at_once

OTHERS = [str(each) for each in RecoveryClass if each is not RecoveryClass.READ_ONLY]
DOUBTFUL = [
    ("idempotent_write", "interrupted"),
    *((each, state) for each in ("side_effect", "long_running")
      for state in ("interrupted", "ambiguous")),
]  # fmt: skip
"""Where a lost worker alone leaves a call; a keyed write is repeated, a sign-in ends."""
ARGUMENTS = {"path": "report.txt", "to": "ann"}


class Talk:
    """One session of Ada's with an open turn, one tool, and her asking for it again and again."""

    def __init__(self, acme: Acme, recovery_class: str, **tool: Any) -> None:
        self.acme = acme
        self.tool = builders.a_tool(acme, recovery_class=recovery_class, **tool)
        self.session: Session = builders.a_session(acme)
        self.turn: Turn = builders.a_turn(self.session)
        self.asked = 0

    def ask(self, in_state: str = "", **submit: Any) -> ToolCall:
        """Ask with a tool call id of its own; with a state, walk the call there."""
        self.asked += 1
        place = {
            "session_id": self.session.id,
            "turn_id": self.turn.id,
            "tool_call_id": f"toolu_{self.asked}",
            "arguments": ARGUMENTS,
        } | submit
        if in_state:
            return builders.a_call(self.acme, in_state, tool=self.tool, **place)
        return fresh(answer_to(a_submit(self.acme, self.tool, **place)).call_id)

    def next_turn(self, closed_as: str = "stopped") -> None:
        sessions.close_turn(turn=self.turn, closed_as=closed_as)
        self.turn = builders.a_turn(self.session)


def abandon(acme: Acme, call: ToolCall) -> ToolCall:
    """Close an ambiguous call as a person does who cannot know."""
    decide(acme, call, "abandon", grounds="The mail server's log is gone.")
    return fresh(call)


def age(call: ToolCall, *, seconds: float) -> None:
    """Let a call have settled so long ago; the row alone is moved, so the test plants it."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, column in (("ledger_toolcall", "settled_at"), ("ledger_event", "at")):
            key = "id" if table == "ledger_toolcall" else "settles AND call_id"
            cursor.execute(
                f"UPDATE {table} SET {column} = {column} - %s * interval '1 second' "
                f"WHERE {key} = %s", [seconds, call.id],
            )  # fmt: skip
        cursor.execute("SET LOCAL session_replication_role = origin")


@contextmanager
def statements() -> Iterator[Callable[[], list[str]]]:
    with CaptureQueriesContext(connection) as queries:
        yield lambda: [each["sql"] for each in queries.captured_queries]


def is_joined(twin: ToolCall, other: ToolCall, reason: str) -> bool:
    return (twin.state, twin.reason, twin.twin_of_id) == ("paused", reason, other.id)


def is_replayed(twin: ToolCall, other: ToolCall) -> bool:
    given = Result.objects.get(call=twin)
    same = given.sha256 == Result.objects.get(call=other).sha256
    return same and (twin.state, twin.twin_of_id, twin.fence) == ("succeeded", other.id, 0)


def runs(call: ToolCall) -> bool:
    return (call.state, call.twin_of_id) == ("scheduled", None)


# While the other is open


@pytest.mark.parametrize("recovery_class", ["read_only", *OTHERS])
@pytest.mark.parametrize("in_state", ["scheduled", "running", "backing_off"])
def test_a_repeat_of_an_open_call_is_joined_to_it(
    acme: Acme, recovery_class: str, in_state: str
) -> None:
    talk = Talk(acme, recovery_class)
    first = talk.ask(in_state)
    assert is_joined(talk.ask(), first, "twin_open")


def test_a_repeat_of_parked_work_is_joined_to_it(acme: Acme) -> None:
    talk = Talk(acme, "long_running")
    first = talk.ask("parked")
    assert is_joined(talk.ask(), first, "twin_open")


@pytest.mark.parametrize(("recovery_class", "in_state"), DOUBTFUL)
def test_a_repeat_of_an_unresolved_call_is_held(
    acme: Acme, recovery_class: str, in_state: str
) -> None:
    talk = Talk(acme, recovery_class)
    first = talk.ask(in_state)
    assert is_joined(talk.ask(), first, "twin_unresolved")


def test_a_read_runs_beside_an_interrupted_one() -> None:
    here = ids.new()
    wish = Wish(workspace_id=here, session_id=here, turn_id=here, tool="t",
                arguments_sha256="h", template_key=None)  # fmt: skip
    earlier = Earlier(ids.new(), CallState.INTERRUPTED, Effect.NONE, here, here, "h")
    assert twins.ruling(wish, earlier, PRESETS[RecoveryClass.READ_ONLY]) is None


def test_a_repeat_of_an_abandoned_call_waits_for_a_person(acme: Acme) -> None:
    talk = Talk(acme, "side_effect", delivery_delay_s=0)
    first = abandon(acme, talk.ask("ambiguous"))
    again = talk.ask()
    assert is_joined(again, first, "twin_abandoned")
    watchdog.end_holds()
    assert fresh(again).state == "paused"


# When the other is done


@pytest.mark.parametrize("recovery_class", OTHERS)
def test_a_repeat_in_the_same_turn_is_answered_with_the_recorded_result(
    acme: Acme, recovery_class: str
) -> None:
    talk = Talk(acme, recovery_class)
    first = talk.ask("succeeded")
    again = talk.ask()
    assert is_replayed(again, first)
    assert again.effect == "did_not_happen"
    kinds = [event.kind for event in events_of(again.id)]
    assert kinds == ["recorded", "interrupt_raised", "interrupt_answered"]


def test_a_read_may_be_made_twice_in_one_turn(acme: Acme) -> None:
    talk = Talk(acme, "read_only")
    talk.ask("succeeded")
    assert runs(talk.ask())


@pytest.mark.corrupts
def test_a_read_is_replayed_for_as_long_as_its_policy_says(acme: Acme) -> None:
    talk = Talk(acme, "read_only", replay_reads_s=60)
    first = talk.ask("succeeded")
    again = talk.ask()
    assert is_replayed(again, first)
    assert again.effect == "none"
    age(first, seconds=61)
    assert runs(talk.ask())


@pytest.mark.parametrize("recovery_class", ["read_only", *OTHERS])
def test_without_a_key_an_earlier_turn_binds_nobody(acme: Acme, recovery_class: str) -> None:
    talk = Talk(acme, recovery_class)
    talk.ask("succeeded")
    talk.next_turn()
    assert runs(talk.ask())


@pytest.mark.parametrize("recovery_class", ["side_effect", "long_running", "provider_auth"])
def test_a_key_of_the_policys_template_finds_the_intent_in_any_session(
    acme: Acme, recovery_class: str
) -> None:
    talk = Talk(acme, recovery_class, key_template="to:{to}")
    first = talk.ask("succeeded")
    other = builders.a_session(acme, agent=acme.ben)
    again = talk.ask(agent=acme.ben, session_id=other.id, turn_id=None,
                     arguments=ARGUMENTS | {"path": "changed"})  # fmt: skip
    assert is_replayed(again, first)


@pytest.mark.parametrize("recovery_class", ["read_only", *OTHERS])
def test_a_result_kept_after_an_interruption_is_given_instead_of_run_again(
    acme: Acme, recovery_class: str
) -> None:
    talk = Talk(acme, recovery_class)
    first = talk.ask("succeeded")
    talk.next_turn(closed_as="interrupted")
    assert is_replayed(talk.ask(), first)


def test_a_kept_result_that_its_agent_fetched_is_delivered(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    first = talk.ask("succeeded")
    talk.next_turn(closed_as="interrupted")
    Fetch.objects.create(call=first, workspace=acme.workspace, reader=acme.ada.id.hex,
                         state="succeeded", effect="happened", event_seq=first.seq)  # fmt: skip
    assert runs(talk.ask())


def test_a_kept_result_that_was_fetched_before_the_interruption_is_not_delivered(
    acme: Acme,
) -> None:
    talk = Talk(acme, "side_effect")
    first = talk.ask("succeeded")
    Fetch.objects.create(call=first, workspace=acme.workspace, reader=acme.ada.id.hex,
                         state="succeeded", effect="happened", event_seq=first.seq)  # fmt: skip
    talk.next_turn(closed_as="interrupted")
    assert is_replayed(talk.ask(), first)


def test_a_kept_result_that_the_next_turn_confirmed_is_delivered(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    first = talk.ask("succeeded")
    talk.next_turn(closed_as="interrupted")
    turn = Turn.objects.get(session=first.session_id, closed_at=None)
    made = offers.offer(place_of(turn), mode=DeliveryMode.APPEND_BOTH).offer
    assert made is not None
    offers.acknowledge(workspace_id=made.workspace_id, agent_id=acme.ada.id, offer_id=made.id)
    assert runs(talk.ask())


@pytest.mark.parametrize("in_state", ["failed", "cancelled", "expired", "rejected"])
@pytest.mark.parametrize("recovery_class", ["read_only", *OTHERS])
def test_what_settled_without_an_effect_stands_in_nobodys_way(
    acme: Acme, recovery_class: str, in_state: str
) -> None:
    talk = Talk(acme, recovery_class)
    talk.ask(in_state)
    registry.switch(
        workspace_id=acme.workspace.id, tool_name=talk.tool.name, on=True, by=builders.AUTHOR
    )
    assert runs(talk.ask())


def test_a_call_that_happened_without_a_result_is_not_run_again(acme: Acme) -> None:
    talk = Talk(acme, "side_effect", probe={"authoritative": True})
    first = talk.ask("interrupted")
    builders.past(first, Deadline.NEXT_STEP)
    builders.fire()
    builders.probe(first, ProbeFinding.HAPPENED)
    builders.past(first, Deadline.NEXT_STEP)
    builders.fire()
    assert fresh(first).state == "succeeded"
    again = talk.ask()
    assert (again.state, again.twin_of_id, again.reason) == ("cancelled", first.id, "twin_done")


# Other arguments, other places


@pytest.mark.parametrize("changed", [{"arguments": {"path": "x"}}, {"session_id": None}])
def test_other_arguments_or_no_session_make_no_twin(acme: Acme, changed: dict[str, Any]) -> None:
    talk = Talk(acme, "side_effect")
    talk.ask()
    assert runs(talk.ask(**changed, **({"turn_id": None} if "session_id" in changed else {})))


def test_another_session_of_the_same_agent_asks_for_itself(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    talk.ask()
    assert runs(talk.ask(session_id=builders.a_session(acme).id, turn_id=None))


def test_another_write_to_the_same_target_waits_and_then_runs(acme: Acme) -> None:
    talk = Talk(acme, "idempotent_write")
    first = talk.ask("running")
    other = talk.ask(arguments=ARGUMENTS | {"to": "bob"})
    assert (other.state, other.reason, other.twin_of_id) == ("paused", "same_target", None)
    builders.cross(first)
    builders.settle(first)
    watchdog.end_holds()
    assert runs(fresh(other))
    assert runs(talk.ask(arguments=ARGUMENTS | {"to": "cleo"})) is False


# The caller's own key


def test_a_new_tool_call_id_under_the_same_key_is_recorded_as_a_twin(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    first = talk.ask(idempotency_key="k1")
    again = talk.ask(idempotency_key="k1")
    assert is_joined(again, first, "twin_open")
    assert again.idempotency_key not in (None, "k1")


def test_a_twin_by_key_is_found_again_by_its_place(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    talk.ask(idempotency_key="k1")
    submit = a_submit(acme, talk.tool, arguments=ARGUMENTS, idempotency_key="k1",
                      tool_call_id="toolu_again")  # fmt: skip
    first = answer_to(submit)
    second = answer_to(replace(submit, call_id=ids.new()))
    assert (second.call_id, second.replayed) == (first.call_id, True)


def test_one_key_never_runs_twice_whatever_came_of_it(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    first = talk.ask("failed", idempotency_key="k1")
    again = talk.ask(idempotency_key="k1")
    assert (again.state, again.twin_of_id) == ("cancelled", first.id)


def test_other_arguments_under_a_known_key_are_refused_as_before(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    talk.ask(idempotency_key="k1")
    with pytest.raises(KeyReused):
        talk.ask(idempotency_key="k1", arguments={"path": "other"})


def test_new_tool_call_ids_under_one_key_in_one_batch_are_one_call_and_twins(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    answers = submits.record(
        [a_submit(acme, tool, idempotency_key="k1", tool_call_id=f"t{n % 3}") for n in range(6)]
    )
    recorded = [each for each in answers if isinstance(each, Recorded)]
    assert len({each.call_id for each in recorded}) == 3
    assert [each.replayed for each in recorded] == [False] * 3 + [True] * 3
    assert ToolCall.objects.filter(twin_of=recorded[0].call_id).count() == 2


# Repeats that are meant


def test_an_intended_repeat_under_a_new_key_runs(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    talk.ask("succeeded")
    assert runs(talk.ask(idempotency_key="k2", repeat_intended=True))


def test_an_intended_repeat_needs_a_new_key(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    first = talk.ask("succeeded")
    assert is_replayed(talk.ask(repeat_intended=True), first)


def test_an_intended_repeat_does_not_overtake_an_open_call(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    first = talk.ask("running")
    assert is_joined(talk.ask(idempotency_key="k2", repeat_intended=True), first, "twin_open")


@pytest.mark.parametrize("kind", ["purchase", "delete"])
def test_an_intended_repeat_of_a_purchase_or_deletion_waits_for_a_person(
    acme: Acme, kind: str
) -> None:
    talk = Talk(acme, "side_effect")
    tool = registry.put(
        workspace=acme.workspace, policy={}, by=builders.AUTHOR,
        declaration=Declaration(name=talk.tool.name, executor="python",
                                         effect_kinds=(kind,)),
    )  # fmt: skip
    talk.tool = tool
    first = talk.ask("succeeded")
    again = talk.ask(idempotency_key="k2", repeat_intended=True)
    assert is_joined(again, first, "repeat_intended")


# How a joined twin ends


def settled(first: ToolCall) -> None:
    builders.claimed(first)
    builders.cross(first)
    builders.settle(first)


def cancelled(first: ToolCall) -> None:
    calls.cancel(workspace_id=first.workspace_id, agent_id=first.agent_id, call_id=first.id)


@pytest.mark.parametrize(("ends", "state"), [(settled, "succeeded"), (cancelled, "cancelled")])
def test_a_joined_twin_ends_as_the_other_does(
    acme: Acme, ends: Callable[[ToolCall], None], state: str
) -> None:
    talk = Talk(acme, "side_effect")
    first = talk.ask()
    again = talk.ask()
    ends(first)
    assert watchdog.end_holds() == 1
    assert fresh(again).state == state
    hold = Interrupt.objects.get(call=again)
    assert (hold.ended_as, hold.answered_by) == ("answered", "ledger")
    assert not Attempt.objects.filter(call=again).exists()


def test_a_sweep_that_runs_twice_ends_a_hold_once(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    first, again = talk.ask(), talk.ask()
    settled(first)
    assert [watchdog.end_holds() for _ in range(2)] == [1, 0]
    assert holds.due(10) == []
    assert fresh(again).is_settled


@pytest.mark.django_db(transaction=True)
def test_fifty_equal_submits_at_once_make_one_attempt(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    place = {"session_id": talk.session.id, "turn_id": talk.turn.id}

    def ask() -> Recorded:
        with connection.cursor() as cursor:
            # Fifty in a row on a slow machine; a web has one line to the ledger for its submits.
            cursor.execute("SET lock_timeout = '30s'")
        return answer_to(a_submit(acme, talk.tool, **place))

    answers = at_once([ask] * 50)
    assert [each for each in answers if not isinstance(each, Recorded)] == []
    won = claims.claim(queue="effects", holder=builders.a_worker(), limit=100)
    assert len(won) == 1
    first = fresh(won[0].call_id)
    assert first.twins.filter(state="paused").count() == 49


@pytest.mark.django_db(transaction=True)
def test_equal_keys_of_a_template_at_once_make_one_attempt_in_any_session(acme: Acme) -> None:
    tool = builders.a_tool(acme, key_template="path:{path}")
    at_once([lambda: answer_to(a_submit(acme, tool))] * 10)
    assert ToolCall.objects.filter(state="scheduled").count() == 1
    assert ToolCall.objects.filter(twin_of__isnull=False).count() == 9


# Counting, and what it costs


def test_repeats_prevented_are_counted_with_the_tokens_they_spared(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    talk.ask(prompt_tokens=700)
    talk.ask(prompt_tokens=800)
    last = talk.ask()
    talk.ask(arguments={"path": "new"}, prompt_tokens=900)
    count = twins.prevented(workspace_id=acme.workspace.id, session_id=talk.session.id)
    assert count == (2, 800)
    of_tool = twins.prevented(workspace_id=acme.workspace.id, tool=talk.tool.name)
    since = twins.prevented(workspace_id=acme.workspace.id, since=last.recorded_at)
    assert (of_tool, since.repeats) == ((2, 800), 1)


def test_calls_that_can_have_no_twin_are_looked_up_by_no_statement(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    answer_to(a_submit(acme, tool))
    with statements() as plain:
        submits.record([a_submit(acme, tool) for _ in range(5)])
    assert not [sql for sql in plain() if "LATERAL" in sql or "ledger_session" in sql]


def test_a_batch_is_looked_up_in_one_statement(acme: Acme) -> None:
    talk = Talk(acme, "side_effect")
    place = {"session_id": talk.session.id, "turn_id": talk.turn.id}
    with statements() as made:
        submits.record([a_submit(acme, talk.tool, arguments={"n": n}, **place) for n in range(20)])
    assert len([sql for sql in made() if "LATERAL" in sql]) == 1
