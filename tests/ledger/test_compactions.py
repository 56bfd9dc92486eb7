"""Compactions: prepared without a change, committed whole or not at all, and nothing is lost."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from ledger import carry_over, compactions, cut_tokens, ids, interrupts, lost_lines, unresolved
from ledger.compactions import CarryOverDiffers, Prepared, Wanted
from ledger.cuts import Place
from ledger.errors import (
    CutExpired,
    CutRefused,
    Invalid,
    KeyReused,
    NotFound,
    StaleEpoch,
    StaleTranscript,
)
from ledger.journal import events_of
from ledger.models import Compaction, Message, Session, ToolCall, Turn
from ledger.vocabulary import Phase
from tests import builders
from tests.cast import Acme, Globex

pytestmark = pytest.mark.django_db


def said(turn: Turn, position: int, step: int | None = None) -> Message:
    """A message of a turn: a model's reply at its step, else the user's."""
    return Message.objects.create(
        workspace_id=turn.workspace_id,
        session_id=turn.session_id,
        turn=turn,
        position=position,
        role="user" if step is None else "assistant",
        model_step=step,
        format="neutral",
        parts=json.dumps([{"text": "Hello."}]),
        sha256="0" * 64,
    )


def a_history(acme: Acme) -> tuple[Session, Turn]:
    """An open turn: a question, then a reply."""
    session = builders.a_session(acme, working_directory="/srv/books", host="box-1", model="m-1")
    turn = builders.a_turn(session)
    said(turn, 0)
    said(turn, 1, step=0)
    return session, turn


def a_call(acme: Acme, turn: Turn, in_state: str, position: int, **more: Any) -> ToolCall:
    """A call of the reply, with arguments of its own."""
    more = {"arguments": {"n": position}, **more}
    return builders.a_call(
        acme, in_state, session_id=turn.session_id, turn_id=turn.id, model_step=0,
        position=position, tool_call_id=f"toolu_{position}", **more,
    )  # fmt: skip


def prepare(session: Session) -> Prepared:
    session.refresh_from_db()
    return compactions.prepare(session=session)


def commit(session: Session, token: str, **more: Any) -> tuple[Compaction, bool]:
    wanted = {"token": token, "cut": Place(1, 1), "summary": "They greeted.", **more}
    return compactions.commit(
        workspace_id=session.workspace_id,
        agent_id=session.agent_id,
        session_id=session.id,
        wanted=Wanted(**wanted),
    )


def compacted(session: Session, **more: Any) -> Compaction:
    return commit(session, prepare(session).token, **more)[0]


def class_of(state: str) -> str:
    return "long_running" if state == "parked" else "side_effect"


# The ordinary case


def test_what_is_unresolved_before_is_carried_over_and_unresolved_after(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "succeeded", 9)
    wanted = [
        a_call(acme, turn, state, position, recovery_class=class_of(state))
        for position, state in enumerate(("scheduled", "running", "parked", "ambiguous"))
    ]
    row = compacted(session)
    assert row.unresolved == [call.id for call in wanted]
    assert [line["call"] for line in row.carry_over] == [ids.shown("call", c.id) for c in wanted]
    assert [call.id for call in unresolved.of_session(session.id)] == row.unresolved
    session.refresh_from_db()
    assert (row.version, session.version) == (row.version_before + 1, row.version)


def test_a_line_tells_what_the_ledger_knows_and_no_more(acme: Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "ambiguous", 2)
    (line,) = compacted(session).carry_over
    assert (line["tool"], line["turn"], line["position"]) == (call.tool, 1, 2)
    assert (line["state"], line["effect"]) == ("ambiguous", "possible")
    assert (line["arguments"], line["whose_turn"]) == ('{"n":2}', "an operator's")
    entered = events_of(call.id)[-1].at.isoformat().replace("+00:00", "Z")
    assert (line["since"], line["template"]) == (entered, "ambiguous")
    for part in (line["call"], "toolu_2", line["since"], line["text"], call.arguments_sha256):
        assert part in line["said"]


def test_equal_rows_give_equal_bytes(acme: Acme) -> None:
    session, turn = a_history(acme)
    for position, state in enumerate(("running", "ambiguous")):
        a_call(acme, turn, state, position)
    first, second = prepare(session), prepare(session)
    assert json.dumps(first.carried) == json.dumps(second.carried)
    assert carry_over.block(first.carried) == carry_over.block(second.carried)
    assert carry_over.block([]) == ""


def test_the_carry_over_is_made_anew_when_it_is_committed(acme: Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0)
    gone = a_call(acme, turn, "running", 1)
    prepared = prepare(session)
    builders.cross(call)
    builders.settle(gone)
    row, _ = commit(session, prepared.token)
    assert [line["effect"] for line in prepared.carried] == ["not_begun", "not_begun"]
    assert [(line["call"], line["effect"]) for line in row.carry_over] == [
        (ids.shown("call", call.id), "possible")
    ]


def test_a_second_compaction_builds_its_carry_over_from_the_calls_alone(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "ambiguous", 0)
    first = compacted(session)
    said(turn, 2)
    said(turn, 3, step=1)
    second = compacted(session, cut=Place(1, 3))
    assert (second.number, second.carry_over) == (2, first.carry_over)


def test_principal_binding_epoch_budgets_and_questions_pass_through_unchanged(acme: Acme) -> None:
    session, turn = a_history(acme)
    own = a_call(acme, turn, "backing_off", 0)
    held = a_held_repeat(acme, own, turn)
    columns = ("agent_id", "working_directory", "host", "model", "epoch", "key")
    before = Session.objects.filter(id=session.id).values_list(*columns).get()
    rows = ToolCall.objects.filter(session=session).order_by("id")
    calls, events = list(rows.values()), [len(events_of(own.id))]
    asked = list(held.interrupts.values())
    compacted(session)
    assert Session.objects.filter(id=session.id).values_list(*columns).get() == before
    assert (list(rows.values()), [len(events_of(own.id))]) == (calls, events)
    assert list(held.interrupts.values()) == asked


def a_held_repeat(acme: Acme, call: ToolCall, turn: Turn) -> ToolCall:
    """The same call once more: held, since the first one is still open."""
    submit = builders.a_submit(
        acme, call.tool, arguments={"n": call.position}, session_id=turn.session_id,
        turn_id=turn.id, tool_call_id="toolu_again", model_step=0, position=5,
    )  # fmt: skip
    held = builders.fresh(builders.answer_to(submit).call_id)
    assert held.state == "paused"
    return held


def test_an_open_question_to_a_person_stays_word_for_word(acme: Acme) -> None:
    session, turn = a_history(acme)
    held = a_held_repeat(acme, a_call(acme, turn, "running", 0), turn)
    question = held.interrupts.get()
    line = compacted(session).carry_over[-1]
    assert line["questions"] == [
        {"interrupt": question.id, "phase": "before_tool", "name": "hold", "reason": "twin_open"}
    ]
    assert question.id in line["said"]
    assert interrupts.interrupt_id(Phase.BEFORE_TOOL, held.id, 1, "hold") == question.id


def test_secrets_and_long_arguments_are_kept_out_of_the_line(acme: Acme) -> None:
    session, turn = a_history(acme)
    schema = {"type": "object", "properties": {"pin": {"x-secret": True}}}
    tool = builders.a_tool(acme, input_schema=schema)
    given = {"pin": "4711", "api_key": "sk-1", "list": [{"password": "x"}], "max_tokens": 7,
             "text": "\u202eab" * 200}  # fmt: skip
    a_call(acme, turn, "scheduled", 0, tool=tool, arguments=given)
    (line,) = compacted(session).carry_over
    assert not [secret for secret in ("4711", "sk-1", "\u202e") if secret in line["said"]]
    assert line["arguments"].startswith(
        '{"api_key":"[withheld]","list":[{"password":"[withheld]"}],'
    )
    assert len(line["arguments"]) < 230


# Refusals


def test_a_doubled_commit_gives_the_same_compaction(acme: Acme) -> None:
    session, _ = a_history(acme)
    token = prepare(session).token
    first, new = commit(session, token)
    again, newly = commit(session, token)
    assert (again.id, new, newly) == (first.id, True, False)
    session.refresh_from_db()
    assert session.version == first.version


def test_a_doubled_commit_is_known_after_its_token_has_ended(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, _ = a_history(acme)
    token = prepare(session).token
    first, _ = commit(session, token)
    _later(monkeypatch, 121)
    assert commit(session, token) == (first, False)


def test_a_stale_transcript_changes_nothing(acme: Acme) -> None:
    session, turn = a_history(acme)
    token = prepare(session).token
    Session.objects.filter(id=session.id).update(version=9)
    with pytest.raises(StaleTranscript, match="version 9, and version 1"):
        commit(session, token)
    assert not Compaction.objects.exists()
    session.refresh_from_db()
    assert session.version == 9


def test_another_summary_for_the_same_version_is_stale(acme: Acme) -> None:
    session, _ = a_history(acme)
    token = prepare(session).token
    commit(session, token)
    with pytest.raises(StaleTranscript):
        commit(session, token, summary="Something else.")
    assert Compaction.objects.count() == 1


def test_an_aborted_compaction_changes_nothing(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    before = list(Session.objects.values())
    prepare(session)
    assert (list(Session.objects.values()), Compaction.objects.count()) == (before, 0)


def _later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The tokens of now were issued that long ago."""
    known = cut_tokens.read
    ago = timedelta(seconds=seconds)

    def aged(token: str, session_id: Any) -> cut_tokens.Looked:
        looked = known(token, session_id)
        return cut_tokens.Looked(
            looked.session_id, looked.version, looked.epoch, looked.until - ago
        )

    monkeypatch.setattr(cut_tokens, "read", aged)


