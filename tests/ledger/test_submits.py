"""Submitting: intent before action, the same intent once, and nothing written on a refusal."""

from typing import Any

import pytest
from django.db import connection

from ledger import pressure, registry, sessions, submits
from ledger.conditions import Seen
from ledger.errors import (
    BindingDrift,
    Invalid,
    KeyReused,
    LedgerError,
    NotFound,
    QueueFull,
    StaleEpoch,
    ToolUnknown,
    TurnClosed,
)
from ledger.journal import events_of
from ledger.models import Event, Session, ToolCall
from ledger.submits import Recorded
from tests import builders
from tests.builders import a_submit, answer_to, fresh
from tests.cast import Acme, Globex
from tests.threads import at_once

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "size": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}


def rows() -> tuple[int, int]:
    return ToolCall.objects.count(), Event.objects.count()


def refusal_of(submit: submits.Submit) -> LedgerError:
    """The refusal of a submit, which must have written nothing."""
    before = rows()
    answer = submits.record([submit])[0]
    assert isinstance(answer, LedgerError), answer
    assert rows() == before
    return answer


def make_full(call: ToolCall) -> None:
    """Let the call have waited for most of the time in which it must start."""
    ToolCall.objects.filter(id=call.id).update(
        published_at=call.published_at - (call.schedule_to_start_at - call.published_at) * 0.6
    )
    pressure.forget()


# What a submit records


def test_a_submit_is_recorded_and_published_in_one_commit(acme: Acme) -> None:
    answer = answer_to(a_submit(acme, builders.a_tool(acme)))
    assert [event.kind for event in events_of(answer.call_id)] == ["recorded", "scheduled"]
    assert (answer.replayed, answer.state) == (False, "scheduled")


@pytest.mark.parametrize(
    ("recovery_class", "queue", "effect"),
    [("read_only", "reads", "none"), ("idempotent_write", "effects", "not_begun"),
     ("side_effect", "effects", "not_begun"), ("long_running", "effects", "not_begun"),
     ("provider_auth", "effects", "not_begun")],
)  # fmt: skip
def test_a_call_begins_with_the_queue_and_effect_of_its_class(
    acme: Acme, recovery_class: str, queue: str, effect: str
) -> None:
    call = builders.a_call(acme, recovery_class=recovery_class)
    assert (call.queue, call.effect) == (queue, effect)


def test_a_call_keeps_the_policy_it_was_recorded_under(acme: Acme) -> None:
    tool = builders.a_tool(acme, "mail.send")
    call = builders.a_call(acme, tool=tool)
    policy, _ = registry.put_policy(
        workspace_id=acme.workspace.id, tool_name="mail.send", by=builders.AUTHOR,
        document=builders.a_policy("side_effect", recovery_window_s=10), seen=Seen(version=1),
    )  # fmt: skip
    assert builders.fresh(call).policy_id != policy.id
    assert builders.a_call(acme, tool=tool).policy_id == policy.id


