"""What each expiry means, cell by cell of the published table (semantics, section 3; R33).

A row says which timer ends and what is known of the effect; a cell says where the call stands
once the watchdog has done all it can do by itself.
"""

from collections.abc import Callable
from typing import Any

import pytest

from ledger.journal import events_of
from ledger.models import Handle, ToolCall
from ledger.vocabulary import Cause, Meaning
from recovery.models import Incident
from tests import builders
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme

READ, WRITE, SIDE, LONG, AUTH = (
    "read_only", "idempotent_write", "side_effect", "long_running", "provider_auth",
)  # fmt: skip
EVERY = (READ, WRITE, SIDE, LONG, AUTH)
Situation = Callable[[Acme, str, dict[str, Any]], ToolCall]


def _settle_down(call: ToolCall) -> ToolCall:
    """Let recovery take every step that is due now."""
    for _ in range(4):
        stands = fresh(call)
        if stands.next_step_at is None or stands.state != "interrupted":
            break
        if stands.reason != "probe_due":
            past(call, "next_step")
        fire()
        if stands.reason == "probe_due":
            break
    return fresh(call)


# Rows


def in_the_queue(acme: Acme, recovery_class: str, policy: dict[str, Any]) -> ToolCall:
    call = a_call(acme, "scheduled", recovery_class, policy=policy)
    past(call, "schedule_to_start")
    fire()
    return _settle_down(call)


def queued_again_after_the_boundary(
    acme: Acme, recovery_class: str, policy: dict[str, Any]
) -> ToolCall:
    call = a_call(acme, "running", recovery_class, policy=policy, crossed=True)
    builders.lost(call)
    _settle_down(call)
    past(call, "backoff")
    fire()
    assert (fresh(call).state, fresh(call).effect) == ("scheduled", "possible")
    past(call, "schedule_to_start")
    fire()
    return _settle_down(call)


def running_out(deadline: str, *, crossed: bool) -> Situation:
    def situation(acme: Acme, recovery_class: str, policy: dict[str, Any]) -> ToolCall:
        call = a_call(acme, "running", recovery_class, policy=policy, crossed=crossed)
        past(call, deadline)
        fire()
        return _settle_down(call)

    return situation


def handle_lost(acme: Acme, recovery_class: str, policy: dict[str, Any]) -> ToolCall:
    call = a_call(acme, "parked", recovery_class, policy=policy)
    builders.poll(call)
    builders.report(call, Cause.VANISHED, Meaning.UNKNOWN)
    assert Handle.objects.get(call=call).lost_at is not None
    return _settle_down(call)


def out_of_time(state: str) -> Situation:
    def situation(acme: Acme, recovery_class: str, policy: dict[str, Any]) -> ToolCall:
        call = a_call(acme, state, recovery_class, policy=policy)
        past(call, "schedule_to_close")
        fire()
        return _settle_down(call)

    return situation


def running_out_of_time(acme: Acme, recovery_class: str, policy: dict[str, Any]) -> ToolCall:
    call = a_call(acme, "running", recovery_class, policy=policy, crossed=True)
    past(call, "schedule_to_close")
    fire()
    return _settle_down(call)


def out_of_window(acme: Acme, recovery_class: str, policy: dict[str, Any]) -> ToolCall:
    call = a_call(acme, "interrupted", recovery_class, policy={**policy, "probe": {}})
    past(call, "next_step")
    fire()
    assert fresh(call).reason == "probe_due"
    past(call, "recovery_window")
    fire()
    return fresh(call)


ROWS: dict[str, tuple[Situation, dict[str, str]]] = {
    "schedule_to_start-no_effect": (in_the_queue, dict.fromkeys(EVERY, "expired")),
    "schedule_to_start-possible": (
        queued_again_after_the_boundary, {WRITE: "ambiguous", AUTH: "expired"}),
    "start_to_close-none": (
        running_out("start_to_close", crossed=False), {READ: "backing_off"}),
    "heartbeat-none": (running_out("heartbeat", crossed=False), {READ: "backing_off"}),
    "start_to_close-not_begun": (
        running_out("start_to_close", crossed=False),
        dict.fromkeys((WRITE, SIDE, LONG, AUTH), "backing_off")),
    "heartbeat-not_begun": (
        running_out("heartbeat", crossed=False),
        dict.fromkeys((WRITE, SIDE, LONG, AUTH), "backing_off")),
    "start_to_close-possible": (
        running_out("start_to_close", crossed=True),
        {WRITE: "backing_off", SIDE: "ambiguous", LONG: "ambiguous", AUTH: "backing_off"}),
    "heartbeat-possible": (
        running_out("heartbeat", crossed=True),
        {WRITE: "backing_off", SIDE: "ambiguous", LONG: "ambiguous", AUTH: "backing_off"}),
    "handle_lost": (
        handle_lost,
        {READ: "backing_off", WRITE: "backing_off", SIDE: "ambiguous", LONG: "ambiguous",
         AUTH: "expired"}),
    "schedule_to_close-queued": (out_of_time("scheduled"), dict.fromkeys(EVERY, "expired")),
    "schedule_to_close-backing_off": (
        out_of_time("backing_off"), dict.fromkeys(EVERY, "expired")),
    "schedule_to_close-running-possible": (
        running_out_of_time,
        {WRITE: "ambiguous", SIDE: "ambiguous", LONG: "ambiguous", AUTH: "expired"}),
    "schedule_to_close-parked": (
        out_of_time("parked"),
        {READ: "expired", WRITE: "ambiguous", SIDE: "ambiguous", LONG: "ambiguous",
         AUTH: "expired"}),
    "recovery_window-possible": (
        out_of_window,
        {WRITE: "ambiguous", SIDE: "ambiguous", LONG: "ambiguous", AUTH: "expired"}),
}  # fmt: skip
CELLS = [
    pytest.param(situation, recovery_class, state, id=f"{row}-{recovery_class}-{state}")
    for row, (situation, cells) in ROWS.items()
    for recovery_class, state in cells.items()
]


