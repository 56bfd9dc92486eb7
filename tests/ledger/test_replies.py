"""A model's reply and its calls: recorded as one, or not at all."""

from typing import Any

import pytest

from ledger import ids, messages, registry, sessions
from ledger.errors import Invalid, KeyReused, NotFound, StaleEpoch, StepTaken, TurnClosed
from ledger.models import Message, Session, ToolCall, Turn
from ledger.transcripts.neutral import Opaque, OpaqueKind, Text
from tests import builders
from tests.builders import a_submit, answer_to, fresh
from tests.cast import Acme
from tests.ledger.saying import (
    a_call_of,
    by_model,
    by_user,
    cut_off,
    place_of,
    reply,
    say,
)
from tests.refusals import sql

THINKING = Opaque(OpaqueKind.REASONING, "neutral", {"signature": "c2ln", "thinking": "Mail it."})


@pytest.fixture
def turn(acme: Acme) -> Turn:
    return builders.a_turn(builders.a_session(acme))


@pytest.fixture
def mail(acme: Acme) -> str:
    return builders.a_tool(acme, "mail").name


def version_of(turn: Turn) -> int:
    return Session.objects.get(id=turn.session_id).version


def test_a_reply_and_its_calls_are_recorded_together(turn: Turn, mail: str) -> None:
    before = version_of(turn)
    said = reply(turn, THINKING, Text("Two mails."), a_call_of(mail, "a", {"path": "a"}),
                 a_call_of(mail, "b", {"path": "b"}))  # fmt: skip

    calls = list(ToolCall.objects.filter(turn=turn).order_by("position"))
    assert [(c.tool_call_id, c.model_step, c.position, c.state) for c in calls] == [
        ("a", 0, 0, "scheduled"), ("b", 0, 1, "scheduled"),
    ]  # fmt: skip
    assert said.message.parts_json == [
        {"opaque": "reasoning", "format": "neutral", "body": THINKING.body},
        {"text": "Two mails."}, {"call": 0}, {"call": 1},
    ]  # fmt: skip
    assert {n: each.call_id for n, each in said.calls.items()} == dict(
        enumerate(each.id for each in calls)
    )
    assert version_of(turn) == before + 1
    # One transaction: the row of the message and the first events have the same writer.
    assert len(_transactions_of(said.message, calls)) == 1


def _transactions_of(message: Message, calls: list[ToolCall]) -> set[str]:
    rows = sql("SELECT xmin::text FROM ledger_message WHERE id = %s", message.id)
    rows += sql(
        "SELECT xmin::text FROM ledger_event WHERE call_id = ANY(%s)", [c.id for c in calls]
    )
    return {row[0] for row in rows}


def test_the_same_reply_again_gives_the_same_message_and_calls(turn: Turn, mail: str) -> None:
    first = reply(turn, a_call_of(mail), model_step=0)
    again = reply(turn, a_call_of(mail), model_step=0)
    unnumbered = reply(turn, a_call_of(mail))

    assert (first.new, again.new, unnumbered.new) == (True, False, False)
    assert {each.message.id for each in (first, again, unnumbered)} == {first.message.id}
    assert {each.calls[0].call_id for each in (first, again)} == {first.calls[0].call_id}
    assert again.calls[0].replayed
    assert ToolCall.objects.count() == 1


def test_another_reply_for_the_same_step_is_refused(turn: Turn, mail: str) -> None:
    reply(turn, a_call_of(mail), model_step=0)
    with pytest.raises(StepTaken, match="another reply"):
        reply(turn, Text("Or rather not."), model_step=0)
    assert (Message.objects.count(), ToolCall.objects.count()) == (1, 1)


def test_the_next_reply_is_the_next_step(turn: Turn, mail: str) -> None:
    reply(turn, a_call_of(mail, "a"))
    second = reply(turn, Text("Done."))
    assert (second.message.model_step, second.message.position) == (1, 1)


def test_a_call_that_was_submitted_while_the_reply_was_coming_is_tied_to_it(
    acme: Acme, turn: Turn, mail: str
) -> None:
    early = answer_to(
        a_submit(acme, mail, session_id=turn.session_id, turn_id=turn.id, tool_call_id="a",
                 idempotency_key="streamed", arguments={"path": "a"})
    )  # fmt: skip
    said = reply(turn, a_call_of(mail, "a", {"path": "a"}), a_call_of(mail, "b", {"path": "b"}))

    assert said.calls[0].call_id == early.call_id
    assert (said.calls[0].replayed, said.calls[1].replayed) == (True, False)
    assert ToolCall.objects.count() == 2


def test_a_reply_that_tells_a_submitted_call_otherwise_is_refused(
    acme: Acme, turn: Turn, mail: str
) -> None:
    answer_to(a_submit(acme, mail, session_id=turn.session_id, turn_id=turn.id, tool_call_id="a"))
    with pytest.raises(StepTaken, match="another call"):
        reply(turn, a_call_of(mail, "a", {"path": "elsewhere"}))
    assert Message.objects.count() == 0