def test_arguments_are_kept_as_received_and_hashed_in_canonical_form(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    one = builders.a_call(acme, tool=tool, arguments={"b": 1, "a": "é"})
    two = builders.a_call(acme, tool=tool, arguments={"a": "é", "b": 1})
    assert one.arguments_sha256 == two.arguments_sha256
    assert one.arguments.startswith('{"a"')
    assert (one.arguments_received or "").startswith('{"b"')


def test_one_and_one_point_zero_are_different_arguments(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    one, other = (builders.a_call(acme, tool=tool, arguments={"n": n}) for n in (1, 1.0))
    assert one.arguments_sha256 != other.arguments_sha256


# The same intent


def test_the_same_key_gives_the_same_call(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    first = answer_to(a_submit(acme, tool, idempotency_key="k1"))
    before = rows()
    again = answer_to(a_submit(acme, tool, idempotency_key="k1"))
    assert (again.call_id, again.replayed) == (first.call_id, True)
    assert rows() == before


@pytest.mark.parametrize("state", ["running", "ambiguous", "succeeded", "failed", "expired"])
def test_a_repeated_submit_is_told_where_its_call_stands(acme: Acme, state: str) -> None:
    call = builders.a_call(acme, in_state=state, idempotency_key="k1")
    again = answer_to(a_submit(acme, call.tool, idempotency_key="k1"))
    assert (again.call_id, again.replayed, again.state) == (call.id, True, state)


def test_the_same_key_with_other_arguments_is_refused(acme: Acme) -> None:
    call = builders.a_call(acme, idempotency_key="k1")
    refusal = refusal_of(
        a_submit(acme, call.tool, idempotency_key="k1", arguments={"path": "other.txt"})
    )
    assert isinstance(refusal, KeyReused)
    assert call.arguments_sha256 in str(refusal)


def test_two_agents_may_use_one_key_for_two_intents(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    adas = answer_to(a_submit(acme, tool, idempotency_key="k1"))
    bens = answer_to(a_submit(acme, tool, agent=acme.ben, idempotency_key="k1"))
    assert adas.call_id != bens.call_id
    assert not bens.replayed


def test_the_place_in_the_models_reply_names_an_intent_too(acme: Acme) -> None:
    session = builders.a_session(acme)
    place = {"session_id": session.id, "turn_id": builders.a_turn(session).id,
             "tool_call_id": "toolu_1", "position": 2}  # fmt: skip
    tool = builders.a_tool(acme)
    first = answer_to(a_submit(acme, tool, **place))
    assert answer_to(a_submit(acme, tool, **place)).call_id == first.call_id
    assert isinstance(refusal_of(a_submit(acme, tool, arguments={"a": 1}, **place)), KeyReused)


def test_a_provider_that_reuses_ids_merges_no_calls(acme: Acme) -> None:
    session = builders.a_session(acme)
    tool = builders.a_tool(acme)
    answers = {
        answer_to(
            a_submit(acme, tool, session_id=session.id, tool_call_id="call_0", **place)
        ).call_id
        for place in ({"model_step": 0}, {"model_step": 1}, {"position": 1})
    }
    assert len(answers) == 3


def test_without_a_key_or_a_place_every_submit_is_an_intent(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    assert len({answer_to(a_submit(acme, tool)).call_id for _ in range(2)}) == 2


def test_a_key_twice_in_one_batch_is_one_call(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    one, two = submits.record([a_submit(acme, tool, idempotency_key="k1") for _ in range(2)])
    assert isinstance(one, Recorded)
    assert isinstance(two, Recorded)
    assert (two.call_id, two.replayed) == (one.call_id, True)


@pytest.mark.django_db(transaction=True)
def test_fifty_submits_at_once_with_one_key_give_one_call(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    answers = at_once([lambda: answer_to(a_submit(acme, tool, idempotency_key="k1"))] * 50)
    assert {getattr(answer, "call_id", answer) for answer in answers} == {ToolCall.objects.get().id}
    assert [getattr(a, "replayed", None) for a in answers].count(False) == 1


# A batch


def test_a_refused_member_of_a_batch_does_not_touch_the_others(acme: Acme) -> None:
    tool = builders.a_tool(acme, "good")
    answers = submits.record([a_submit(acme, name) for name in ("good", "unknown", "good")])
    assert [type(answer) for answer in answers] == [Recorded, ToolUnknown, Recorded]
    assert ToolCall.objects.filter(tool=tool.name).count() == 2


def test_a_batch_costs_no_more_statements_than_one_call(acme: Acme) -> None:
    tool = builders.a_tool(acme)
    answer_to(a_submit(acme, tool))

    def statements(many: int) -> int:
        pressure.forget()
        before = len(connection.queries_log)
        submits.record([a_submit(acme, tool) for _ in range(many)])
        return len(connection.queries_log) - before

    connection.force_debug_cursor = True
    try:
        assert statements(20) == statements(1)
    finally:
        connection.force_debug_cursor = False


# Refusals


def test_a_foreign_session_reads_like_an_absent_one(acme: Acme, globex: Globex) -> None:
    tool = builders.a_tool(globex)
    theirs = refusal_of(a_submit(globex, tool, session_id=builders.a_session(acme).id))
    absent = refusal_of(a_submit(globex, tool, session_id=globex.workspace.id))
    assert isinstance(theirs, NotFound)
    assert str(theirs) == str(absent)


def test_the_session_of_another_agent_is_foreign_too(acme: Acme) -> None:
    session = builders.a_session(acme, agent=acme.ben)
    tool = builders.a_tool(acme)
    assert isinstance(refusal_of(a_submit(acme, tool, session_id=session.id)), NotFound)


@pytest.mark.parametrize("arguments", [builders.ARGUMENTS, {"path": "guess"}])
def test_the_place_of_a_foreign_call_gives_nothing_away(
    acme: Acme, globex: Globex, arguments: dict[str, Any]
) -> None:
    session = builders.a_session(acme)
    place = {"session_id": session.id, "tool_call_id": "toolu_1"}
    builders.a_call(acme, **place)
    mallorys = a_submit(globex, builders.a_tool(globex), arguments=arguments, **place)
    assert isinstance(refusal_of(mallorys), NotFound)


def test_a_closed_turn_takes_no_new_call(acme: Acme) -> None:
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    sessions.close_turn(turn=turn, closed_as="answered")
    submit = a_submit(acme, builders.a_tool(acme), session_id=session.id, turn_id=turn.id)
    assert isinstance(refusal_of(submit), TurnClosed)


def test_a_repeat_is_answered_even_when_its_turn_has_closed(acme: Acme) -> None:
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    place = {"session_id": session.id, "turn_id": turn.id, "tool_call_id": "toolu_1"}
    call = builders.a_call(acme, **place)
    sessions.close_turn(turn=turn, closed_as="interrupted")
    assert answer_to(a_submit(acme, call.tool, **place)).call_id == call.id


def test_the_turn_of_another_session_is_not_found(acme: Acme) -> None:
    mine, other = builders.a_session(acme), builders.a_session(acme)
    submit = a_submit(acme, builders.a_tool(acme), session_id=mine.id,
                      turn_id=builders.a_turn(other).id)  # fmt: skip
    assert isinstance(refusal_of(submit), NotFound)


def test_a_turn_without_its_session_is_refused(acme: Acme) -> None:
    turn = builders.a_turn(builders.a_session(acme))
    submit = a_submit(acme, builders.a_tool(acme), turn_id=turn.id)
    assert isinstance(refusal_of(submit), Invalid)


def test_a_stale_epoch_is_refused(acme: Acme) -> None:
    session = builders.a_session(acme)
    Session.objects.filter(id=session.id).update(epoch=2)
    submit = a_submit(acme, builders.a_tool(acme), session_id=session.id, epoch=1)
    assert isinstance(refusal_of(submit), StaleEpoch)


@pytest.mark.parametrize("field", ["working_directory", "host"])
def test_another_binding_than_the_sessions_is_refused(acme: Acme, field: str) -> None:
    session = builders.a_session(acme, **{field: "here"})
    submit = a_submit(acme, builders.a_tool(acme), session_id=session.id, **{field: "there"})
    refusal = refusal_of(submit)
    assert isinstance(refusal, BindingDrift)
    assert field.replace("_", " ") in str(refusal)


def test_an_unknown_tool_suggests_the_nearest(acme: Acme) -> None:
    builders.a_tool(acme, "send_mail")
    refusal = refusal_of(a_submit(acme, "sendmail"))
    assert isinstance(refusal, ToolUnknown)
    assert "Did you mean 'send_mail'?" in str(refusal)


def test_a_neighbours_tool_is_neither_found_nor_suggested(acme: Acme, globex: Globex) -> None:
    builders.a_tool(acme, "send_mail")
    assert "Did you mean" not in str(refusal_of(a_submit(globex, "send_mail")))


def test_arguments_that_do_not_fit_the_schema_are_pointed_at(acme: Acme) -> None:
    tool = builders.a_tool(acme, input_schema=SCHEMA)
    refusal = refusal_of(a_submit(acme, tool, arguments={"path": "a", "size": "big"}))
    assert isinstance(refusal, Invalid)
    assert [error["pointer"] for error in refusal.facts["errors"]] == ["/arguments/size"]


def test_a_call_of_a_tool_that_is_switched_off_is_rejected_and_kept(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="rejected")
    assert [event.kind for event in events_of(call.id)] == ["recorded", "rejected"]
    assert (call.reason, call.effect) == ("switched_off", "not_begun")
    assert call.ring_at is None


def test_a_queue_that_cannot_start_a_call_in_time_says_so(acme: Acme) -> None:
    call = builders.a_call(acme)
    make_full(call)
    refusal = refusal_of(a_submit(acme, call.tool))
    assert isinstance(refusal, QueueFull)
    assert 1 <= refusal.facts["retry_after_s"] <= 15


def test_a_repeat_of_a_submit_that_was_refused_waits_for_nobody(acme: Acme) -> None:
    tool = builders.a_tool(acme, recovery_class="idempotent_write")
    make_full(builders.a_call(acme, tool=tool, arguments={"path": "other"}))
    equal = [a_submit(acme, tool, arguments={"path": "a"}, idempotency_key="k1") for _ in range(2)]
    before = rows()
    assert [type(answer) for answer in submits.record(equal)] == [QueueFull, QueueFull]
    assert rows() == before


@pytest.mark.parametrize("names", [{}, {"idempotency_key": "k1"}], ids=["no key", "key"])
def test_a_submit_whose_answer_was_lost_is_not_refused_afterwards(
    acme: Acme, names: dict[str, str]
) -> None:
    tool = builders.a_tool(acme)
    submit = a_submit(acme, tool, **names)
    make_full(fresh(answer_to(submit).call_id))
    again = answer_to(submit)
    assert (again.call_id, again.state) == (submit.call_id, "scheduled")


# The key under which the outside tells a repeat from a new effect


def test_the_policys_template_makes_the_effect_key(acme: Acme) -> None:
    call = builders.a_call(acme, recovery_class="idempotent_write", arguments={"path": "a/b"})
    assert call.effect_key == "path:a/b"


def test_without_a_template_the_effect_key_is_the_calls_own(acme: Acme) -> None:
    call = builders.a_call(acme)
    assert call.effect_key == call.id.hex


def test_a_template_that_finds_no_argument_refuses_the_submit(acme: Acme) -> None:
    tool = builders.a_tool(acme, recovery_class="idempotent_write")
    refusal = refusal_of(a_submit(acme, tool, arguments={"name": "x"}))
    assert isinstance(refusal, Invalid)
    assert "'path'" in str(refusal)


def test_slightly_changed_arguments_of_one_intent_give_one_effect_key(acme: Acme) -> None:
    tool = builders.a_tool(acme, recovery_class="idempotent_write")
    calls = [answer_to(a_submit(acme, tool, arguments={"path": "a", "note": n})) for n in "xy"]
    assert {builders.fresh(each.call_id).effect_key for each in calls} == {"path:a"}
