"""Re-binding: the old holder is fenced, and no effect is changed by it (R111, R112)."""

from collections.abc import Callable

import pytest

from ledger import attempts, claims, ids, sessions
from ledger.conditions import Seen
from ledger.errors import (
    FenceLost,
    Invalid,
    LedgerError,
    NotFound,
    PermissionMissing,
    PreconditionRequired,
)
from ledger.models import Attempt, Evidence, Session, SessionChange, Tool, ToolCall, Turn
from ledger.vocabulary import Cause, Deadline, IncidentKind, Meaning
from recovery import incidents, rebinds, watchdog
from recovery.models import Incident
from recovery.rebinds import Binding, RebindStale, RebindStaleMatch
from tests import builders, cast
from tests.builders import a_submit, answer_to, fresh
from tests.cast import Acme, Globex
from tests.recovery.rebinding import GROUNDS, rebound
from tests.threads import at_once

SHOP = {"executor": "http", "config": {"url": "https://shop.example/orders", "method": "POST"}}


@pytest.fixture
def session(acme: Acme) -> Session:
    return builders.a_session(acme, working_directory="/srv/books", host="box-1")


def a_call(acme: Acme, session: Session, in_state: str = "scheduled", *more: str, **of: object):  # type: ignore[no-untyped-def]
    return builders.a_call(acme, in_state, *more, session_id=session.id, **of)


# Who held it is fenced


def test_a_rebind_raises_the_epoch_and_says_who_why_and_what(acme: Acme, session: Session) -> None:
    after = rebound(session, by=acme.olga, host="box-2")
    change = SessionChange.objects.get()
    assert (after.epoch, after.host, after.working_directory) == (2, "box-2", "/srv/books")
    assert (change.kind, change.by_name, change.grounds) == ("rebound", "olga", GROUNDS)
    assert change.facts == {
        "epoch": 2, "changed": {"host": ["box-1", "box-2"]}, "calls": {"fenced": [], "not_run": []},
    }  # fmt: skip


def test_a_running_attempt_loses_its_fence_and_what_it_brings_is_evidence(
    acme: Acme, session: Session
) -> None:
    call = a_call(acme, session, "running", crossed=True)
    rebound(session, by=acme.olga)
    with pytest.raises(FenceLost):
        attempts.heartbeat(call_id=call.id, fence=1)
    with pytest.raises(FenceLost):
        builders.settle(call)
    assert (fresh(call).state, fresh(call).effect) == ("interrupted", "possible")
    assert Evidence.objects.get(call=call).kind == "late_result"


def test_an_attempt_past_its_boundary_goes_up_the_ladder_with_its_effect(
    acme: Acme, session: Session
) -> None:
    call = a_call(acme, session, "running", crossed=True)
    rebound(session, by=acme.olga, host="box-2")
    incident = Incident.objects.get(call=call, kind=IncidentKind.RECOVERY)
    assert (incident.cause, fresh(call).effect) == (Cause.REBOUND, "possible")
    assert Attempt.objects.get(call=call).means == Meaning.UNKNOWN
    assert SessionChange.objects.get().facts["calls"]["fenced"] == [ids.shown("call", call.id)]


def test_an_attempt_before_its_boundary_may_not_cross_and_is_made_again(
    acme: Acme, session: Session
) -> None:
    call = a_call(acme, session, "running", tool=builders.a_tool(acme, retry={"attempts": 2}))
    rebound(session, by=acme.olga)
    with pytest.raises(FenceLost):
        attempts.cross(call_id=call.id, fence=1)
    assert (fresh(call).state, fresh(call).effect) == ("backing_off", "not_begun")
    builders.past(call, Deadline.BACKOFF)
    builders.fire()
    assert builders.claimed(call).fence == 2


def test_a_poll_and_a_probe_under_way_are_fenced_and_asked_again(
    acme: Acme, session: Session
) -> None:
    parked = a_call(acme, session, "parked", "long_running")
    poll = builders.poll(parked)
    rebound(session, by=acme.olga, host="box-2")
    with pytest.raises(FenceLost):
        attempts.heartbeat(call_id=parked.id, fence=poll.fence)
    assert fresh(parked).state == "parked"
    assert builders.claimed(parked).fence == poll.fence + 1


def test_what_waits_for_a_worker_goes_on_under_the_new_epoch(acme: Acme, session: Session) -> None:
    call = a_call(acme, session)
    rebound(session, by=acme.olga)
    builders.claimed(call)
    builders.cross(call)
    builders.settle(call)
    assert (fresh(call).state, fresh(call).binding_epoch) == ("succeeded", 1)