@pytest.mark.parametrize(("situation", "recovery_class", "state"), CELLS)
def test_an_expiry_means_what_its_cell_says(
    acme: Acme, situation: Situation, recovery_class: str, state: str
) -> None:
    call = situation(acme, recovery_class, {})
    assert call.state == state
    assert (call.state == "failed") is False
    assert Incident.objects.filter(call=call, closed_at=None).exists() is (state == "ambiguous")


PROBED = [(running_out("heartbeat", crossed=True), c) for c in (WRITE, SIDE, LONG)] + [
    (running_out_of_time, c) for c in (WRITE, SIDE, LONG)
]


@pytest.mark.parametrize(
    ("situation", "recovery_class"), PROBED,
    ids=[f"{'time_over' if s is running_out_of_time else 'lost'}-{c}" for s, c in PROBED],
)  # fmt: skip
def test_where_there_is_a_probe_the_outside_is_asked_first(
    acme: Acme, situation: Situation, recovery_class: str
) -> None:
    call = situation(acme, recovery_class, {"probe": {}})
    assert (call.state, call.reason) == ("interrupted", "probe_due")
    assert builders.claimed(call).kind == "probe"


@pytest.mark.parametrize("recovery_class", [WRITE, SIDE, LONG])
def test_one_last_probe_is_asked_once_the_time_is_over(acme: Acme, recovery_class: str) -> None:
    """Sweeps while the probe is awaited change nothing and write nothing."""
    call = running_out_of_time(acme, recovery_class, {"probe": {}})
    incident = Incident.objects.get(call=call)
    before = incident.steps.count()
    for _ in range(3):
        fire()
    assert incident.steps.count() == before


# Further sentences of the table


@pytest.mark.parametrize("recovery_class", EVERY)
def test_a_call_that_nobody_took_says_that_it_did_not_start(
    acme: Acme, recovery_class: str
) -> None:
    call = in_the_queue(acme, recovery_class, {})
    assert (call.reason, call.attempts_used) == ("schedule_to_start", 0)
    assert call.effect in ("none", "not_begun")


def test_a_policy_may_reschedule_what_nobody_took(acme: Acme) -> None:
    call = a_call(acme, policy={"schedule_to_start_reschedules": True})
    past(call, "schedule_to_start")
    fire()
    assert (fresh(call).state, fresh(call).attempts_used) == ("scheduled", 0)


@pytest.mark.parametrize("recovery_class", [SIDE, LONG])
def test_proven_not_begun_these_are_repeated_once(acme: Acme, recovery_class: str) -> None:
    call = a_call(acme, "running", recovery_class)
    builders.lost(call)
    past(call, "backoff")
    fire()
    builders.claimed(call)
    builders.lost(call)
    assert (fresh(call).state, fresh(call).effect) == ("expired", "not_begun")


@pytest.mark.parametrize("recovery_class", [WRITE, LONG, SIDE])
def test_time_over_after_the_boundary_is_never_a_failure(acme: Acme, recovery_class: str) -> None:
    call = running_out_of_time(acme, recovery_class, {})
    assert "failed" not in {event.kind for event in events_of(call.id)}


def test_the_fence_is_taken_before_anything_is_decided(acme: Acme) -> None:
    call = running_out("start_to_close", crossed=True)(acme, SIDE, {})
    kinds = [event.kind for event in events_of(call.id)]
    assert kinds.index("fence_lost") < kinds.index("interrupted")


def test_a_sign_in_whose_time_is_over_waits_for_no_operator(acme: Acme) -> None:
    call = running_out_of_time(acme, AUTH, {})
    assert (call.state, call.effect) == ("expired", "possible")
    assert not Incident.objects.filter(call=call, closed_at=None).exists()


@pytest.mark.parametrize("recovery_class", [SIDE, LONG])
def test_a_review_deadline_reminds_and_decides_nothing(acme: Acme, recovery_class: str) -> None:
    call = a_call(acme, "ambiguous", recovery_class)
    for times in (1, 2):
        past(call, "review")
        fire()
        assert fresh(call).state == "ambiguous"
        assert [e.kind for e in events_of(call.id)].count("reminded") == times
    assert fresh(call).review_at > call.review_at  # type: ignore[operator]
