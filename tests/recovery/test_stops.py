"""Stopping a session: no new attempt, and what crossed its boundary is left to end."""

from typing import Any

import pytest

from ledger import attempts, claims, ids
from ledger.errors import CancelRequested, Invalid, NotFound
from ledger.models import Interrupt, Session, SessionChange, ToolCall
from ledger.vocabulary import Cause, Deadline, Meaning
from recovery import stops, watchdog
from recovery.models import Incident
from recovery.stops import Person
from tests import builders
from tests.builders import a_submit, answer_to, fresh
from tests.cast import Acme, Globex

OLGA = Person("7", "olga", "The agent repeats itself.")


def stop(session: Session, *, at: Acme | Globex) -> Session:
    return stops.stop(workspace_id=at.workspace.id, session_id=session.id, by=OLGA)


def resume(session: Session, *, at: Acme) -> Session:
    return stops.resume(workspace_id=at.workspace.id, session_id=session.id, by=OLGA)


def in_session(acme: Acme, in_state: str, **call: Any) -> tuple[Session, ToolCall]:
    session = builders.a_session(acme)
    return session, builders.a_call(acme, in_state, session_id=session.id, **call)


@pytest.mark.parametrize("in_state", ["scheduled", "backing_off"])
def test_what_is_at_rest_is_cancelled(acme: Acme, in_state: str) -> None:
    session, call = in_session(acme, in_state)
    stop(session, at=acme)
    call = fresh(call)
    assert (call.state, call.reason, call.effect) == ("cancelled", "stopped", "not_begun")


def test_a_held_call_is_cancelled_and_its_question_withdrawn(acme: Acme) -> None:
    session = builders.a_session(acme)
    tool = builders.a_tool(acme)
    answer_to(a_submit(acme, tool, session_id=session.id))
    twin = answer_to(a_submit(acme, tool, session_id=session.id)).call_id
    stop(session, at=acme)
    assert fresh(twin).state == "cancelled"
    assert Interrupt.objects.get(call=twin).ended_as == "withdrawn"


def test_a_repeat_that_is_due_with_its_effect_possible_goes_up_the_ladder_and_ends_there(
    acme: Acme,
) -> None:
    session, call = in_session(acme, "running", recovery_class="idempotent_write", crossed=True)
    builders.report(call, Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    assert fresh(call).state == "backing_off"
    stop(session, at=acme)
    assert fresh(call).state == "interrupted"
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    assert fresh(call).state == "ambiguous"
    incident = Incident.objects.get(call=call, closed_at__isnull=True)
    assert incident.reason == "recovery_aborted"


def test_a_running_call_may_not_cross_any_more(acme: Acme) -> None:
    session, call = in_session(acme, "running")
    stop(session, at=acme)
    with pytest.raises(CancelRequested):
        attempts.cross(call_id=call.id, fence=builders.claim_of(call).fence)
    builders.report(call, Cause.NOT_BEGUN_REPORTED, Meaning.NOT_BEGUN)
    assert fresh(call).state == "cancelled"


def test_a_call_past_its_boundary_is_left_to_end(acme: Acme) -> None:
    session, call = in_session(acme, "running", crossed=True)
    stop(session, at=acme)
    assert fresh(call).cancel_requested_at is None
    builders.settle(call)
    assert fresh(call).state == "succeeded"


def test_a_refusal_after_the_stop_is_not_tried_again(acme: Acme) -> None:
    session, call = in_session(acme, "running", crossed=True)
    stop(session, at=acme)
    builders.report(call, Cause.RATE_LIMITED, Meaning.REFUSED)
    assert (fresh(call).state, fresh(call).effect) == ("cancelled", "did_not_happen")


def test_settled_and_parked_calls_stay(acme: Acme) -> None:
    session, done = in_session(acme, "succeeded")
    parked = builders.a_call(acme, "parked", "long_running", session_id=session.id)
    stop(session, at=acme)
    assert [fresh(each).state for each in (done, parked)] == ["succeeded", "parked"]


def test_a_new_call_is_recorded_and_rejected_at_once(acme: Acme) -> None:
    session = builders.a_session(acme)
    stop(session, at=acme)
    call = fresh(answer_to(a_submit(acme, builders.a_tool(acme), session_id=session.id)).call_id)
    assert (call.state, call.reason) == ("rejected", "stopped")
    assert claims.claim(queue="effects", holder=builders.a_worker(), limit=9) == []


def test_resuming_lets_new_calls_run_and_revives_none(acme: Acme) -> None:
    session, call = in_session(acme, "scheduled")
    stop(session, at=acme)
    resume(session, at=acme)
    assert fresh(call).state == "cancelled"
    again = answer_to(a_submit(acme, builders.a_tool(acme), session_id=session.id))
    assert fresh(again.call_id).state == "scheduled"


def test_each_change_says_who_when_and_why_and_repeating_one_changes_nothing(acme: Acme) -> None:
    session = builders.a_session(acme)
    for act in (stop, stop, resume, resume):
        act(session, at=acme)
    changes = SessionChange.objects.order_by("id")
    said = [(each.kind, each.by_id, each.by_name, each.grounds) for each in changes]
    assert said == [("stopped", "7", "olga", OLGA.grounds), ("resumed", "7", "olga", OLGA.grounds)]


def test_a_stop_needs_grounds_and_a_session_of_the_workspace(acme: Acme, globex: Globex) -> None:
    session = builders.a_session(acme)
    with pytest.raises(NotFound):
        stop(session, at=globex)
    with pytest.raises(NotFound):
        stops.stop(workspace_id=acme.workspace.id, session_id=ids.new(), by=OLGA)
    with pytest.raises(Invalid):
        stops.stop(workspace_id=acme.workspace.id, session_id=session.id, by=Person("7", "o", " "))


def test_a_stopped_session_is_swept_like_any_other(acme: Acme) -> None:
    session, call = in_session(acme, "interrupted")
    stop(session, at=acme)
    watchdog.sweep()
    assert fresh(call).state in ("interrupted", "ambiguous")
