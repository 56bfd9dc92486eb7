"""The user interrupts a turn: what is settled is kept, what ran is bounded, nothing is invented."""

from typing import Any
from uuid import UUID

import pytest

from ledger import attempts, calls, claims, ids, interruptions, offers, sessions
from ledger.calls import Fetchable, Reader
from ledger.errors import CancelRequested, FenceLost, NotFound, TurnClosed
from ledger.interruptions import Fate, Interrupted, Standing, Wish, fate_of
from ledger.models import Attempt, Event, HandOff, Interrupt, Result, ToolCall, Turn, TurnEvent
from ledger.outcomes import Shown, shown
from ledger.vocabulary import (
    CallState,
    Cause,
    Deadline,
    DeliveryMode,
    Effect,
    Meaning,
    ProbeFinding,
)
from recovery import turns
from tests import builders
from tests.builders import a_submit, answer_to, fresh
from tests.cast import Acme
from tests.ledger.saying import a_call_of, place_of, reply
from tests.refusals import sql


@pytest.fixture
def turn(acme: Acme) -> Turn:
    return builders.a_turn(builders.a_session(acme))


def a_call(
    acme: Acme, turn: Turn, in_state: str = "scheduled", *more: Any, **kinds: Any
) -> ToolCall:
    return builders.a_call(
        acme, in_state, *more, session_id=turn.session_id, turn_id=turn.id, **kinds
    )


def interrupt(turn: Turn, **wish: Any) -> Interrupted:
    return interruptions.interrupt(place_of(turn), Wish(**wish))


def grace_over(turn: Turn) -> None:
    sql("UPDATE ledger_turn SET grace_until = clock_timestamp() - interval '1 second' "
        "WHERE id = %s", turn.id)  # fmt: skip
    turns.close_due(10)


def shown_of(call_id: UUID) -> Shown:
    """What its agent reads of a call."""
    (fetched,) = calls.read_many([(Reader(fresh(call_id).workspace_id), call_id)])
    assert isinstance(fetched, Fetchable)
    return shown(fetched)


def closed_as(turn: Turn) -> str:
    return Turn.objects.get(id=turn.id).closed_as


def preserved(turn: Turn) -> list[str]:
    events = TurnEvent.objects.filter(turn=turn, kind="result.preserved").order_by("id")
    return [each for event in events for each in event.facts["calls"]]


# The three by name, each in both modes of delivery


def offered_to_the_next_turn(turn: Turn, mode: DeliveryMode) -> list[tuple[str, str]]:
    """What the turn after this one is offered: the tool and the kind of each item."""
    following = builders.a_turn(turn.session)
    made = offers.offer(place_of(following), mode=mode)
    if made.offer is not None:
        offers.acknowledge(
            workspace_id=turn.workspace_id, agent_id=turn.session.agent_id, offer_id=made.offer.id
        )
        assert offers.offer(place_of(following), mode=mode).items == []
    return [(each.call.tool, str(each.shown.kind)) for each in made.items]


@pytest.mark.parametrize("mode", DeliveryMode)
def test_completed_is_kept(acme: Acme, turn: Turn, mode: DeliveryMode) -> None:
    call = a_call(acme, turn, "succeeded")
    events = Event.objects.filter(call=call).count()

    done = interrupt(turn)

    assert done.calls[Fate.KEPT] == [call.id]
    assert (fresh(call).state, Event.objects.filter(call=call).count()) == ("succeeded", events)
    assert Result.objects.get(call=call).body
    assert preserved(turn) == [ids.shown("call", call.id)]
    assert closed_as(turn) == "interrupted"
    assert offered_to_the_next_turn(turn, mode) == [(call.tool, "real")]
    assert Attempt.objects.filter(call=call).count() == 1


@pytest.mark.parametrize("mode", DeliveryMode)
def test_none_completed_returns_clean(acme: Acme, turn: Turn, mode: DeliveryMode) -> None:
    call = a_call(acme, turn)

    done = interrupt(turn)

    assert done.clean
    assert (fresh(call).state, fresh(call).effect) == ("cancelled", "not_begun")
    assert (preserved(turn), closed_as(turn)) == ([], "interrupted")
    assert offered_to_the_next_turn(turn, mode) == [(call.tool, "notice")]
    assert not Attempt.objects.filter(call=call).exists()


@pytest.mark.parametrize("mode", DeliveryMode)
def test_not_interrupted_is_unchanged(acme: Acme, turn: Turn, mode: DeliveryMode) -> None:
    call = a_call(acme, turn, "succeeded")
    turns.close_due(10)
    assert (closed_as(turn), preserved(turn)) == ("", [])
    assert not TurnEvent.objects.filter(turn=turn).exists()

    made = offers.offer(place_of(turn), mode=mode)
    sessions.close_turn(turn=turn, closed_as="answered")

    assert [each.call.id for each in made.items] == [call.id]
    assert [each.kind for each in TurnEvent.objects.filter(turn=turn)] == ["turn.closed"]
    assert fresh(call).state == "succeeded"


