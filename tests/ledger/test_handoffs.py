"""Hand-offs: offered, taken or not; the calls keep their ids, and somebody owns them always."""

import json
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, transaction

from ledger import acceptances, calls, handoffs, ids, keys, unresolved
from ledger.calls import Fetchable, Reader
from ledger.errors import (
    BindingDrift,
    HandOffEnded,
    HandOffOpen,
    HandOffRefused,
    Invalid,
    KeyReused,
    NotFound,
    StaleEpoch,
)
from ledger.handoffs import Offer, Receiver
from ledger.journal import events_of
from ledger.models import Attempt, HandOff, Session, Tool, ToolCall, Turn
from ledger.models.fields import ClockTimestamp
from recovery import stops
from tests import builders
from tests.cast import Acme, Globex
from tests.ledger.test_compactions import a_call, a_history, compacted

pytestmark = pytest.mark.django_db

PLACE = {"working_directory": "/srv/books", "host": "box-1", "model": "m-1"}
SCOPES = frozenset(keys.AGENT_SCOPES)


def offered(session: Session, agent: str = "ben", **more: Any) -> HandOff:
    epoch = Session.objects.get(id=session.id).epoch
    wanted = Offer(agent=agent, **{"grounds": "Ben knows the books.", "epoch": epoch, **more})
    return handoffs.offer(
        workspace_id=session.workspace_id, agent_id=session.agent_id, session_id=session.id,
        wanted=wanted,
    )[0]  # fmt: skip


def receiver(session: Session, **more: Any) -> Receiver:
    return Receiver(
        **{"workspace_id": session.workspace_id, "agent_id": session.agent_id,
           "scopes": SCOPES, "session_id": session.id,
           "epoch": Session.objects.get(id=session.id).epoch, **more}
    )  # fmt: skip


def bens(acme: Acme, **binding: Any) -> Session:
    return builders.a_session(acme, agent=acme.ben, **{**PLACE, **binding})


def taken(row: HandOff, by: Session) -> HandOff:
    return acceptances.accept(hand_off_id=row.id, by=receiver(by))[0]


def three_calls(acme: Acme, turn: Turn) -> list[ToolCall]:
    """Scheduled, crossed, and held as the repeat of the crossed one; and one that is settled."""
    scheduled = a_call(acme, turn, "scheduled", 0)
    crossed = a_call(acme, turn, "running", 1, crossed=True)
    again = builders.a_submit(
        acme, crossed.tool, arguments={"n": 1}, session_id=turn.session_id, turn_id=turn.id,
        tool_call_id="toolu_again", model_step=0, position=2,
    )  # fmt: skip
    a_call(acme, turn, "succeeded", 3)
    return [scheduled, crossed, builders.fresh(builders.answer_to(again).call_id)]


# The ordinary case


def test_the_calls_change_owner_only_when_the_receiver_accepts(acme: Acme) -> None:
    session, turn = a_history(acme)
    wanted, mine = three_calls(acme, turn), bens(acme)
    row = offered(session)
    assert [call.id for call in unresolved.of_session(session.id)] == [c.id for c in wanted]
    assert (row.calls, unresolved.of_session(mine.id)) == ([], [])
    row = taken(row, mine)
    assert (row.ended_as, row.calls) == ("accepted", [call.id for call in wanted])
    assert unresolved.of_session(session.id) == []
    assert [call.id for call in unresolved.of_session(mine.id)] == row.calls


def test_attempts_leases_deadlines_budgets_and_questions_stay(acme: Acme) -> None:
    session, turn = a_history(acme)
    _, crossed, held = three_calls(acme, turn)
    attempts = list(Attempt.objects.order_by("id").values())
    kept = ("id", "state", "effect", "fence", "attempts_used", "attempts_allowed", "due_at",
            "heartbeat_at", "session_id", "turn_id", "agent_id", "tool_call_id")  # fmt: skip
    rows = ToolCall.objects.order_by("id").values(*kept)
    before, asked = list(rows), list(held.interrupts.values())
    taken(offered(session), bens(acme))
    assert list(Attempt.objects.order_by("id").values()) == attempts
    assert (list(rows), list(held.interrupts.values())) == (before, asked)
    assert [e.kind for e in events_of(crossed.id)][-2:] == ["crossed", "handed_off"]