@pytest.mark.parametrize("in_state", ["scheduled", "backing_off"])
def test_what_would_touch_the_old_place_is_not_run_and_says_so(
    acme: Acme, session: Session, in_state: str
) -> None:
    call = a_call(acme, session, in_state)
    rebound(session, by=acme.olga, working_directory="/srv/other")
    call = fresh(call)
    assert (call.state, call.reason, call.effect) == ("cancelled", "binding_drift", "not_begun")
    text = call.notices.get().text
    assert "another working directory than it is bound to" in text


def test_what_is_held_is_not_run_and_its_question_is_withdrawn(
    acme: Acme, session: Session
) -> None:
    tool = builders.a_tool(acme)
    answer_to(a_submit(acme, tool, session_id=session.id))
    twin = fresh(answer_to(a_submit(acme, tool, session_id=session.id)).call_id)
    assert twin.state == "paused"
    rebound(session, by=acme.olga, host="box-2")
    assert (fresh(twin).state, fresh(twin).reason) == ("cancelled", "binding_drift")
    assert twin.interrupts.get().ended_as == "withdrawn"


def test_a_read_would_read_the_wrong_place_and_is_not_run_either(
    acme: Acme, session: Session
) -> None:
    call = a_call(acme, session, "scheduled", "read_only")
    rebound(session, by=acme.olga, host="box-2")
    assert (fresh(call).state, fresh(call).effect) == ("cancelled", "none")


def test_a_remote_tool_goes_on_from_another_place(acme: Acme, session: Session) -> None:
    call = a_call(acme, session, tool=builders.a_tool(acme, **SHOP))
    rebound(session, by=acme.olga, host="box-2", working_directory="/srv/other")
    assert fresh(call).state == "scheduled"


def test_a_repeat_whose_effect_is_possible_is_not_made_elsewhere(
    acme: Acme, session: Session
) -> None:
    call = a_call(acme, session, "running", "idempotent_write", crossed=True)
    builders.report(call, Cause.CONNECTION_LOST, Meaning.UNKNOWN)
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    assert (fresh(call).state, fresh(call).effect) == ("backing_off", "possible")
    rebound(session, by=acme.olga, host="box-2")
    assert (fresh(call).state, fresh(call).effect) == ("interrupted", "possible")


def test_settled_calls_and_other_sessions_stay(acme: Acme, session: Session) -> None:
    done, other = a_call(acme, session, "succeeded"), builders.a_call(acme, "running")
    before = [fresh(each).seq for each in (done, other)]
    rebound(session, by=acme.olga, host="box-2")
    assert [fresh(each).seq for each in (done, other)] == before


# The open turn


def test_an_open_turn_and_its_lock_stay_through_a_rebind_and_every_sweep(
    acme: Acme, session: Session
) -> None:
    turn = builders.a_turn(session)
    call = a_call(acme, session, "running", turn_id=turn.id)
    rebound(session, by=acme.olga)
    for _ in range(2):
        watchdog.sweep()
    assert Turn.objects.get(closed_at__isnull=True) == turn
    assert ToolCall.objects.filter(id=call.id).exists()
    with pytest.raises(LedgerError):
        sessions.open_turn(session=session, key="another", stated=sessions.Stated(epoch=2))


def test_no_sweep_removes_the_lock_of_a_turn_whose_lease_is_live(
    acme: Acme, session: Session
) -> None:
    turn = builders.a_turn(session)
    call = a_call(acme, session, "running", turn_id=turn.id, crossed=True)
    lease = Attempt.objects.get(call=call).lease_until
    watchdog.sweep()
    held = Attempt.objects.get(call=call)
    assert (held.ended_at, held.lease_until) == (None, lease)
    assert Turn.objects.get(id=turn.id).closed_at is None


# Who may, and on what


def test_it_needs_a_person_with_the_right_grounds_and_the_epoch_looked_at(
    acme: Acme, globex: Globex, session: Session
) -> None:
    refusals: list[tuple[type[LedgerError], Callable[[], Session]]] = [
        (PermissionMissing, lambda: rebound(session, by=acme.vera)),
        (NotFound, lambda: rebound(session, by=globex.mallory_herself)),
        (Invalid, lambda: rebound(session, by=acme.olga, grounds=" ")),
        (PreconditionRequired, lambda: unseen(session, acme)),
    ]
    refusals[1] = (NotFound, lambda: foreign(session, globex))
    for refusal, act in refusals:
        with pytest.raises(refusal):
            act()
    session.refresh_from_db()
    assert (session.epoch, SessionChange.objects.count()) == (1, 0)


def unseen(session: Session, acme: Acme) -> Session:
    return rebinds.rebind(
        workspace_id=session.workspace_id, session_id=session.id, binding=Binding(),
        grounds=GROUNDS, seen=Seen(), by=cast.as_decider(acme.olga),
    )  # fmt: skip


def foreign(session: Session, globex: Globex) -> Session:
    return rebinds.rebind(
        workspace_id=globex.workspace.id, session_id=session.id, binding=Binding(),
        grounds=GROUNDS, seen=Seen(version=1), by=cast.as_decider(globex.mallory_herself),
    )  # fmt: skip


