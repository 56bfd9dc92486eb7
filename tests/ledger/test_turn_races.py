"""A turn with two hands on it: a submit, a settlement, a crossing or a claim meets an interruption.

And whoever dies between two statements of a reply or an interruption leaves all of it or nothing.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ledger import attempts, claims, interruptions, settlements, submits, transactions
from ledger.errors import CancelRequested, TurnClosed
from ledger.interruptions import Fate, Interrupted, Wish
from ledger.models import Message, Session, ToolCall, Turn, TurnEvent
from ledger.submits import Recorded
from recovery import turns
from tests import builders
from tests.builders import a_submit, fresh
from tests.cast import Acme
from tests.clearing import forget
from tests.ledger.saying import a_call_of, place_of, reply
from tests.lines import Died, Line, mortal, until_gone, used
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def turn(acme: Acme) -> Turn:
    return builders.a_turn(builders.a_session(acme))


def a_call(acme: Acme, turn: Turn, in_state: str = "scheduled", **kinds: Any) -> ToolCall:
    return builders.a_call(acme, in_state, session_id=turn.session_id, turn_id=turn.id, **kinds)


def interrupting(turn: Turn) -> Callable[[], Interrupted]:
    place = place_of(turn)
    return lambda: interruptions.interrupt(place, Wish())


def as_now(turn: Turn) -> Turn:
    return Turn.objects.get(id=turn.id)


@pytest.mark.parametrize("turn_n", range(6))
def test_a_submit_against_an_interruption_is_cancelled_or_refused(
    turn_n: int, acme: Acme, turn: Turn
) -> None:
    submit = a_submit(acme, builders.a_tool(acme), session_id=turn.session_id, turn_id=turn.id)
    recorded, interrupted = at_once([lambda: submits.record([submit]), interrupting(turn)])
    assert isinstance(interrupted, Interrupted), interrupted
    assert isinstance(recorded, list), recorded
    answer = recorded[0]
    if isinstance(answer, Recorded):
        assert interrupted.calls[Fate.CANCELLED] == [answer.call_id]
        assert fresh(answer.call_id).state == "cancelled"
    else:
        assert isinstance(answer, TurnClosed)
        assert not ToolCall.objects.exists()
    assert as_now(turn).closed_as == "interrupted"


@pytest.mark.parametrize("turn_n", range(4))
def test_a_settlement_against_an_interruption_is_always_kept(
    turn_n: int, acme: Acme, turn: Turn
) -> None:
    call = a_call(acme, turn, "running", recovery_class="read_only")
    report = builders.settlement(builders.claim_of(call), {"rows": 3})
    settled, interrupted = at_once([lambda: settlements.settle([report]), interrupting(turn)])

    assert settled == [None]
    assert isinstance(interrupted, Interrupted), interrupted
    assert interrupted.calls[Fate.KEPT] + interrupted.calls[Fate.ASKED] == [call.id]
    turns.close_due(10)
    kept = TurnEvent.objects.filter(turn=turn, kind="result.preserved")
    assert (fresh(call).state, kept.count()) == ("succeeded", 1)
    assert as_now(turn).closed_as == "interrupted"


@pytest.mark.parametrize("turn_n", range(4))
def test_a_crossing_against_an_interruption_is_left_or_refused(
    turn_n: int, acme: Acme, turn: Turn
) -> None:
    call = a_call(acme, turn, "running")
    fence = builders.claim_of(call).fence
    crossed, interrupted = at_once(
        [lambda: attempts.cross(call_id=call.id, fence=fence), interrupting(turn)]
    )
    assert isinstance(interrupted, Interrupted), interrupted
    if isinstance(crossed, float):
        assert interrupted.calls[Fate.LEFT] == [call.id]
        assert fresh(call).effect == "possible"
    else:
        assert isinstance(crossed, CancelRequested), crossed
        assert interrupted.calls[Fate.ASKED] == [call.id]


def test_a_claim_against_an_interruption_runs_or_finds_nothing(acme: Acme, turn: Turn) -> None:
    call, worker = a_call(acme, turn), builders.a_worker()
    won, interrupted = at_once(
        [lambda: claims.claim(queue=call.queue, holder=worker, limit=1), interrupting(turn)]
    )
    assert isinstance(interrupted, Interrupted), interrupted
    assert not isinstance(won, Exception), won
    fate = Fate.ASKED if won else Fate.CANCELLED
    assert interrupted.calls[fate] == [call.id]


def test_many_interruptions_at_once_are_one(acme: Acme, turn: Turn) -> None:
    a_call(acme, turn, "running")
    answers = at_once([interrupting(turn)] * 4)
    assert [each.new for each in answers if isinstance(each, Interrupted)].count(True) == 1
    assert TurnEvent.objects.filter(turn=turn, kind="turn.interrupted").count() == 1


def test_two_watchdogs_close_a_turn_once(acme: Acme, turn: Turn) -> None:
    call = a_call(acme, turn, "running")
    interruptions.interrupt(place_of(turn), Wish(grace_s=0))
    answers = at_once([lambda: turns.close_due(10)] * 3)
    assert sorted(map(int, answers)) == [0, 0, 1]  # type: ignore[arg-type]
    assert TurnEvent.objects.filter(turn=turn, kind="turn.closed").count() == 1
    assert fresh(call).state == "cancelled"


# Whoever dies


@pytest.fixture
def line(acme: Acme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    monkeypatch.setattr(transactions, "time", SimpleNamespace(sleep=lambda seconds: None))
    with Line(tmp_path) as opened:
        yield opened


def statements_of(line: Line, act: Callable[[], Any]) -> list[str]:
    with used(line.connect()) as client:
        act()
    client.close()
    return list(line.statements)


def writes(statements: list[str]) -> list[tuple[int, str]]:
    """The statements before which a death could leave a half: those that write, and the commit."""
    found = [
        (n, text)
        for n, text in enumerate(statements, 1)
        if text.lstrip("( ").startswith(("INSERT", "UPDATE", "WITH", "COMMIT"))
    ]
    assert len(found) > 3, statements
    assert found[-1][1] == "COMMIT", statements
    return found


def dies_at(line: Line, n: int, act: Callable[[], Any]) -> None:
    client = mortal(line.connect())
    line.cut(n, answered=False)
    with pytest.raises(Died), used(client):
        act()
    until_gone(line.pid)


def test_a_reply_is_there_with_all_its_calls_or_not_at_all(
    acme: Acme, turn: Turn, line: Line
) -> None:
    tool = builders.a_tool(acme, "mail").name

    def act(step: int) -> Callable[[], Any]:
        parts = [a_call_of(tool, f"c{step}_{n}", {"path": f"{step}{n}"}) for n in range(2)]

        def run() -> Any:
            forget()  # what a process remembers would save it statements
            return reply(turn, *parts, model_step=step)

        return run

    act(0)()  # the tool's version is read once for ever
    statements = statements_of(line, act(1))
    version = Session.objects.get(id=turn.session_id).version
    for n, text in writes(statements):
        dies_at(line, n, act(2))
        assert (Message.objects.count(), ToolCall.objects.count()) == (2, 4), text
        assert Session.objects.get(id=turn.session_id).version == version
    act(2)()
    assert (Message.objects.count(), ToolCall.objects.count()) == (3, 6)


def test_an_interruption_is_made_whole_or_not_at_all(acme: Acme, turn: Turn, line: Line) -> None:
    first = builders.a_turn(builders.a_session(acme))
    for each in (first, turn):
        a_call(acme, each)
        a_call(acme, each, "running")
    statements = statements_of(line, interrupting(first))
    call = ToolCall.objects.get(turn=turn, position=0, state="scheduled")

    for n, text in writes(statements):
        dies_at(line, n, interrupting(turn))
        assert (fresh(call).state, as_now(turn).interrupted_at) == ("scheduled", None), text
        assert not TurnEvent.objects.filter(turn=turn).exists(), text
    interrupting(turn)()
    assert fresh(call).state == "cancelled"