def test_a_running_attempt_is_not_fenced_and_its_result_goes_to_the_new_owner(acme: Acme) -> None:
    session, turn = a_history(acme)
    crossed = a_call(acme, turn, "running", 1, crossed=True)
    mine = bens(acme)
    taken(offered(session), mine)
    builders.settle(crossed, {"sent": True})
    assert builders.fresh(crossed).state == "succeeded"
    owned = ToolCall.objects.filter(unresolved.owned_by(mine.id))
    assert [call.id for call in owned] == [crossed.id]
    assert not ToolCall.objects.filter(unresolved.owned_by(session.id)).exists()


def test_sender_and_receiver_read_the_call_and_nobody_else_does(acme: Acme, globex: Globex) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0)
    ben, ada = Reader(acme.workspace.id, acme.ben.id), Reader(acme.workspace.id, acme.ada.id)
    mallory = Reader(globex.workspace.id, globex.mallory.id)
    assert not _reads(ben, call)
    taken(offered(session), bens(acme))
    assert (_reads(ben, call), _reads(ada, call), _reads(mallory, call)) == (True, True, False)


def _reads(reader: Reader, call: ToolCall) -> bool:
    (read,) = calls.read_many([(reader, call.id)])
    listed = reader.calls.filter(id=call.id).exists()
    assert listed == isinstance(read, Fetchable)
    return listed


def test_a_receiver_that_repeats_a_taken_call_is_answered_by_the_ledger(acme: Acme) -> None:
    _, turn = a_history(acme)
    crossed = a_call(acme, turn, "running", 1, crossed=True)
    ben = bens(acme)
    asked = builders.a_submit(
        acme, Tool.objects.get(name=crossed.tool), agent=acme.ben,
        arguments=json.loads(crossed.arguments), session_id=ben.id,
        turn_id=builders.a_turn(ben).id, tool_call_id="toolu_of_ben",
    )  # fmt: skip
    taken(offered(turn.session), ben)

    repeat = builders.fresh(builders.answer_to(asked).call_id)

    assert (repeat.twin_of_id, repeat.state, repeat.reason) == (crossed.id, "paused", "twin_open")


def test_only_the_owner_of_the_day_may_cancel(acme: Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "scheduled", 0)
    taken(offered(session), bens(acme))
    wanted = {"workspace_id": acme.workspace.id, "call_id": call.id}
    with pytest.raises(NotFound):
        calls.cancel(agent_id=acme.ada.id, **wanted)
    assert calls.cancel(agent_id=acme.ben.id, **wanted).state == "cancelled"


def test_stopping_a_session_stops_the_calls_it_took_and_not_those_it_gave(acme: Acme) -> None:
    session, turn = a_history(acme)
    call, mine = a_call(acme, turn, "scheduled", 0), bens(acme)
    taken(offered(session), mine)
    olga = stops.Person(id="1", name="olga", grounds="Enough.")
    stops.stop(workspace_id=acme.workspace.id, session_id=session.id, by=olga)
    assert builders.fresh(call).state == "scheduled"
    stops.stop(workspace_id=acme.workspace.id, session_id=mine.id, by=olga)
    assert builders.fresh(call).state == "cancelled"


def test_the_senders_turn_closes_as_handed_off_and_its_holder_must_read_again(acme: Acme) -> None:
    session, turn = a_history(acme)
    call, mine = a_call(acme, turn, "running", 0), bens(acme)
    session.refresh_from_db()
    before = session.version
    taken(offered(session), mine)
    for row in (turn, session, mine):
        row.refresh_from_db()
    assert turn.closed_as == "handed_off"
    assert ((session.epoch, session.version), (mine.epoch, mine.version)) == (
        (2, before + 1),
        (1, 1),
    )
    late = builders.a_submit(acme, call.tool, session_id=session.id, epoch=1)
    with pytest.raises(StaleEpoch):
        builders.answer_to(late)


