"""Clocks: a jump of one against the other pauses one lease, and is told."""

from collections.abc import Callable

import pytest

from ledger.journal import events_of
from ledger.models import ToolCall
from recovery import watchdog
from recovery.clocks import Clocks, database_s
from tests.builders import a_call, fresh, past
from tests.cast import Acme

committing = pytest.mark.django_db(transaction=True)


class Offset:
    """A clock beside the real one: the test moves it, and it goes on from there."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self.clock_s, self.by_s = clock_s, 0.0

    def __call__(self) -> float:
        return self.clock_s() + self.by_s


def watched(clocks: Clocks, *between: Callable[[], None]) -> None:
    """Sweep once, and once more after each of these."""
    acts = iter(between)

    def stop(seconds: float) -> bool:
        act = next(acts, None)
        if act is not None:
            act()
        return act is None

    watchdog.watch(period_s=0.05, stop=stop, clocks=clocks)


@pytest.fixture
def silent(acme: Acme) -> ToolCall:
    return a_call(acme, in_state="running")


def kinds_of(call: ToolCall) -> list[str]:
    return [event.kind for event in events_of(call.id)]


@committing
@pytest.mark.parametrize("jump_s", [60.0, -60.0])
def test_a_jump_of_the_databases_clock_pauses_one_lease(silent: ToolCall, jump_s: float) -> None:
    clock = Offset(database_s)

    def jump() -> None:
        past(silent, "heartbeat")
        clock.by_s = jump_s

    watched(Clocks(database_s=clock), jump)
    assert fresh(silent).state == "running"
    event = events_of(silent.id)[-1]
    assert event.kind == "clock_jump"
    assert event.facts_json["jumped_s"] == pytest.approx(jump_s, abs=1)


@committing
def test_a_laptop_that_slept_is_a_jump_too(silent: ToolCall) -> None:
    """Its monotonic clock stood still while the database's went on."""
    import time

    monotonic = Offset(time.monotonic)

    def sleep() -> None:
        past(silent, "heartbeat")
        monotonic.by_s -= 3600

    watched(Clocks(monotonic_s=monotonic), sleep)
    assert (fresh(silent).state, kinds_of(silent)[-1]) == ("running", "clock_jump")


@committing
def test_a_sweep_that_came_late_grants_one_lease_without_a_jump(silent: ToolCall) -> None:
    import time

    both_s = Offset(lambda: 0.0)

    def late() -> None:
        past(silent, "heartbeat")
        both_s.by_s += 60

    clocks = Clocks(lambda: time.monotonic() + both_s(), lambda: database_s() + both_s())
    watched(clocks, late)
    assert fresh(silent).state == "running"
    assert "clock_jump" not in kinds_of(silent)


@committing
def test_after_its_one_lease_a_silent_attempt_is_lost_all_the_same(silent: ToolCall) -> None:
    clock = Offset(database_s)

    def jump() -> None:
        past(silent, "heartbeat")
        clock.by_s = 60

    watched(Clocks(database_s=clock), jump, lambda: past(silent, "heartbeat") and None)
    assert fresh(silent).state != "running"
    assert kinds_of(silent).count("clock_jump") == 1


def test_a_small_difference_is_none(silent: ToolCall) -> None:
    clock = Offset(database_s)
    clocks = Clocks(database_s=clock)
    assert clocks.jumped_s() == 0.0
    clock.by_s = 4.0
    assert clocks.jumped_s() == 0.0
    clock.by_s = 12.0
    assert clocks.jumped_s() == pytest.approx(8.0, abs=0.5)


def test_a_jump_is_told_once(silent: ToolCall) -> None:
    clock = Offset(database_s)
    clocks = Clocks(database_s=clock)
    clocks.jumped_s()
    clock.by_s = 60
    assert [clocks.jumped_s() != 0.0, clocks.jumped_s()] == [True, 0.0]


def test_an_answer_that_took_long_is_no_jump(db: None) -> None:
    times = iter([0.0, 0.0, 100.0, 140.0])
    said = iter([1000.0, 1138.0])
    clocks = Clocks(lambda: next(times), lambda: next(said))
    assert [clocks.jumped_s(), clocks.jumped_s()] == [0.0, 0.0]


def test_only_running_attempts_are_told(acme: Acme, silent: ToolCall) -> None:
    waits = a_call(acme, in_state="scheduled")
    watchdog.grant_one_lease(60.0)
    assert kinds_of(waits)[-1] == "scheduled"
    assert kinds_of(silent)[-1] == "clock_jump"