# The table, row by row

P, N, D, NONE = Effect.POSSIBLE, Effect.NOT_BEGUN, Effect.DID_NOT_HAPPEN, Effect.NONE
S = CallState
ROWS: list[tuple[Standing, Fate]] = [
    *((Standing(state, N), Fate.CANCELLED) for state in (S.RECORDED, S.SCHEDULED, S.PAUSED)),
    (Standing(S.BACKING_OFF, D), Fate.CANCELLED),
    *((Standing(state, P), Fate.LEFT) for state in (S.SCHEDULED, S.BACKING_OFF, S.PAUSED)),
    (Standing(S.PAUSED, Effect.HAPPENED), Fate.LEFT),
    (Standing(S.PAUSED, NONE, after_tool=True), Fate.LEFT),
    (Standing(S.SCHEDULED, N, keep_running=True), Fate.LEFT),
    (Standing(S.RUNNING, N), Fate.ASKED),
    (Standing(S.RUNNING, NONE), Fate.ASKED),
    (Standing(S.RUNNING, P), Fate.LEFT),
    (Standing(S.RUNNING, N, keep_running=True), Fate.LEFT),
    (Standing(S.PARKED, P), Fate.LEFT),
    (Standing(S.PARKED, P, cancel_parked=True), Fate.ASKED_OUTSIDE),
    (Standing(S.INTERRUPTED, P), Fate.LEFT),
    (Standing(S.AMBIGUOUS, P), Fate.LEFT),
    *((Standing(state, N, handed_over=True), Fate.LEFT) for state in (S.SCHEDULED, S.RUNNING)),
    (Standing(S.SUCCEEDED, Effect.HAPPENED, handed_over=True), Fate.KEPT),
    *((Standing(state, N), Fate.KEPT) for state in (S.FAILED, S.REJECTED, S.CANCELLED, S.EXPIRED)),
    (Standing(S.ABANDONED, P), Fate.KEPT),
]


@pytest.mark.parametrize(("call", "fate"), ROWS, ids=[f"{c.state}-{c.effect}" for c, _ in ROWS])
def test_each_row_of_the_table_has_its_fate(call: Standing, fate: Fate) -> None:
    assert fate_of(call) is fate


def test_a_call_that_never_ran_is_cancelled_and_told_so(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, turn)
    interrupt(turn)
    call = fresh(call)
    assert (call.state, call.reason) == ("cancelled", "turn_interrupted")
    assert shown_of(call.id).template == "cancelled"
    assert not claims.claim(queue=call.queue, holder=builders.a_worker(), limit=5)


def test_a_call_that_waits_for_another_is_cancelled_and_its_question_withdrawn(
    acme: Acme, turn: Turn
) -> None:
    tool = builders.a_tool(acme)
    first = a_call(acme, turn, "running", tool=tool, crossed=True)
    twin = answer_to(a_submit(acme, tool, session_id=turn.session_id, turn_id=turn.id)).call_id
    assert fresh(twin).state == "paused"

    done = interrupt(turn)

    assert (done.calls[Fate.CANCELLED], done.calls[Fate.LEFT]) == ([twin], [first.id])
    assert Interrupt.objects.get(call=twin).ended_as == "withdrawn"
    told = shown_of(twin)
    assert told.template == "cancelled"


def test_what_crossed_runs_on_and_outlives_the_turn(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, turn, "running", crossed=True)
    interrupt(turn)
    assert (fresh(call).state, fresh(call).cancel_requested_at) == ("running", None)
    assert closed_as(turn) == "interrupted"

    builders.settle(call, {"sent": True})
    assert (fresh(call).state, fresh(call).effect) == ("succeeded", "happened")


def test_parked_work_stays_and_the_outside_is_asked_only_by_policy(acme: Acme, turn: Turn) -> None:
    stays = a_call(acme, turn, "parked", "long_running")
    asked = a_call(acme, turn, "parked", "long_running", policy={"cancel_parked": True})

    done = interrupt(turn)

    assert (done.calls[Fate.LEFT], done.calls[Fate.ASKED_OUTSIDE]) == ([stays.id], [asked.id])
    assert [fresh(each).state for each in (stays, asked)] == ["parked", "parked"]
    assert builders.claimed(asked).cancel_requested
    assert closed_as(turn) == "interrupted"


def test_a_policy_may_keep_what_never_began(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, turn, policy={"keep_running": True})
    interrupt(turn)
    assert fresh(call).state == "scheduled"
    builders.claimed(call)
    builders.cross(call)
    builders.settle(call)
    assert fresh(call).state == "succeeded"


def test_a_handed_off_call_is_never_settled_by_an_interruption(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, turn)
    HandOff.objects.create(
        workspace=acme.workspace, from_session=turn.session, to_agent=acme.ben, grounds="Shift.",
        expires_at="2100-01-01T00:00:00Z",
    )  # fmt: skip
    interrupt(turn)
    assert fresh(call).state == "scheduled"


# The grace