def test_a_call_may_be_handed_on_and_come_back(acme: Acme) -> None:
    session, turn = a_history(acme)
    call, mine = a_call(acme, turn, "running", 0), bens(acme)
    taken(offered(session), mine)
    back = taken(offered(mine, "ada"), builders.a_session(acme, **PLACE))
    assert back.calls == [call.id]
    assert unresolved.of_session(mine.id) == []
    home = taken(offered(_of(back.to_session_id), "ada", session_id=session.id), session)
    assert builders.fresh(call).handed_off_id == home.id
    assert [c.id for c in unresolved.of_session(session.id)] == [call.id]


def _of(session_id: UUID | None) -> Session:
    return Session.objects.get(id=session_id)


def test_the_receivers_compaction_carries_the_calls_it_took(acme: Acme) -> None:
    session, turn = a_history(acme)
    wanted = three_calls(acme, turn)
    mine, own = a_history(acme)
    own_call = a_call(acme, own, "running", 0)
    taken(offered(session, "ada"), mine)
    row = compacted(mine)
    assert row.unresolved == [own_call.id, *(call.id for call in wanted)]


# Twice, late, declined


def test_accepting_twice_is_one_acceptance(acme: Acme) -> None:
    session, turn = a_history(acme)
    call, mine = a_call(acme, turn, "running", 0), bens(acme)
    session.refresh_from_db()
    before, row = session.version, offered(session)
    first, new = acceptances.accept(hand_off_id=row.id, by=receiver(mine))
    again, newly = acceptances.accept(hand_off_id=row.id, by=receiver(mine))
    assert (first.ended_at, new, newly) == (again.ended_at, True, False)
    assert [event.kind for event in events_of(call.id)].count("handed_off") == 1
    session.refresh_from_db()
    assert (session.epoch, session.version) == (2, before + 1)


def test_a_second_session_comes_too_late(acme: Acme) -> None:
    session, _ = a_history(acme)
    row = offered(session)
    taken(row, bens(acme))
    with pytest.raises(HandOffEnded, match="accepted already"):
        taken(row, bens(acme))


def test_an_equal_offer_is_the_same_and_another_waits(acme: Acme) -> None:
    session, _ = a_history(acme)
    row = offered(session, key="k")
    assert offered(session, key="k").id == row.id
    with pytest.raises(KeyReused):
        offered(session, key="k", grounds="Otherwise.")
    with pytest.raises(HandOffOpen, match=ids.shown("hand_off", row.id)):
        offered(session)


def test_what_is_declined_stays_with_its_sender(acme: Acme) -> None:
    session, turn = a_history(acme)
    call, mine = a_call(acme, turn, "running", 0), bens(acme)
    row = offered(session)
    for expected in (True, False):
        ended, new = handoffs.refuse(hand_off_id=row.id, by=receiver(mine), why="Not mine.")
        assert (ended.ended_as, ended.ended_why, new) == ("declined", "Not mine.", expected)
    assert [c.id for c in unresolved.of_session(session.id)] == [call.id]
    with pytest.raises(HandOffEnded, match="declined already"):
        taken(row, mine)
    turn.refresh_from_db()
    assert turn.closed_at is None


def test_an_offer_ends_after_fifteen_minutes(acme: Acme) -> None:
    session, _ = a_history(acme)
    row = offered(session)
    assert (row.expires_at - row.offered_at).total_seconds() == pytest.approx(900, abs=5)
    assert handoffs.expire_due(10) == 0
    _over(row)
    with pytest.raises(HandOffEnded, match="expired"):
        taken(row, bens(acme))
    assert (handoffs.expire_due(10), handoffs.expire_due(10)) == (1, 0)
    row.refresh_from_db()
    assert row.ended_as == "expired"
    assert offered(session).id != row.id


