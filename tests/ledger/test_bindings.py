"""Bindings: who comes from elsewhere, or from before a re-bind, changes nothing (R110, R111)."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger import (
    bindings,
    calls,
    ids,
    messages,
    offers,
    pipelines,
    registered,
    replies,
    sessions,
    submits,
)
from ledger.bindings import Stated
from ledger.errors import (
    BindingDrift,
    KeyReused,
    LedgerError,
    NotFound,
    StaleEpoch,
    TurnClosed,
    TurnOpen,
)
from ledger.models import Drift, Message, Session, Tool, ToolCall, Turn
from ledger.registered import is_remote
from ledger.replies import Heard
from ledger.vocabulary import DeliveryMode
from tests import builders
from tests.builders import a_submit, a_tool, answer_to, fresh
from tests.cast import Acme, Globex
from tests.ledger.saying import FORMAT, a_call_of, by_model, by_user, place_of, reply
from tests.recovery.rebinding import rebound

HERE = {"working_directory": "/srv/books", "host": "box-1"}
SHOP = {"executor": "http", "config": {"url": "https://shop.example/orders", "method": "POST"}}


@pytest.fixture
def session(acme: Acme) -> Session:
    return builders.a_session(acme, **HERE)


def come_back(session: Session, **stated: Any) -> tuple[Session, Turn | None]:
    return bindings.come_back(
        session_id=session.id,
        workspace_id=session.workspace_id,
        agent_id=session.agent_id,
        stated=Stated(**stated),
    )


def drifts() -> list[tuple[str, str, str, bool, int]]:
    rows = Drift.objects.order_by("id")
    return [(each.field, each.stated, each.at, each.blocked, each.times) for each in rows]


# What is bound, and when


def test_the_first_turn_binds_what_the_opening_left_open(acme: Acme) -> None:
    session = builders.a_session(acme)
    builders.a_turn(session, stated=Stated(**HERE))
    session.refresh_from_db()
    assert (session.working_directory, session.host) == ("/srv/books", "box-1")


def test_a_later_turn_binds_nothing(acme: Acme) -> None:
    session = builders.a_session(acme)
    sessions.close_turn(turn=builders.a_turn(session), closed_as="answered")
    builders.a_turn(session, stated=Stated(**HERE))
    session.refresh_from_db()
    assert (session.working_directory, session.host) == ("", "")


def test_the_first_turn_changes_nothing_that_is_bound(session: Session) -> None:
    with pytest.raises(BindingDrift):
        builders.a_turn(session, stated=Stated(host="box-2"))
    session.refresh_from_db()
    assert (session.host, Turn.objects.count()) == ("box-1", 0)
    assert drifts() == [("host", "box-2", "turn", True, 1)]


def test_a_field_that_nobody_bound_is_not_compared(acme: Acme) -> None:
    session = builders.a_session(acme)
    answer_to(a_submit(acme, a_tool(acme), session_id=session.id, **HERE))
    assert drifts() == []


# Submitting from elsewhere


@pytest.mark.parametrize("recovery_class", ["side_effect", "read_only"])
@pytest.mark.parametrize("field", ["working_directory", "host"])
def test_a_tool_of_the_place_is_refused_from_elsewhere_reads_too(
    acme: Acme, session: Session, field: str, recovery_class: str
) -> None:
    tool = a_tool(acme, recovery_class=recovery_class)
    for _ in range(2):
        with pytest.raises(BindingDrift):
            answer_to(a_submit(acme, tool, session_id=session.id, **{field: "elsewhere"}))
    assert not ToolCall.objects.exists()
    assert drifts() == [(field, "elsewhere", "submit", True, 2)]


def test_a_remote_tool_is_allowed_from_elsewhere_and_noted(acme: Acme, session: Session) -> None:
    call = answer_to(a_submit(acme, a_tool(acme, **SHOP), session_id=session.id, host="box-2"))
    assert fresh(call.call_id).state == "scheduled"
    assert drifts() == [("host", "box-2", "submit", False, 1)]


def test_of_a_batch_only_what_came_from_elsewhere_is_refused(acme: Acme, session: Session) -> None:
    tool = a_tool(acme)
    here, there = (
        a_submit(acme, tool, session_id=session.id, host=host, arguments={"host": host})
        for host in ("box-1", "box-2")
    )
    answers = submits.record([there, here])
    assert [type(each) for each in answers] == [BindingDrift, submits.Recorded]
    assert ToolCall.objects.get().arguments == '{"host":"box-1"}'


@pytest.mark.parametrize(
    ("executor", "kinds", "remote"),
    [
        ("http", [], True),
        ("http", ["purchase"], True),
        ("http", ["file"], False),
        ("command", ["message"], False),
        ("python", ["message"], True),
        ("python", ["message", "subprocess"], False),
        ("python", [], False),
    ],
)
def test_what_is_not_known_to_work_elsewhere_is_taken_to_work_here(
    executor: str, kinds: list[str], remote: bool
) -> None:
    assert is_remote(executor, kinds) is remote


def test_a_reply_from_elsewhere_is_refused_whole_and_the_drift_is_kept(
    acme: Acme, session: Session
) -> None:
    turn = builders.a_turn(session)
    with pytest.raises(BindingDrift):
        reply(turn, a_call_of(a_tool(acme).name), host="box-2")
    assert (Message.objects.count(), ToolCall.objects.count()) == (0, 0)
    assert drifts() == [("host", "box-2", "submit", True, 1)]


def test_another_model_inside_a_turn_is_refused(acme: Acme, session: Session) -> None:
    turn = builders.a_turn(session, model="m-1")
    submit = a_submit(acme, a_tool(acme), session_id=session.id, turn_id=turn.id, model="m-2")
    with pytest.raises(TurnOpen):
        answer_to(submit)
    assert not ToolCall.objects.exists()


def test_what_is_stated_of_a_session_costs_no_statement_more(acme: Acme, session: Session) -> None:
    tool = a_tool(acme)
    answer_to(a_submit(acme, tool))
    plain = a_submit(acme, tool, arguments={"n": 1}, session_id=session.id)
    stated = a_submit(acme, tool, arguments={"n": 2}, session_id=session.id, epoch=1, **HERE)
    assert statements(plain) == statements(stated)


def statements(submit: submits.Submit) -> int:
    """How many statements a submit takes, by the ORM and by pipelines, which it does not see."""
    sent: list[str] = []
    line = pipelines.Line.statement

    def counted(self: Any, text: str, parameters: Any) -> Any:
        sent.append(text)
        return line(self, text, parameters)

    registered.forget()  # it is read again after a second, in the middle of a slow test
    with pytest.MonkeyPatch.context() as patched, CaptureQueriesContext(connection) as asked:
        patched.setattr(pipelines.Line, "statement", counted)
        answer_to(submit)
    return len(sent) + len(asked)


# Coming back


def test_who_comes_back_as_it_left_goes_on_with_its_open_turn(session: Session) -> None:
    turn = builders.a_turn(session)
    assert come_back(session, epoch=1, **HERE) == (session, turn)
    assert drifts() == []


@pytest.mark.parametrize(
    ("stated", "refusal", "field"),
    [
        ({"epoch": 0}, StaleEpoch, "epoch"),
        ({"epoch": 1, "host": "box-2"}, BindingDrift, "host"),
        ({"working_directory": "/tmp"}, BindingDrift, "working_directory"),
    ],
)
def test_who_comes_back_otherwise_is_refused_and_noted(
    session: Session, stated: dict[str, Any], refusal: type[LedgerError], field: str
) -> None:
    with pytest.raises(refusal):
        come_back(session, **stated)
    assert [each[0] for each in drifts()] == [field]


def test_who_comes_back_with_another_model_waits_for_the_turn(session: Session) -> None:
    turn = builders.a_turn(session, model="m-1")
    with pytest.raises(TurnOpen):
        come_back(session, model="m-2")
    sessions.close_turn(turn=turn, closed_as="answered")
    assert come_back(session, model="m-2")[1] is None


def test_a_session_of_another_reads_as_absent(acme: Acme, globex: Globex, session: Session) -> None:
    for workspace_id, agent_id in (
        (globex.workspace.id, globex.mallory.id),
        (acme.workspace.id, acme.ben.id),
    ):
        with pytest.raises(NotFound) as foreign:
            bindings.come_back(session_id=session.id, workspace_id=workspace_id,
                               agent_id=agent_id, stated=Stated())  # fmt: skip
        with pytest.raises(NotFound) as absent:
            bindings.come_back(session_id=ids.new(), workspace_id=workspace_id,
                               agent_id=agent_id, stated=Stated())  # fmt: skip
        assert str(foreign.value) == str(absent.value)
    assert drifts() == []


def test_a_key_opens_no_session_of_another_binding(acme: Acme) -> None:
    builders.a_session(acme, key="books", **HERE)
    with pytest.raises(KeyReused):
        builders.a_session(acme, key="books", working_directory="/srv/books", host="box-2")


# From before a re-bind


@pytest.mark.parametrize("stated", [{"epoch": 1}, {}], ids=["said", "unsaid"])
def test_from_before_a_rebind_nothing_can_be_changed(
    acme: Acme, session: Session, stated: dict[str, int]
) -> None:
    tool, turn = a_tool(acme), builders.a_turn(session)
    waits = builders.a_call(acme, tool=tool, session_id=session.id, turn_id=turn.id)
    settled = builders.a_call(acme, "succeeded", session_id=session.id, turn_id=turn.id)
    made = offers.offer(place_of(turn), mode=DeliveryMode.APPEND_BOTH)
    rebound(session, by=acme.olga)
    place, before = place_of(turn, **stated), rows()
    heard = Heard(format=FORMAT, entries=[by_model(a_call_of(tool.name))])

    attempts = [
        lambda: answer_to(a_submit(acme, tool, session_id=session.id, **stated)),
        lambda: messages.say(place, format=FORMAT, entries=[by_user("And now?")]),
        lambda: replies.reply(place, heard),
        lambda: offers.offer(place, mode=DeliveryMode.APPEND_BOTH),
        lambda: sessions.close_turn(turn=turn, closed_as="stopped", **stated),
        lambda: builders.a_turn(session, key="next", stated=Stated(**stated)),
        lambda: calls.cancel(workspace_id=session.workspace_id, agent_id=session.agent_id,
                             call_id=waits.id, **stated),
        lambda: offers.acknowledge(workspace_id=session.workspace_id, agent_id=session.agent_id,
                                   offer_id=made.offer.id, **stated),
        lambda: come_back(session, **stated),
    ]  # fmt: skip
    for attempt in attempts:
        with pytest.raises(StaleEpoch):
            attempt()
    assert rows() == before
    assert fresh(settled).delivered_at is None


def rows() -> list[Any]:
    """All that who acts for a session could change."""
    return [
        list(ToolCall.objects.order_by("id").values_list("id", "state", "seq")),
        list(Turn.objects.values_list("id", "closed_at")),
        list(Message.objects.values_list("id", flat=True)),
        list(Session.objects.values_list("id", "epoch", "version")),
    ]


def test_who_states_the_new_epoch_goes_on(acme: Acme, session: Session) -> None:
    turn = builders.a_turn(session)
    session = rebound(session, by=acme.olga)
    tool = a_tool(acme)
    answer_to(a_submit(acme, tool, session_id=session.id, turn_id=turn.id, epoch=2))
    messages.say(place_of(turn, epoch=2), format=FORMAT, entries=[by_user("Go on.")])
    assert come_back(session, epoch=2, **HERE) == (session, turn)
    sessions.close_turn(turn=turn, closed_as="interrupted", epoch=2)
    with pytest.raises(TurnClosed):
        answer_to(a_submit(acme, tool, session_id=session.id, turn_id=turn.id, epoch=2,
                           arguments={"n": 2}))  # fmt: skip


def test_a_repetition_from_before_a_rebind_reads_the_call_and_records_none(
    acme: Acme, session: Session
) -> None:
    submit = a_submit(acme, a_tool(acme), session_id=session.id, idempotency_key="k", epoch=1)
    first = answer_to(submit)
    rebound(session, by=acme.olga)
    again = answer_to(a_submit(acme, submit.tool, session_id=session.id, idempotency_key="k"))
    assert (again.call_id, again.replayed) == (first.call_id, True)
    assert ToolCall.objects.count() == 1


def test_the_tool_version_of_an_open_call_stays(acme: Acme, session: Session) -> None:
    tool: Tool = a_tool(acme, "mail.send")
    call = builders.a_call(acme, tool=tool, session_id=session.id)
    a_tool(acme, "mail.send", input_schema={"type": "object"})
    rebound(session, by=acme.olga)
    assert builders.claimed(call).tool_version == 1