def test_a_token_ends_after_two_minutes(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = a_history(acme)
    token = prepare(session).token
    _later(monkeypatch, 119)
    monkeypatch.undo()
    _later(monkeypatch, 121)
    with pytest.raises(CutExpired, match="Read the cuts again"):
        commit(session, token)
    assert not Compaction.objects.exists()


def test_a_forged_token_or_one_of_another_session_is_refused(acme: Acme) -> None:
    session, _ = a_history(acme)
    other, _ = a_history(acme)
    for token in (prepare(other).token, prepare(session).token + "x", "x", "x" * 2000):
        with pytest.raises(Invalid, match="token"):
            commit(session, token)


def test_a_cut_inside_a_step_is_refused_with_the_nearest_allowed_one(acme: Acme) -> None:
    session, turn = a_history(acme)
    said(turn, 2)
    with pytest.raises(CutRefused, match="nearest before it is position 1 of turn 1"):
        commit(session, prepare(session).token, cut=Place(1, 2))
    with pytest.raises(CutRefused, match="none before"):
        commit(session, prepare(session).token, cut=Place(1, 0))


def test_a_session_bound_anew_is_cut_by_nobody_who_looked_before(acme: Acme) -> None:
    session, _ = a_history(acme)
    token = prepare(session).token
    Session.objects.filter(id=session.id).update(epoch=2)
    with pytest.raises(StaleEpoch):
        commit(session, token)


def test_a_key_names_one_compaction(acme: Acme) -> None:
    session, turn = a_history(acme)
    first = compacted(session, key="k")
    said(turn, 2, step=1)
    assert commit(session, prepare(session).token, key="k") == (first, False)
    with pytest.raises(KeyReused):
        commit(session, prepare(session).token, key="k", summary="Another.")


def test_another_agents_session_reads_like_none(acme: Acme, globex: Globex) -> None:
    session, _ = a_history(acme)
    token = prepare(session).token
    for workspace_id, agent_id in (
        (acme.workspace.id, acme.ben.id), (globex.workspace.id, globex.mallory.id),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            compactions.commit(
                workspace_id=workspace_id, agent_id=agent_id, session_id=session.id,
                wanted=Wanted(token=token, cut=Place(1, 1), summary="Mine."),
            )  # fmt: skip


# What keeps it whole


def test_a_carry_over_that_forgot_a_call_is_never_committed(
    acme: Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    token = prepare(session).token
    monkeypatch.setattr(carry_over, "lines", lambda calls: [])
    with pytest.raises((CarryOverDiffers, DatabaseError)), transaction.atomic():
        commit(session, token)
    assert not Compaction.objects.exists()


def test_postgresql_refuses_a_compaction_that_drops_an_open_call(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    row = {
        "workspace_id": session.workspace_id, "session": session, "number": 1, "through_turn": 1,
        "through_position": 1, "summary": "x", "summary_sha256": "x", "version_before": 0,
        "version": 1,
    }  # fmt: skip
    with pytest.raises(DatabaseError, match="does not carry over"), transaction.atomic():
        Compaction.objects.create(**row)


def test_preparing_costs_the_same_however_long_the_session(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    few = _queries(session)
    for position in range(2, 12):
        said(turn, position, step=position)
        a_call(acme, turn, "scheduled", position)
    assert _queries(session) == few


class Counter:
    """Counts statements."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, execute: Any, *rest: Any) -> Any:
        self.n += 1
        return execute(*rest)


def _queries(session: Session) -> int:
    counter = Counter()
    with connection.execute_wrapper(counter):
        prepare(session)
    return counter.n


# The agent's own transcript


def test_a_line_that_the_agents_transcript_lost_comes_back(acme: Acme) -> None:
    session, turn = a_history(acme)
    kept, by_name, lost = (a_call(acme, turn, "running", n) for n in range(3))
    row = compacted(session)
    shown = ids.shown("call", kept.id)
    transcript = [{"role": "user", "content": f"- {shown}: still running"}, {"id": "toolu_1"},
                  {"content": "toolu_2 is only mentioned"}]  # fmt: skip
    check, lines = lost_lines.compare(session=session, compaction=row, transcript=transcript)
    assert check.missing == [lost.id]
    assert [line["call"] for line in lines] == [ids.shown("call", lost.id)]
    assert lost_lines.to_show_again(session.id) == lines
    whole = [*transcript, {"content": lines[0]["said"]}]
    assert lost_lines.compare(session=session, compaction=row, transcript=whole)[0].missing == []
    assert lost_lines.to_show_again(session.id) == []


def test_what_was_settled_since_is_not_missed(acme: Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0)
    row = compacted(session)
    builders.cross(call)
    builders.settle(call)
    assert lost_lines.compare(session=session, compaction=row, transcript=[])[0].missing == []