def _over(row: HandOff) -> None:
    HandOff.objects.filter(id=row.id).update(expires_at=ClockTimestamp())


# Refusals


def test_another_workspaces_agent_or_session_reads_like_none(acme: Acme, globex: Globex) -> None:
    session, _ = a_history(acme)
    with pytest.raises(NotFound, match="agent"):
        offered(session, "mallory")
    with pytest.raises(NotFound, match="session"):
        offered(session, session_id=builders.a_session(globex).id)
    row = offered(session)
    for by in (builders.a_session(globex), builders.a_session(acme)):
        with pytest.raises(NotFound, match="hand-off"):
            taken(row, by)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"scopes": frozenset({"turns:write"})}, HandOffRefused),
        ({"epoch": 7}, StaleEpoch),
        ({"session_id": None}, Invalid),
    ],
    ids=["without the right to the tools", "at a stale epoch", "without a session"],
)
def test_a_receiver_is_refused(
    acme: Acme, change: dict[str, Any], refusal: type[Exception]
) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0)
    row = offered(session)
    with pytest.raises(refusal):
        acceptances.accept(hand_off_id=row.id, by=receiver(bens(acme), **change))
    assert [c.id for c in unresolved.of_session(session.id)] == [call.id]


def test_the_named_session_alone_may_take_it(acme: Acme) -> None:
    session, _ = a_history(acme)
    mine = bens(acme)
    row = offered(session, session_id=mine.id)
    with pytest.raises(HandOffRefused, match="another session"):
        taken(row, bens(acme))
    by = receiver(mine, session_id=None)
    assert acceptances.accept(hand_off_id=row.id, by=by)[0].to_session_id == mine.id


def test_a_stopped_session_takes_nothing(acme: Acme) -> None:
    session, _ = a_history(acme)
    mine = bens(acme)
    Session.objects.filter(id=mine.id).update(stopped_at=ClockTimestamp())
    with pytest.raises(HandOffRefused, match="stopped"):
        taken(offered(session), mine)


@pytest.mark.parametrize("field", ["working_directory", "host"])
def test_tools_that_touch_files_are_not_taken_to_another_place(acme: Acme, field: str) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    with pytest.raises(BindingDrift, match=field.replace("_", " ")):
        taken(offered(session), bens(acme, **{field: "elsewhere"}))


def test_remote_tools_may_be_taken_to_another_place(acme: Acme) -> None:
    session, turn = a_history(acme)
    tool = builders.a_tool(acme, executor="http", config={"url": "https://x.example/"})
    a_call(acme, turn, "scheduled", 0, tool=tool)
    assert taken(offered(session), bens(acme, host="elsewhere")).ended_as == "accepted"


def test_a_model_that_was_asked_for_must_be_the_receivers(acme: Acme) -> None:
    session, _ = a_history(acme)
    row = offered(session, model="m-2")
    with pytest.raises(BindingDrift, match="model"):
        taken(row, bens(acme))
    assert taken(row, bens(acme, model="m-2")).ended_as == "accepted"


def test_postgresql_refuses_an_acceptance_that_leaves_a_call_behind(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    row, mine = offered(session), bens(acme)
    with pytest.raises(DatabaseError, match="every open call"), transaction.atomic():
        HandOff.objects.filter(id=row.id).update(
            ended_as="accepted", ended_at=ClockTimestamp(), to_session=mine, calls=[]
        )


def test_a_hand_off_ends_once_and_keeps_what_was_offered(acme: Acme) -> None:
    session, _ = a_history(acme)
    row = taken(offered(session), bens(acme))
    for change in ({"ended_as": "declined"}, {"grounds": "Else."}, {"calls": [row.id]}):
        with pytest.raises(DatabaseError, match="ends once"), transaction.atomic():
            HandOff.objects.filter(id=row.id).update(**change)
