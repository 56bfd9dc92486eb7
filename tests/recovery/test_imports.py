"""A conversation from elsewhere becomes a session: what is kept, what is asked, what is undone."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from ledger import notices, rendering, sessions, submits
from ledger.calls import Reader
from ledger.errors import KeyReused, NotFound, ToolUnknown
from ledger.imports import keeping, tools
from ledger.imports.keeping import ImportContinued, ImportDiscarded
from ledger.imports.plans import TEXT
from ledger.journal import events_of
from ledger.models import (
    Import,
    Message,
    Policy,
    Result,
    Session,
    Tool,
    ToolCall,
    ToolVersion,
)
from ledger.rendering import Wanted as Rendering
from ledger.transcripts.refusals import TranscriptUnreadable
from ledger.transcripts.stored import PARTS
from ledger.verdicts import verdict_for
from ledger.vocabulary import Actor, CallState, IncidentKind
from recovery import imports
from recovery.imports import By, Wanted
from recovery.models import Incident, Repeat
from tests import builders, conversations
from tests.builders import fire, fresh, past
from tests.cast import Acme, Globex
from tests.conversations import a_call, answers, asks, replies, says
from tests.recovery.deciding import decide, delay_over

PROMPTED = says("Send the invitations")


def by_ada(acme: Acme) -> By:
    return By(actor=Actor.AGENT, id=acme.ada.id.hex, name="ada")


def take(
    acme: Acme, transcript: Any, *, format: str = "openai-chat", key: str = "k-1"
) -> tuple[Import, bool]:
    """Import a transcript for Ada."""
    wanted = Wanted(
        workspace_id=acme.workspace.id,
        agent_id=acme.ada.id,
        key=key,
        received=conversations.received(transcript, format),
        by=by_ada(acme),
    )
    return imports.take(wanted)


def taken(acme: Acme, *transcript: Any, **more: Any) -> Import:
    return take(acme, list(transcript), **more)[0]


def calls_of(row: Import) -> list[ToolCall]:
    """The calls of an import in the order of the conversation."""
    return list(row.session.calls.order_by("turn__number", "model_step", "position"))


def only_call(row: Import) -> ToolCall:
    [call] = calls_of(row)
    return call


def reader(acme: Acme) -> Reader:
    return Reader(acme.workspace.id, acme.ada.id)


# What is kept


def test_a_paired_result_becomes_the_calls_recorded_result(acme: Acme) -> None:
    row = taken(acme, PROMPTED, asks(a_call("c1")), answers("c1", "sent to 3"))

    call = only_call(row)
    assert (call.state, call.effect, call.tool) == ("succeeded", "happened", "insertHtml")
    assert (call.tool_call_id, call.model_step, call.position) == ("c1", 0, 0)
    result = Result.objects.get(call=call)
    assert (bytes(result.body), result.media_type) == (b"sent to 3", TEXT)
    [event] = events_of(call.id)
    assert (event.kind, event.actor, event.settles) == ("imported", "agent", True)
    assert event.facts_json["file_sha256"] == row.sha256
    assert (event.facts_json["entry"], event.facts_json["answered_by"]) == (1, 2)


def test_an_unanswered_call_is_interrupted_and_nobody_says_that_it_ran(acme: Acme) -> None:
    call = only_call(taken(acme, PROMPTED, asks(a_call("c1"))))

    assert (call.state, call.effect, call.cause) == ("interrupted", "possible", "unrecorded")
    assert call.recovery_window_at is not None
    told = notices.for_call(call)
    assert told is not None
    assert told.template == "unrecorded"
    verdict = verdict_for(call)
    assert (verdict.started.answer, verdict.effect.answer) == ("unknown", "unknown")


def test_an_unanswered_call_asks_an_operator_at_the_next_sweep(acme: Acme) -> None:
    call = only_call(taken(acme, PROMPTED, asks(a_call("c1"))))

    fire()

    call = fresh(call)
    assert (call.state, call.reason) == ("ambiguous", "no_proof")
    incident = Incident.objects.get(call=call)
    assert (incident.kind, incident.state, incident.cause) == (
        "recovery", "exhausted", "unrecorded",
    )  # fmt: skip
    assert incident.steps.order_by("id").first().rule == "imported"


def test_a_call_with_cut_off_arguments_is_kept_and_never_executed(acme: Acme) -> None:
    builders.a_tool(acme, "lookup", "read_only")

    row = taken(acme, PROMPTED, asks(a_call("c1", "lookup", '{"name": "open')))

    call = only_call(row)
    assert json.loads(call.arguments) == {"unparsed_arguments": '{"name": "open'}
    assert (call.recovery_class, call.effect) == ("side_effect", "possible")
    fire()
    assert fresh(call).state == "ambiguous"


@pytest.mark.parametrize("text", [r'{"n": "\u0000"}', r'{"n": "\ud800"}', '{"n": 1e999}'])
def test_arguments_that_the_record_cannot_hold_are_kept_as_their_text(
    acme: Acme, text: str
) -> None:
    row = taken(acme, PROMPTED, asks(a_call("c1", "f", text)), answers("c1"))

    assert json.loads(only_call(row).arguments) == {"unparsed_arguments": text}


def test_a_turn_begins_with_what_a_person_says_behind_a_reply(acme: Acme) -> None:
    row = taken(
        acme, says("a"), says("b"), asks(a_call("c1")), answers("c1"), replies("done"), says("c"),
        asks(a_call("c2")),
    )  # fmt: skip

    turns = list(row.session.turns.order_by("number"))
    assert [turn.closed_as for turn in turns] == ["answered", "interrupted"]
    roles = [[m.role for m in turn.messages.order_by("position")] for turn in turns]
    assert roles == [["user", "user", "assistant", "assistant"], ["user", "assistant"]]
    steps = Message.objects.filter(turn=turns[0], role="assistant").values_list("model_step")
    assert sorted(steps) == [(0,), (1,)]
    assert Session.objects.get(id=row.session_id).version == 10
    first = Message.objects.get(turn=turns[0], model_step=0)
    assert first.parts_json == [{"call": 0}]


def test_a_result_of_several_parts_keeps_them(acme: Acme) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": parts}
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}

    row = taken(
        acme, says("x"), {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]}, format="anthropic",
    )  # fmt: skip

    kept = Result.objects.get(call=only_call(row))
    assert (kept.media_type, json.loads(bytes(kept.body))) == (
        PARTS, [{"text": "a"}, {"text": "b"}],
    )  # fmt: skip


def an_error(id_: str, text: str) -> Sequence[dict[str, Any]]:
    """A call of f and its error, as the Messages API writes them."""
    use = {"type": "tool_use", "id": id_, "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": id_, "content": text, "is_error": True}
    return {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}


@pytest.mark.parametrize(
    ("policy", "effect"),
    [
        (None, "happened"),
        ({"recovery_class": "side_effect"}, "happened"),
        ({"recovery_class": "side_effect", "tool_error_means": "no_effect"}, "did_not_happen"),
        ({"recovery_class": "read_only"}, "none"),
    ],
)
def test_an_error_is_a_result_and_says_of_its_effect_what_its_policy_says(
    acme: Acme, policy: dict[str, str] | None, effect: str
) -> None:
    if policy is not None:
        given = dict(policy)
        builders.a_tool(acme, "f", given.pop("recovery_class"), **given)

    row = taken(acme, says("x"), *an_error("t1", "no such file"), format="anthropic")

    call = only_call(row)
    assert (call.state, call.effect, call.cause) == ("failed", effect, "tool_error")
    result = Result.objects.get(call=call)
    assert (bytes(result.body), result.is_error) == (b"no such file", True)
    assert call.error == "no such file"


# Tools


def test_a_tool_that_nobody_registered_is_taken_for_a_side_effect(acme: Acme) -> None:
    call = only_call(taken(acme, PROMPTED, asks(a_call("c1", "send_mail")), answers("c1")))

    assert (call.tool, call.recovery_class) == ("send_mail", "side_effect")
    assert (call.policy.number, call.policy.declared, call.tool_version.number) == (0, False, 0)


def test_what_an_import_names_cannot_be_called(acme: Acme) -> None:
    taken(acme, PROMPTED, asks(a_call("c1", "send_mail")), answers("c1"))

    for name in ("send_mail", tools.KEPT):
        [refusal] = submits.record([builders.a_submit(acme, name)])
        assert isinstance(refusal, ToolUnknown)


def test_ten_thousand_names_make_one_tool(acme: Acme) -> None:
    named = [a_call(f"c{n}", f"tool_{n}") for n in range(50)]
    row = taken(acme, PROMPTED, asks(*named), *(answers(f"c{n}") for n in range(50)))

    assert len(row.report["made"]["tools_not_registered"]) == 50
    assert [tool.name for tool in Tool.objects.all()] == [tools.KEPT]
    assert (ToolVersion.objects.count(), Policy.objects.count()) == (1, 1)


def test_a_name_that_was_imported_can_be_registered(acme: Acme) -> None:
    taken(acme, PROMPTED, asks(a_call("c1", "send_mail")), answers("c1"))

    tool = builders.a_tool(acme, "send_mail")

    assert (tool.version, tool.policy_version) == (1, 1)
    assert builders.answer_to(builders.a_submit(acme, tool)).state is CallState.SCHEDULED


def test_a_registered_tool_brings_its_policy(acme: Acme) -> None:
    tool = builders.a_tool(acme, "lookup", "read_only")

    call = only_call(taken(acme, PROMPTED, asks(a_call("c1", "lookup")), answers("c1")))

    assert (call.recovery_class, call.effect) == ("read_only", "none")
    assert call.policy.tool == tool


def test_an_unanswered_read_is_made_again_as_a_repeat(acme: Acme) -> None:
    builders.a_tool(acme, "lookup", "read_only")
    call = only_call(taken(acme, PROMPTED, asks(a_call("c1", "lookup"))))
    assert (call.state, call.effect) == ("interrupted", "none")

    fire()
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.settle(call, {"open": "9 to 5"})

    assert fresh(call).state == "succeeded"
    assert Repeat.objects.filter(call=call).count() == 1


def test_an_unanswered_read_that_does_not_fit_its_tool_is_not_made(acme: Acme) -> None:
    schema = {"type": "object", "required": ["name"]}
    builders.a_tool(acme, "lookup", "read_only", input_schema=schema)

    call = only_call(taken(acme, PROMPTED, asks(a_call("c1", "lookup", {"nam": "x"}))))

    assert call.recovery_class == "side_effect"


def test_an_unanswered_write_is_not_repeated_under_a_key_that_it_never_had(acme: Acme) -> None:
    builders.a_tool(acme, "write", "idempotent_write")
    call = only_call(taken(acme, PROMPTED, asks(a_call("c1", "write", {"path": "a.txt"}))))

    fire()

    assert fresh(call).state == "ambiguous"
    steps = Incident.objects.get(call=call).steps.filter(rung="class_rule")
    assert steps.get().grounds.startswith("It was imported")


def test_an_operator_may_repeat_an_imported_write_and_it_is_on_the_account(acme: Acme) -> None:
    builders.a_tool(acme, "write", "idempotent_write")
    call = only_call(taken(acme, PROMPTED, asks(a_call("c1", "write", {"path": "a.txt"}))))
    fire()
    decide(acme, call, "retry_same_key")
    delay_over(call)
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.cross(call)
    builders.settle(call)

    assert fresh(call).state == "succeeded"


# The same again


def test_the_same_file_is_the_same_session(acme: Acme) -> None:
    first, new = take(acme, [PROMPTED, asks(a_call("c1"))])
    second, again = take(acme, [PROMPTED, asks(a_call("c1"))], key="k-2")

    assert (new, again) == (True, False)
    assert first.id == second.id
    assert (Session.objects.count(), ToolCall.objects.count()) == (1, 1)


def test_a_key_names_one_file(acme: Acme) -> None:
    taken(acme, PROMPTED)

    with pytest.raises(KeyReused, match="digest"):
        taken(acme, says("something else"))


def test_a_file_is_not_imported_as_two_formats(acme: Acme) -> None:
    taken(acme, PROMPTED)

    with pytest.raises(KeyReused, match="as openai-chat"):
        taken(acme, PROMPTED, format="mistral", key="k-2")


def test_what_cannot_be_read_is_refused_with_its_place(acme: Acme) -> None:
    with pytest.raises(TranscriptUnreadable) as refused:
        taken(acme, PROMPTED, {"role": "root", "content": "x"})

    assert refused.value.facts["errors"][0]["pointer"] == "/1/role"
    assert Session.objects.count() == 0


def test_the_bytes_stay_as_they_came(acme: Acme) -> None:
    row = taken(acme, PROMPTED)

    assert keeping.original(row) == json.dumps([PROMPTED]).encode()
    with pytest.raises(DatabaseError, match="Cannot update"), transaction.atomic():
        Import.objects.filter(id=row.id).update(body=b"[]")
    with pytest.raises(DatabaseError, match="Cannot delete"), transaction.atomic():
        Import.objects.filter(id=row.id).delete()


# Undoing


def test_a_repair_is_reverted_and_shown_again(acme: Acme) -> None:
    row = taken(acme, PROMPTED)

    reverted = keeping.revert(reader=reader(acme), import_id=row.id)
    shown = keeping.unrevert(reader=reader(acme), import_id=row.id)

    assert reverted.reverted_at is not None
    assert shown.reverted_at is None


def test_an_import_that_went_on_is_neither_reverted_nor_discarded(acme: Acme) -> None:
    row = taken(acme, PROMPTED, replies("done"))
    sessions.open_turn(session=row.session)

    with pytest.raises(ImportContinued, match="Turn 2"):
        keeping.revert(reader=reader(acme), import_id=row.id)
    with pytest.raises(ImportContinued, match="Turn 2"):
        discard(acme, row)


def discard(acme: Acme, row: Import) -> Import:
    return imports.discard(reader=reader(acme), import_id=row.id, by=by_ada(acme))


def test_a_discarded_import_leaves_its_session_without_calls(acme: Acme) -> None:
    tool = builders.a_tool(acme, "lookup", "read_only")
    row = taken(acme, PROMPTED, asks(a_call("c1", "lookup")))
    fire()
    assert only_call(row).state == "backing_off"

    discard(acme, row)

    assert only_call(row).state == "cancelled"
    later = builders.answer_to(builders.a_submit(acme, tool, session_id=row.session_id))
    assert fresh(later.call_id).state == "rejected"
    with pytest.raises(ImportDiscarded):
        keeping.revert(reader=reader(acme), import_id=row.id)


def test_discarding_hides_no_effect_that_may_have_happened(acme: Acme) -> None:
    row = taken(acme, PROMPTED, asks(a_call("c1")))

    discard(acme, row)
    fire()

    assert only_call(row).state == "ambiguous"
    assert Incident.objects.get(call=only_call(row)).closed_at is None


def test_a_discarded_file_is_imported_anew_under_a_new_key(acme: Acme) -> None:
    first = taken(acme, PROMPTED)
    assert discard(acme, discard(acme, first)).discarded_at is not None

    second, new = take(acme, [PROMPTED], key="k-2")

    assert new
    assert second.session_id != first.session_id


def test_a_neighbours_import_is_absent(acme: Acme, globex: Globex) -> None:
    row = taken(acme, PROMPTED)
    theirs = Reader(globex.workspace.id, globex.mallory.id)

    for verb in (keeping.get, keeping.revert):
        with pytest.raises(NotFound):
            verb(reader=theirs, import_id=row.id)


# The whole


def test_statements_do_not_grow_with_the_conversation(acme: Acme) -> None:
    def statements(steps: int, key: str) -> int:
        told = [PROMPTED]
        for n in range(steps):
            told += [asks(a_call(f"c{n}")), answers(f"c{n}")]
        told += [asks(a_call("open"))]
        with CaptureQueriesContext(connection) as seen:
            take(acme, told, key=key)
        return len(seen)

    statements(1, "the tool for what nobody registered is made once")

    assert statements(400, "many") == statements(5, "few")


def test_a_result_with_a_picture_is_shown_with_it(acme: Acme) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    parts = [{"type": "text", "text": "the chart"}, {"type": "image", "source": source}]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": parts}
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}

    row = taken(
        acme, says("x"), {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]}, format="anthropic",
    )  # fmt: skip

    shown = rendering.transcript(row.session, Rendering(profile="anthropic"))
    assert shown.body[-1]["content"] == [result]


def test_the_model_saw_what_the_transcript_holds(acme: Acme) -> None:
    call = only_call(taken(acme, PROMPTED, asks(a_call("c1")), answers("c1")))

    assert call.delivered_at is not None
    [delivery] = call.deliveries.all()
    assert (delivery.kind, delivery.consumer, delivery.turn_id) == ("real", "agent", call.turn_id)
    assert verdict_for(call).model_saw.answer == "result"


def test_a_burst_of_orphans_is_a_persons_to_look_at(acme: Acme) -> None:
    few = taken(acme, PROMPTED, answers("a"), answers("b"))
    many = taken(acme, PROMPTED, answers("a"), answers("b"), answers("c"), key="k-2")

    assert not few.session.incidents.exists()
    incident = many.session.incidents.get()
    assert (incident.kind, incident.facts["orphans"]) == (IncidentKind.TRANSCRIPT, 3)
    assert incident.review_at is not None
