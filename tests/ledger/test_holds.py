"""Holds: what depends on an unresolved side effect waits, and goes on by itself."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import pytest
from django.db import DatabaseError, connection, transaction

from ledger import approvals, calls, claims, holds, ids, interrupts, pressure, sessions
from ledger.errors import (
    ConfirmationRequired,
    InterruptAnswered,
    InterruptExpired,
    Invalid,
    LoginStale,
    NotFound,
    NotHeld,
    TurnUnsettled,
)
from ledger.journal import events_of
from ledger.models import Interrupt, Session, ToolCall, Turn
from ledger.permissions import Person
from ledger.vocabulary import Cause, Deadline, Meaning, Phase, ProbeFinding
from recovery import watchdog
from tests import builders
from tests.builders import a_submit, answer_to, fresh
from tests.cast import Acme, Globex
from tests.ledger.verification.planting import plant
from tests.recovery.deciding import decide
from tests.threads import at_once

HELD_CLASSES = ["side_effect", "idempotent_write", "long_running", "provider_auth"]


class Story:
    """A turn with a mail whose sending was interrupted, and tools to go on with."""

    def __init__(self, acme: Acme, in_state: str = "ambiguous", **policy: Any) -> None:
        self.acme = acme
        self.session: Session = builders.a_session(acme)
        self.turn: Turn = builders.a_turn(self.session)
        self.mail_tool = builders.a_tool(acme, **policy)
        self.mail = builders.a_call(acme, in_state, tool=self.mail_tool, **self.place)

    @property
    def place(self) -> dict[str, Any]:
        return {"session_id": self.session.id, "turn_id": self.turn.id}

    def ask(self, recovery_class: str = "side_effect", **submit: Any) -> ToolCall:
        """Ask for something else in the same turn."""
        tool = builders.a_tool(self.acme, recovery_class=recovery_class)
        return fresh(answer_to(a_submit(self.acme, tool, **self.place | submit)).call_id)


def an_approver(at: Acme | Globex, **more: Any) -> Person:
    return Person(7, "arno", at.workspace.id, frozenset({"approver"}), **more)


def release(
    call: ToolCall, answer: str = "approve", *, at: Acme | Globex, confirm: str | None = None
) -> ToolCall:
    return approvals.answer_hold(
        call_id=call.id, answer=answer, by=an_approver(at),
        grounds="The guest list does not depend on the mail.",
        confirm=f"{call.tool} 1" if confirm is None else confirm,
    )  # fmt: skip


# What is held


@pytest.mark.parametrize("recovery_class", HELD_CLASSES)
@pytest.mark.parametrize("in_state", ["interrupted", "ambiguous"])
def test_later_calls_of_the_turn_are_held(acme: Acme, in_state: str, recovery_class: str) -> None:
    story = Story(acme, in_state)
    call = story.ask(recovery_class)
    assert (call.state, call.reason) == ("paused", "waiting_for_call")
    assert [event.kind for event in events_of(call.id)] == ["recorded", "interrupt_raised"]
    assert Interrupt.objects.get(call=call).waits_for_id == story.mail.id


def test_a_read_runs_on(acme: Acme) -> None:
    assert Story(acme).ask("read_only").state == "scheduled"


@pytest.mark.parametrize("in_state", ["running", "succeeded", "failed", "expired", "backing_off"])
def test_a_known_or_running_effect_holds_nobody(acme: Acme, in_state: str) -> None:
    assert Story(acme, in_state).ask().state == "scheduled"


def test_a_policy_may_hold_nobody(acme: Acme) -> None:
    assert Story(acme, hold_dependents=False).ask().state == "scheduled"


def test_another_turn_or_session_is_not_held(acme: Acme) -> None:
    story = Story(acme)
    elsewhere = builders.a_session(acme)
    other = {"session_id": elsewhere.id, "turn_id": builders.a_turn(elsewhere).id}
    assert story.ask(**other).state == "scheduled"
    assert story.ask(turn_id=None).state == "scheduled"


def test_the_interrupt_has_the_id_and_the_snapshot_of_its_call(acme: Acme) -> None:
    call = Story(acme).ask(tool_call_id="toolu_9")
    hold = Interrupt.objects.get(call=call)
    assert hold.id == f"v1:before_tool:{call.id}:1:{uuid5(NAMESPACE_OID, 'hold')}:0"
    snapshot = hold.snapshot_json
    assert set(snapshot) == {*interrupts.SNAPSHOT_KEYS, "hash"}
    assert snapshot["tool_use"] == {
        "name": call.tool, "arguments": builders.ARGUMENTS, "tool_call_id": "toolu_9",
    }  # fmt: skip
    assert (snapshot["version"], snapshot["phase"], snapshot["result"]) == (1, "before_tool", None)


def test_the_id_of_an_interrupt_agrees_with_the_published_vector() -> None:
    given = interrupts.interrupt_id(Phase.IN_TOOL, builders.ids.new(), 2, "step1", occurrence=3)
    assert given.endswith(":2:d7758bb6-9bb1-5e1c-8919-341e240b4827:3")


def test_an_interrupt_is_a_record_that_ends_once(acme: Acme) -> None:
    story = Story(acme)
    call = release(story.ask(), at=acme)
    for change in ({"answer": "reject"}, {"reason": "x"}, {"ended_at": None, "ended_as": ""}):
        with pytest.raises(DatabaseError, match="is a record"), transaction.atomic():
            Interrupt.objects.filter(call=call).update(**change)
    with pytest.raises(DatabaseError, match="is a record"), transaction.atomic():
        Interrupt.objects.filter(call=call)._raw_delete("default")


# How it ends


def by_result(story: Story) -> None:
    """A late result of the only crossed attempt is adopted."""
    with pytest.raises(builders.LedgerError):
        builders.settle(story.mail)
    builders.fire()


def by_probe(finding: ProbeFinding) -> Callable[[Story], None]:
    def end(story: Story) -> None:
        builders.unlock_denial(story.mail)
        builders.past(story.mail, Deadline.NEXT_STEP)
        builders.fire()
        builders.probe(story.mail, finding)
        builders.past(story.mail, Deadline.NEXT_STEP)
        builders.fire()

    return end


@pytest.mark.parametrize(
    ("end", "becomes"),
    [
        (by_result, "succeeded"),
        (by_probe(ProbeFinding.HAPPENED), "succeeded"),
        (by_probe(ProbeFinding.DID_NOT_HAPPEN), "backing_off"),
    ],
    ids=["late result", "probe: happened", "probe: did not happen"],
)
def test_a_hold_ends_when_the_other_call_is_known(
    acme: Acme, end: Callable[[Story], None], becomes: str
) -> None:
    story = Story(
        acme, "interrupted", probe={"authoritative": True, "interval_s": 1},
        retry={"attempts": 3},
    )  # fmt: skip
    call = story.ask()
    end(story)
    assert fresh(story.mail).state == becomes
    watchdog.end_holds()
    assert fresh(call).state == "scheduled"
    assert claim_all() >= {call.id}


def claim_all() -> set[Any]:
    won = claims.claim(queue="effects", holder=builders.the_worker(), limit=100)
    return {each.call_id for each in won}


@pytest.mark.parametrize(
    ("answer", "then", "becomes"),
    [
        ("happened", "", "succeeded"),
        ("did_not_happen", "close", "failed"),
        ("did_not_happen", "repeat", "backing_off"),
        ("abandon", "", "abandoned"),
    ],
)
def test_a_hold_ends_when_a_person_has_decided(
    acme: Acme, answer: str, then: str, becomes: str
) -> None:
    story = Story(acme, delivery_delay_s=0)
    call = story.ask()
    builders.unlock_denial(story.mail)
    decide(acme, story.mail, answer, then)
    assert fresh(story.mail).state == becomes
    watchdog.end_holds()
    assert fresh(call).state == "scheduled"


def test_a_released_call_has_the_rest_of_its_time(acme: Acme) -> None:
    story = Story(acme)
    call = story.ask()
    assert call.schedule_to_close_at is None
    call = release(call, at=acme)
    assert call.schedule_to_close_at is not None
    assert call.published_at is not None
    left = call.schedule_to_close_at - call.published_at
    assert abs(left - timedelta(seconds=300)) < timedelta(seconds=1)
    kinds = [event.kind for event in events_of(call.id)]
    assert kinds == ["recorded", "interrupt_raised", "interrupt_answered", "scheduled"]


@pytest.mark.corrupts
def test_who_waits_for_a_call_that_is_not_there_is_let_go(acme: Acme) -> None:
    story = Story(acme, "running")
    again = fresh(answer_to(a_submit(acme, story.mail_tool, **story.place)).call_id)
    plant("UPDATE ledger_interrupt SET waits_for_id = %s WHERE call_id = %s", ids.new(), again.id)
    watchdog.end_holds()
    again = fresh(again)
    assert (again.state, again.twin_of_id) == ("scheduled", None)


def test_while_the_other_is_unresolved_a_sweep_changes_nothing(acme: Acme) -> None:
    story = Story(acme)
    call = story.ask()
    assert (watchdog.end_holds(), fresh(call).state) == (0, "paused")


def test_a_second_unresolved_call_goes_on_holding(acme: Acme) -> None:
    story = Story(acme, "running", boundary="marked")
    second = builders.a_call(acme, "running", crossed=True, **story.place)
    builders.cross(story.mail)
    builders.lost(story.mail)
    builders.lost(second)
    call = story.ask()
    by_result(story)
    assert fresh(story.mail).state == "succeeded"
    watchdog.end_holds()
    assert fresh(call).state == "paused"
    assert Interrupt.objects.get(call=call).waits_for_id == second.id
    assert holds.due(10) == []


def test_nobody_answered_is_no_no(acme: Acme) -> None:
    call = Story(acme).ask()
    builders.past(call, Deadline.INTERRUPT_EXPIRY)
    builders.fire()
    call = fresh(call)
    assert (call.state, call.reason, call.effect) == ("expired", "held", "not_begun")
    assert Interrupt.objects.get(call=call).ended_as == "expired"
    with pytest.raises(InterruptExpired):
        release(call, at=acme)


def test_a_held_call_may_be_cancelled_by_its_agent(acme: Acme) -> None:
    call = Story(acme).ask()
    calls.cancel(workspace_id=acme.workspace.id, agent_id=acme.ada.id, call_id=call.id)
    assert fresh(call).state == "cancelled"
    assert Interrupt.objects.get(call=call).ended_as == "withdrawn"
    with pytest.raises(NotHeld):
        release(call, at=acme)


# What a person answers


def test_a_person_may_say_no(acme: Acme) -> None:
    call = release(Story(acme).ask(), "reject", at=acme)
    assert (call.state, call.reason, call.effect) == ("rejected", "rejected_person", "not_begun")


def test_the_same_answer_twice_is_one_and_another_is_refused(acme: Acme) -> None:
    call = Story(acme).ask()
    first = release(call, at=acme)
    assert release(call, at=acme).seq == first.seq
    with pytest.raises(InterruptAnswered):
        release(call, "reject", at=acme)


def test_an_answer_needs_grounds_and_its_own_workspace(acme: Acme, globex: Globex) -> None:
    call = Story(acme).ask()
    with pytest.raises(NotFound):
        release(call, at=globex)
    with pytest.raises(Invalid):
        approvals.answer_hold(call_id=call.id, answer="approve", by=an_approver(acme), grounds=" ")


def test_a_repeat_of_a_call_under_way_cannot_be_let_go(acme: Acme) -> None:
    story = Story(acme, "running")
    again = answer_to(a_submit(acme, story.mail_tool, **story.place))
    with pytest.raises(NotHeld):
        release(fresh(again.call_id), at=acme)


def test_a_repeat_that_a_person_lets_run_is_an_intent_of_its_own(acme: Acme) -> None:
    story = Story(acme)
    again = fresh(answer_to(a_submit(acme, story.mail_tool, **story.place)).call_id)
    assert again.twin_of_id == story.mail.id
    call = release(again, at=acme)
    assert (call.state, call.twin_of_id) == ("scheduled", None)


def test_a_repeat_of_a_side_effect_is_let_run_by_typing_after_a_fresh_login(acme: Acme) -> None:
    story = Story(acme)
    again = fresh(answer_to(a_submit(acme, story.mail_tool, **story.place)).call_id)
    with pytest.raises(ConfirmationRequired, match=f"'{again.tool} 1'"):
        release(again, at=acme, confirm="yes")
    with pytest.raises(LoginStale):
        approvals.answer_hold(
            call_id=again.id, answer="approve", grounds="Twice is fine.",
            by=an_approver(acme, login_age_s=3600.0), confirm=f"{again.tool} 1",
        )  # fmt: skip
    assert fresh(again).state == "paused"
    assert release(again, at=acme).state == "scheduled"


def test_a_no_to_a_repeat_takes_no_typing(acme: Acme) -> None:
    story = Story(acme)
    again = fresh(answer_to(a_submit(acme, story.mail_tool, **story.place)).call_id)
    assert release(again, "reject", at=acme, confirm="").state == "rejected"


def test_what_does_no_effect_a_second_time_takes_no_typing(acme: Acme) -> None:
    keyed = Story(acme, recovery_class="idempotent_write", retry={"attempts": 1})
    again = fresh(answer_to(a_submit(acme, keyed.mail_tool, **keyed.place)).call_id)
    for call in (Story(acme).ask(), again):
        assert release(call, at=acme, confirm="").state == "scheduled"


# Calls that were scheduled before the doubt arose


def scheduled_before(acme: Acme) -> tuple[ToolCall, ToolCall]:
    """A mail that is interrupted while another call of its turn waits for a worker."""
    session = builders.a_session(acme)
    place = {"session_id": session.id, "turn_id": builders.a_turn(session).id}
    mail = builders.a_call(acme, "running", crossed=True, **place)
    later = builders.a_call(acme, **place)
    builders.lost(mail)
    return mail, later


def test_the_claim_passes_a_held_call_by_and_takes_it_afterwards(acme: Acme) -> None:
    mail, later = scheduled_before(acme)
    assert claim_all() == set()
    assert not claims.are_due("effects")
    with pytest.raises(builders.LedgerError):
        builders.settle(mail)
    builders.fire()
    assert claim_all() == {later.id}


def test_what_was_recorded_before_the_unresolved_call_is_not_held(acme: Acme) -> None:
    session = builders.a_session(acme)
    place = {"session_id": session.id, "turn_id": builders.a_turn(session).id}
    early = builders.a_call(acme, **place)
    builders.a_call(acme, "interrupted", **place)
    assert claim_all() == {early.id}


def test_schedule_to_start_stands_still_while_a_hold_is_in_force(acme: Acme) -> None:
    mail, later = scheduled_before(acme)
    assert watchdog.stand_still() == 1
    builders.past(later, Deadline.SCHEDULE_TO_START)
    builders.fire()
    assert fresh(later).state == "scheduled"
    hour_ago(later)
    with pytest.raises(builders.LedgerError):
        builders.settle(mail)
    builders.fire()
    watchdog.stand_still()
    held = fresh(later)
    assert held.held_at is None
    assert held.published_at is not None
    assert held.schedule_to_start_at is not None
    assert held.schedule_to_start_at - held.published_at > timedelta(minutes=59)
    assert claim_all() == {later.id}


def hour_ago(call: ToolCall) -> None:
    """Let the call have been published and held for an hour."""
    with connection.cursor() as cursor:
        for name in ("published_at", "held_at"):
            cursor.execute(
                f"UPDATE ledger_toolcall SET {name} = {name} - interval '1 hour' WHERE id = %s",
                [call.id],
            )


def test_a_held_call_is_no_pressure_on_its_queue(acme: Acme) -> None:
    _, later = scheduled_before(acme)
    watchdog.stand_still()
    hour_ago(later)
    pressure.forget()
    pressure.refuse_if_full(acme.workspace.id, later.tool, later.policy.call_policy)
    assert fresh(later).state == "scheduled"


# The turn


def test_a_turn_is_not_answered_while_a_call_of_it_is_open(acme: Acme) -> None:
    story = Story(acme)
    with pytest.raises(TurnUnsettled, match="ambiguous"):
        sessions.close_turn(turn=story.turn, closed_as="answered")
    assert sessions.close_turn(turn=story.turn, closed_as="interrupted").closed_at is not None


def test_a_turn_is_blocked_by_its_unresolved_side_effect_alone(acme: Acme) -> None:
    story = Story(acme, "running")
    assert holds.blocker_in(story.turn.id) is None
    builders.report(story.mail, Cause.HANG, Meaning.UNKNOWN)
    assert holds.blocker_in(story.turn.id) is None
    builders.a_call(acme, "interrupted", **story.place)
    assert holds.blocker_in(story.turn.id) is not None


# Races


@pytest.mark.django_db(transaction=True)
def test_a_submit_that_races_with_the_end_of_the_doubt_is_stuck_in_neither_order(
    acme: Acme,
) -> None:
    story = Story(acme, "interrupted")
    with pytest.raises(builders.LedgerError):
        builders.settle(story.mail)
    tool = builders.a_tool(acme)

    def ask() -> Any:
        return answer_to(a_submit(acme, tool, **story.place))

    def end() -> Any:
        watchdog.fire_due()
        return watchdog.end_holds()

    assert [each for each in at_once([ask, end]) if isinstance(each, Exception)] == []
    assert fresh(story.mail).state == "succeeded"
    watchdog.end_holds()
    assert ToolCall.objects.get(tool=tool.name).state == "scheduled"


@pytest.mark.django_db(transaction=True)
def test_two_watchdogs_end_a_hold_once(acme: Acme) -> None:
    story = Story(acme, "interrupted")
    call = story.ask()
    with pytest.raises(builders.LedgerError):
        builders.settle(story.mail)
    watchdog.fire_due()
    ended = at_once([lambda: watchdog.end_holds()] * 4)
    assert sum(each for each in ended if isinstance(each, int)) == 1
    assert [event.kind for event in events_of(call.id)].count("interrupt_answered") == 1


@transaction.atomic
def end_and_die(call: ToolCall) -> None:
    holds.end(ToolCall.objects.locked(call.id))
    raise SystemExit


@pytest.mark.django_db(transaction=True)
def test_a_crash_before_the_end_of_a_hold_is_made_up_by_the_next_sweep(acme: Acme) -> None:
    story = Story(acme, "interrupted")
    call = story.ask()
    with pytest.raises(builders.LedgerError):
        builders.settle(story.mail)
    watchdog.fire_due()
    with pytest.raises(SystemExit):
        end_and_die(call)
    assert fresh(call).state == "paused"
    watchdog.sweep()
    assert fresh(call).state == "scheduled"