def test_the_same_request_again_changes_nothing(acme: Acme, session: Session) -> None:
    for _ in range(2):
        again = rebound(session, by=acme.olga, seen=1, host="box-2")
    assert (again.epoch, SessionChange.objects.count()) == (2, 1)


@pytest.mark.parametrize(("matched", "refusal"), [(False, RebindStale), (True, RebindStaleMatch)])
def test_who_looked_at_an_older_epoch_is_told_who_and_what(
    acme: Acme, session: Session, matched: bool, refusal: type[RebindStale]
) -> None:
    rebound(session, by=acme.olga, host="box-2")
    with pytest.raises(refusal) as told:
        rebinds.rebind(
            workspace_id=session.workspace_id, session_id=session.id,
            binding=Binding(host="box-3"), grounds="No, there.",
            seen=Seen(version=1, matched=matched), by=cast.as_decider(acme.olga),
        )  # fmt: skip
    assert "olga raised it" in str(told.value)
    assert "changed host" in str(told.value)
    assert told.value.facts["current"]["epoch"] == 2


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_at_once_one_wins_and_the_other_is_told(
    acme: Acme, session: Session
) -> None:
    olaf = cast.a_person("olaf", acme.workspace, "operator")
    people = {"olga": acme.olga, "olaf": olaf}
    answers = at_once(
        [
            lambda name=name, who=who: rebound(session, by=who, seen=1, host=f"box-of-{name}")  # type: ignore[misc]
            for name, who in people.items()
        ]
    )
    session.refresh_from_db()
    (lost,) = [each for each in answers if isinstance(each, Exception)]
    winner = SessionChange.objects.get().by_name
    assert isinstance(lost, RebindStale)
    assert winner in str(lost)
    assert (session.epoch, session.host) == (2, f"box-of-{winner}")


# Races, each side on a connection of its own


@pytest.mark.django_db(transaction=True)
def test_of_a_submit_and_a_rebind_at_once_no_call_of_the_old_epoch_comes_after(
    acme: Acme, session: Session
) -> None:
    tool = builders.a_tool(acme)
    wishes = [
        a_submit(acme, tool, session_id=session.id, epoch=1, arguments={"n": n}) for n in range(3)
    ]
    acts: list[Callable[[], object]] = [lambda each=each: answer_to(each) for each in wishes]  # type: ignore[misc]
    at_once([*acts, lambda: rebound(session, by=acme.olga, seen=1, host="box-2")])
    change = SessionChange.objects.get()
    assert not ToolCall.objects.filter(recorded_at__gt=change.at).exists()
    assert set(ToolCall.objects.values_list("state", flat=True)) <= {"cancelled"}


@pytest.mark.django_db(transaction=True)
def test_of_a_claim_and_a_rebind_at_once_no_old_attempt_is_left_alive(
    acme: Acme, session: Session
) -> None:
    tool: Tool = builders.a_tool(acme, retry={"attempts": 2})
    for n in range(3):
        answer_to(a_submit(acme, tool, session_id=session.id, arguments={"n": n}))
    holder = builders.a_worker()
    at_once(
        [
            lambda: claims.claim(queue="effects", holder=holder, limit=3),
            lambda: rebound(session, by=acme.olga, seen=1),
        ]
    )
    change = SessionChange.objects.get()
    alive = Attempt.objects.filter(ended_at__isnull=True)
    assert not alive.filter(claimed_at__lt=change.at).exists()
    assert not Attempt.objects.filter(claimed_at__lt=change.at, ended_at__gt=change.at).exists()


@pytest.mark.django_db(transaction=True)
def test_of_a_settlement_and_a_rebind_at_once_the_result_counts_or_is_evidence(
    acme: Acme, session: Session
) -> None:
    call = a_call(acme, session, "running", crossed=True)
    claim = builders.claim_of(call)
    settlement = builders.settlement(claim)
    from ledger import settlements

    at_once(
        [
            lambda: settlements.settle([settlement]),
            lambda: rebound(session, by=acme.olga, seen=1),
        ]
    )
    kept = Evidence.objects.filter(call=call, kind="late_result").count()
    assert (fresh(call).state, kept) in (("succeeded", 0), ("interrupted", 1))


# Incidents


def test_the_incidents_of_the_drift_end_with_the_rebind(acme: Acme, session: Session) -> None:
    incident = incidents.report_of_session(
        session, IncidentKind.STALE_BINDING, subject="host", grounds="It drifted.", facts={}
    )
    rebound(session, by=acme.olga, host="box-2")
    incident.refresh_from_db()
    assert (incident.state, incident.review_at) == ("resolved", None)
    assert incident.steps.latest("id").facts == {"by": "olga"}
