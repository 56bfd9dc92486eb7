"""One order of locks: session, turn, call, attempt, incident, then appends (reliability, 8.5).

Two verbs on one call: the first stops right after its first lock, the second starts and is seen
waiting for it, or passing by where it skips what is locked; then the first goes on. Nobody is
ever chosen as the victim of a deadlock, the first gets what it asked for, and the second its
documented answer. A race that did not take place fails the test.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from ledger import attempts, settlements, submits
from ledger.claims import Claim
from ledger.errors import AlreadySettled, CancelRequested, FenceLost, LedgerError
from ledger.models import Tool, ToolCall
from ledger.vocabulary import Cause, Deadline, Meaning
from ledger.workers import Holder
from recovery import watchdog
from tests import builders, waits
from tests.cast import Acme
from tests.lines import LIMIT_S, Fate, Line, used
from tests.properties import verbs
from tests.properties.verbs import Scene

pytestmark = pytest.mark.django_db(transaction=True)

LOCKS = re.compile(r"FOR (NO KEY )?UPDATE|FOR SHARE|^(WITH \w+ AS \()?UPDATE|^INSERT", re.M)


@dataclass(frozen=True)
class Actor:
    """A verb; what it may be told when it comes second; how it meets a lock.

    It `waits` for the first one's lock, or skips what is locked, or only reads; who `locks`
    nothing is never the first.
    """

    act: Callable[[Scene], Any]
    told: tuple[type[LedgerError], ...] = ()
    waits: bool = True
    locks: bool = True


SWEEP = Actor(lambda scene: builders.fire(), waits=False)

ON_A_LIVE_ATTEMPT: dict[str, Actor] = {
    "cross": Actor(verbs.cross, (FenceLost, CancelRequested)),
    "heartbeat": Actor(verbs.heartbeat, (FenceLost,)),
    "renew": Actor(verbs.renew),
    "store handle": Actor(verbs.store_handle, (FenceLost,)),
    "park": Actor(verbs.park, (FenceLost,)),
    "settle": Actor(verbs.settle, (FenceLost,)),
    "report": Actor(verbs.ended(Cause.CONNECTION_LOST, Meaning.UNKNOWN), (FenceLost,)),
    "cancel": Actor(verbs.cancel, (AlreadySettled,)),
    "file late": Actor(verbs.late_result),
    "grant a lease": Actor(lambda scene: watchdog.grant_one_lease(), waits=False),
    "sweep": SWEEP,
}
"""On a crossed call whose start-to-close has passed, so that a sweep takes its fence."""

ON_A_SCHEDULED_CALL: dict[str, Actor] = {
    "claim": Actor(verbs.claim(), waits=False),
    "cancel": Actor(verbs.cancel, (AlreadySettled,)),
    "sweep": SWEEP,
    "ring again": Actor(lambda scene: watchdog.ring_again(), waits=False),
    "submit": Actor(verbs.record, waits=False, locks=False),
}
"""On a call that is due to be rung again, and whose schedule-to-close has passed."""

ON_AN_INTERRUPTED_CALL: dict[str, Actor] = {
    "claim probe": Actor(verbs.claim("control"), waits=False),
    "file late": Actor(verbs.late_result),
    "cancel": Actor(verbs.cancel, (AlreadySettled,)),
    "sweep": SWEEP,
    "prove dead": Actor(lambda scene: watchdog.prove_dead(), waits=False),
}
"""On a call with a due probe and an unproven death, whose recovery window has passed."""


def _pairs(actors: dict[str, Actor]) -> list[Any]:
    return [
        pytest.param(actors[first], actors[second], id=f"{first}, then {second}")
        for first in actors
        for second in actors
        if actors[first].locks
    ]


# The race


@pytest.fixture
def lines(acme: Acme, tmp_path: Path) -> Iterator[tuple[Line, Line]]:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    with Line(tmp_path / "1") as first, Line(tmp_path / "2") as second:
        yield first, second
        assert "40P01" not in first.refusals + second.refusals, "somebody was a deadlock's victim"


def _run(line: Line, act: Callable[[], Any], fate: Fate | None = None) -> Any:
    """Run in this thread through a line; answers and refusals are both answers."""
    client = line.connect()
    line.fate = fate
    try:
        with used(client):
            return act()
    except LedgerError as refusal:
        return refusal
    finally:
        client.close()


def _takes_a_lock(number: int, text: str) -> bool:
    """The first lock; who claims a probe asks for due polls before, and finds none to lock."""
    return LOCKS.search(text) is not None and "c.state = 'parked'" not in text


def race(
    lines: tuple[Line, Line],
    first: Callable[[], Any],
    second: Callable[[], Any],
    *,
    at: Callable[[int, str], bool] = _takes_a_lock,
    is_blocked: bool = True,
) -> tuple[Any, Any]:
    """Stop the first after its first lock, and let the second come; both answers.

    `is_blocked` says whether the second must be seen waiting for the first, or pass it by.
    """
    stopped = Fate(at, answered=True, cuts=False)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(_run, lines[0], first, stopped)
        try:
            assert stopped.reached.wait(LIMIT_S), "the first took no lock"
            two = pool.submit(_run, lines[1], second)
            if is_blocked:
                waits.until(lambda: lines[1].pid, what="the second to come")
                waits.until_blocked(lines[1].pid, by=lines[0].pid)
            else:
                two.result(timeout=LIMIT_S)
        finally:
            stopped.released.set()
        return one.result(timeout=LIMIT_S), two.result(timeout=LIMIT_S)


def _meet(lines: tuple[Line, Line], scene: Scene, first: Actor, second: Actor) -> None:
    one, two = race(
        lines, lambda: first.act(scene), lambda: second.act(scene), is_blocked=second.waits
    )
    assert not isinstance(one, Exception), one
    assert not isinstance(two, Exception) or isinstance(two, second.told), two


def _scene(acme: Acme, worker: Holder, call: ToolCall) -> Scene:
    tool = Tool.objects.get(name=call.tool)
    submit = builders.a_submit(acme, tool, idempotency_key="k1")
    return Scene(acme, call.id, worker, submit, builders._claims.get(call.id))


# Pairs of verbs on one call


@pytest.mark.parametrize(("first", "second"), _pairs(ON_A_LIVE_ATTEMPT))
def test_two_verbs_on_a_running_call_take_turns(
    acme: Acme, worker: Holder, lines: tuple[Line, Line], first: Actor, second: Actor
) -> None:
    call = builders.a_call(acme, in_state="running", crossed=True)
    builders.past(call, Deadline.START_TO_CLOSE)
    _meet(lines, _scene(acme, worker, call), first, second)


@pytest.mark.parametrize(("first", "second"), _pairs(ON_A_SCHEDULED_CALL))
def test_two_verbs_on_a_scheduled_call_take_turns(
    acme: Acme, worker: Holder, lines: tuple[Line, Line], first: Actor, second: Actor
) -> None:
    call = builders.a_call(acme, in_state="scheduled", idempotency_key="k1")
    builders.past(call, Deadline.SCHEDULE_TO_CLOSE)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_toolcall SET ring_at = clock_timestamp()")
    _meet(lines, _scene(acme, worker, call), first, second)


@pytest.mark.parametrize(("first", "second"), _pairs(ON_AN_INTERRUPTED_CALL))
def test_two_verbs_on_an_interrupted_call_take_turns(
    acme: Acme, worker: Holder, lines: tuple[Line, Line], first: Actor, second: Actor
) -> None:
    call = builders.a_call(acme, in_state="interrupted", policy={"probe": verbs.PROBE})
    builders.past(call, Deadline.NEXT_STEP)
    builders.fire()
    builders.past(call, Deadline.NEXT_STEP, Deadline.RECOVERY_WINDOW)
    builders.end_lease(call, seconds_ago=3600)
    _meet(lines, _scene(acme, worker, call), first, second)


# Batches over two calls, in opposite order


def _two_claims(acme: Acme) -> list[Claim]:
    some = [builders.a_call(acme, in_state="running", crossed=True) for _ in range(2)]
    return [builders.claim_of(call) for call in some]


def _settle(claims: list[Claim]) -> list[None | Exception]:
    return settlements.settle([builders.settlement(each) for each in claims])


def test_two_batches_of_results_in_opposite_order_take_turns(
    acme: Acme, lines: tuple[Line, Line]
) -> None:
    claims = _two_claims(acme)
    answers = race(lines, lambda: _settle(claims), lambda: _settle(claims[::-1]))
    assert answers == ([None, None], [None, None])


def test_two_batches_of_late_results_in_opposite_order_take_turns(
    acme: Acme, lines: tuple[Line, Line]
) -> None:
    claims = _two_claims(acme)
    for each in claims:
        builders.lost(builders.fresh(each.call_id))
    one, two = race(
        lines, lambda: _settle(claims), lambda: _settle(claims[::-1]), at=_locks_a_row()
    )
    assert all(isinstance(each, FenceLost) for each in (*one, *two))


def _locks_a_row() -> Callable[[int, str], bool]:
    """The first statement that locks a row of a call by itself, or all of them by their ids."""
    return lambda number, text: "FOR UPDATE" in text and "JOIN" not in text


def test_renewals_and_results_in_opposite_order_take_turns(
    acme: Acme, lines: tuple[Line, Line]
) -> None:
    claims = _two_claims(acme)
    ids = [each.attempt_id for each in claims]
    one, two = race(lines, lambda: _settle(claims), lambda: attempts.renew(attempt_ids=ids[::-1]))
    assert (one, two) == ([None, None], set())


def test_two_batches_of_equal_submits_in_opposite_order_record_each_once(
    acme: Acme, lines: tuple[Line, Line]
) -> None:
    tool, session = builders.a_tool(acme), builders.a_session(acme)
    builders.answer_to(builders.a_submit(acme, tool))
    places: list[dict[str, Any]] = [{}, {"session_id": session.id}]

    def batch(*order: int) -> list[Any]:
        return submits.record(
            [builders.a_submit(acme, tool, idempotency_key=f"k{n}", **places[n]) for n in order]
        )

    one, two = race(
        lines, lambda: batch(0, 1), lambda: batch(1, 0),
        at=lambda number, text: text.startswith("INSERT INTO ledger_toolcall"),
    )  # fmt: skip
    assert [each.replayed for each in (*one, *two)] == [False, False, True, True]
    assert {each.call_id for each in one} == {each.call_id for each in two}