def test_a_reply_stands_behind_calls_that_came_without_one(
    acme: Acme, turn: Turn, mail: str
) -> None:
    answer_to(a_submit(acme, mail, session_id=turn.session_id, turn_id=turn.id, model_step=2))
    assert reply(turn, Text("Sent.")).message.model_step == 3


# Calls that do not run

REFUSED: list[tuple[str, Any]] = [
    ("tool_unknown", lambda: a_call_of("mial", "bad")),
    ("tool_unknown", lambda: a_call_of(" ", "bad")),
    ("arguments_unfit", lambda: a_call_of("strict", "bad", {"path": 7})),
    ("cut_off", lambda: cut_off("mail", "bad")),
]


@pytest.mark.parametrize(("template", "bad"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_call_that_cannot_run_is_kept_with_its_text_and_the_others_go_on(
    template: str, bad: Any, acme: Acme, turn: Turn, mail: str
) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    builders.a_tool(acme, "strict", input_schema=schema)
    said = reply(turn, bad(), a_call_of(mail, "good"))

    kept = said.refused[0]
    assert (kept["position"], kept["template"], kept["id"]) == (0, template, "bad")
    assert kept["text"].startswith("This call was not run:")
    assert [c.tool_call_id for c in ToolCall.objects.all()] == ["good"]
    assert said.calls.keys() == {1}


def test_a_call_at_the_end_of_a_reply_that_ran_into_its_limit_is_not_run(
    turn: Turn, mail: str
) -> None:
    said = reply(turn, a_call_of(mail, "whole", {"path": "a"}),
                 a_call_of(mail, "half", {"path": "/"}), stop_reason="max_tokens")  # fmt: skip
    assert [each["template"] for each in said.refused] == ["cut_off"]
    assert [c.tool_call_id for c in ToolCall.objects.all()] == ["whole"]
    assert not said.message.failed


def test_a_reply_that_broke_off_keeps_what_is_known_and_starts_nothing(
    acme: Acme, turn: Turn, mail: str
) -> None:
    known = answer_to(
        a_submit(acme, mail, session_id=turn.session_id, turn_id=turn.id, tool_call_id="a")
    )
    said = reply(turn, Text("First "), a_call_of(mail, "a"), a_call_of(mail, "b"),
                 stop_reason="aborted")  # fmt: skip

    assert said.message.failed
    assert [each.call_id for each in said.calls.values()] == [known.call_id]
    assert [each["template"] for each in said.refused] == ["reply_broke_off"]
    assert fresh(known.call_id).state == "scheduled"


def test_a_switched_off_tool_has_a_call_with_a_state_of_its_own(acme: Acme, turn: Turn) -> None:
    tool = builders.a_tool(acme, "mail")
    registry.switch(
        workspace_id=acme.workspace.id, tool_name=tool.name, on=False, by=builders.AUTHOR
    )
    said = reply(turn, a_call_of("mail"))
    assert (said.refused, said.calls[0].state) == ([], "rejected")


def test_names_of_the_model_are_the_ledgers_by_the_callers_word(acme: Acme, turn: Turn) -> None:
    builders.a_tool(acme, "sandbox.lookup")
    said = reply(turn, a_call_of("sandbox_lookup"), names={"sandbox_lookup": "sandbox.lookup"})
    assert fresh(said.calls[0].call_id).tool == "sandbox.lookup"
    assert said.message.parts_json == [{"call": 0, "name": "sandbox_lookup"}]


# What refuses a whole reply


def test_a_reply_of_a_stale_epoch_leaves_nothing(turn: Turn, mail: str) -> None:
    before = version_of(turn)
    with pytest.raises(StaleEpoch, match="epoch 1"):
        reply(turn, Text("Two."), a_call_of(mail, "a"), a_call_of(mail, "b"), epoch=7)
    assert (Message.objects.count(), ToolCall.objects.count()) == (0, 0)
    assert version_of(turn) == before


def test_a_closed_turn_takes_no_reply_but_gives_back_the_one_it_has(turn: Turn) -> None:
    said = reply(turn, Text("Done."))
    sessions.close_turn(turn=turn, closed_as="answered")
    assert reply(turn, Text("Done.")).message.id == said.message.id
    with pytest.raises(TurnClosed, match="Open a new turn"):
        reply(turn, Text("One more thing."))


def test_one_key_names_one_reply(turn: Turn) -> None:
    reply(turn, Text("Done."), key="r1")
    with pytest.raises(KeyReused, match="another message"):
        reply(turn, Text("Not done."), key="r1")


def test_the_turn_of_another_agent_reads_as_absent(acme: Acme, turn: Turn) -> None:
    with pytest.raises(NotFound, match="no session"):
        messages.say(place_of(turn, agent_id=acme.ben.id), format="neutral", entries=[by_user("?")])


def test_a_result_in_a_reply_is_refused(turn: Turn) -> None:
    with pytest.raises(Invalid, match="without results"):
        reply(turn, entries=[by_model(Text("a")), by_user("b")])


def test_parts_of_a_message_are_shown_by_the_kind_of_its_id(turn: Turn) -> None:
    assert ids.shown("message", say(turn, by_user("Hello")).messages[0].id).startswith("msg_")