def test_what_ends_within_the_grace_is_real(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, turn, "running", "read_only")
    assert interrupt(turn).calls[Fate.ASKED] == [call.id]
    assert closed_as(turn) == ""

    builders.settle(call, {"rows": 3})
    turns.close_due(10)

    assert (fresh(call).state, closed_as(turn)) == ("succeeded", "interrupted")
    assert preserved(turn) == [ids.shown("call", call.id)]


@pytest.mark.parametrize("recovery_class", ["read_only", "side_effect"])
def test_what_does_not_end_within_the_grace_is_cancelled(
    recovery_class: str, acme: Acme, turn: Turn
) -> None:
    call = a_call(acme, turn, "running", recovery_class)
    interrupt(turn)
    turns.close_due(10)
    assert (fresh(call).state, closed_as(turn)) == ("running", "")

    grace_over(turn)

    assert (fresh(call).state, closed_as(turn)) == ("cancelled", "interrupted")
    with pytest.raises(FenceLost):
        builders.settle(call)


def test_what_was_asked_to_stop_cannot_cross_any_more(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, turn, "running")
    interrupt(turn)
    with pytest.raises(CancelRequested):
        builders.cross(call)
    builders.report(call, Cause.NOT_BEGUN_REPORTED, Meaning.NOT_BEGUN)
    turns.close_due(10)
    assert (fresh(call).state, closed_as(turn)) == ("cancelled", "interrupted")


def test_what_was_given_back_in_the_grace_does_not_run_again(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, turn, "running")
    interrupt(turn)
    attempts.release(
        call_id=call.id, fence=builders.claim_of(call).fence, grounds="The worker drains."
    )
    grace_over(turn)
    assert (fresh(call).state, closed_as(turn)) == ("cancelled", "interrupted")


def test_an_effect_in_doubt_that_is_denied_later_is_not_tried_again(acme: Acme, turn: Turn) -> None:
    policy = {"probe": {"authoritative": True}, "in_flight_grace_s": 0}
    call = a_call(acme, turn, "interrupted", policy=policy)
    calls.cancel(workspace_id=acme.workspace.id, agent_id=acme.ada.id, call_id=call.id)
    builders.unlock_denial(call)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    builders.probe(call, ProbeFinding.DID_NOT_HAPPEN, effects=0)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    assert (fresh(call).state, fresh(call).effect) == ("cancelled", "did_not_happen")


# The turn itself


def test_an_interrupted_turn_takes_no_call(acme: Acme, turn: Turn) -> None:
    a_call(acme, turn, "running")
    interrupt(turn)
    with pytest.raises(TurnClosed):
        answer_to(
            a_submit(acme, builders.a_tool(acme), session_id=turn.session_id, turn_id=turn.id)
        )


def test_a_reply_that_the_interruption_broke_off_is_still_kept(acme: Acme, turn: Turn) -> None:
    tool = builders.a_tool(acme)
    a_call(acme, turn, "running")
    interrupt(turn)
    said = reply(turn, a_call_of(tool.name), stop_reason="aborted", model_step=1)
    assert (said.message.failed, ToolCall.objects.filter(model_step=1).count()) == (True, 0)
    with pytest.raises(TurnClosed):
        reply(turn, a_call_of(tool.name), model_step=2)


def test_interrupting_again_changes_nothing(acme: Acme, turn: Turn) -> None:
    kept, asked = a_call(acme, turn, "succeeded"), a_call(acme, turn, "running")
    first = interrupt(turn, by="the user", said_until=40)
    again = interrupt(turn)

    assert (first.new, again.new) == (True, False)
    assert first.calls == again.calls
    assert first.calls[Fate.KEPT] + first.calls[Fate.ASKED] == [kept.id, asked.id]
    asked_to_stop = Event.objects.filter(call=asked, kind="cancel_requested")
    assert asked_to_stop.get().facts_json == {"turn_interrupted": ids.shown("turn", turn.id)}
    facts = TurnEvent.objects.get(turn=turn, kind="turn.interrupted").facts
    assert (facts["who"], facts["said_until"]) == ("the user", 40)


def test_a_turn_that_ended_otherwise_is_not_interrupted(turn: Turn) -> None:
    sessions.close_turn(turn=turn, closed_as="answered")
    with pytest.raises(TurnClosed):
        interrupt(turn)


def test_the_calls_of_an_interruption_are_in_the_order_of_step_and_position(
    acme: Acme, turn: Turn
) -> None:
    late = a_call(acme, turn, "succeeded", model_step=1, tool_call_id="c")
    second = a_call(acme, turn, "succeeded", position=1, tool_call_id="b")
    first = a_call(acme, turn, "succeeded", tool_call_id="a")
    assert interrupt(turn).calls[Fate.KEPT] == [first.id, second.id, late.id]
    assert preserved(turn) == [ids.shown("call", each.id) for each in (first, second, late)]


def test_the_turn_of_another_agent_reads_as_absent(acme: Acme, turn: Turn) -> None:
    with pytest.raises(NotFound):
        interruptions.interrupt(place_of(turn, agent_id=acme.ben.id), Wish())
