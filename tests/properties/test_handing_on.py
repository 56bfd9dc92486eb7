"""Compactions and hand-offs, cut at every statement and raced: either side is whole, always.

The client dies before a statement, or after the server did its COMMIT and before the answer came;
then it asks again. Whatever befell, each open call has one owner, and it is named on one side.
"""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, InterfaceError, connection, transaction

from ledger import acceptances, handoffs, transactions, unresolved
from ledger.errors import FenceLost, HandOffEnded, LedgerError
from ledger.journal import events_of
from ledger.models import Compaction, HandOff, Session, ToolCall, Turn
from tests import builders, waits
from tests.cast import Acme
from tests.ledger.test_compactions import a_call, a_history, commit, prepare
from tests.ledger.test_handoffs import bens, offered, receiver
from tests.lines import Died, Line, mortal, until_gone, used
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)

AWAY = (DatabaseError, InterfaceError)


@pytest.fixture
def line(acme: Acme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    monkeypatch.setattr(transactions, "time", SimpleNamespace(sleep=lambda seconds: None))
    with Line(tmp_path) as opened:
        yield opened


@dataclass
class Scene:
    """Two sessions and three open calls of the first: scheduled, crossed, held by a question."""

    acme: Acme
    sender: Session = field(init=False)
    turn: Turn = field(init=False)
    mine: Session = field(init=False)
    calls: list[ToolCall] = field(init=False)
    token: str = ""
    hand_off: HandOff | None = None

    def __post_init__(self) -> None:
        self.sender, self.turn = a_history(self.acme)
        self.mine = bens(self.acme)
        scheduled = a_call(self.acme, self.turn, "scheduled", 0)
        crossed = a_call(self.acme, self.turn, "running", 1, crossed=True)
        again = builders.a_submit(
            self.acme, crossed.tool, arguments={"n": 1}, session_id=self.sender.id,
            turn_id=self.turn.id, tool_call_id="toolu_again", position=2,
        )  # fmt: skip
        held = builders.fresh(builders.answer_to(again).call_id)
        self.calls = [scheduled, crossed, held]

    def story(self) -> dict[str, Any]:
        """What stands of it, without ids: who owns what, and what is said to whom."""
        ids_ = [call.id for call in self.calls]
        both = (self.sender, self.mine)
        rows = {row.id: row for row in Session.objects.filter(id__in=[each.id for each in both])}
        return {
            "owners": [[ids_.index(c.id) for c in unresolved.of_session(s.id)] for s in both],
            "epochs": [rows[each.id].epoch for each in both],
            "versions": [rows[each.id].version for each in both],
            "compactions": [
                [ids_.index(each) for each in row.unresolved]
                for row in Compaction.objects.filter(session=self.sender)
            ],
            "offers": list(
                HandOff.objects.filter(from_session=self.sender).values_list("ended_as")
            ),
            "events": [[event.kind for event in events_of(each)] for each in ids_],
            "turn": Turn.objects.get(id=self.turn.id).closed_as,
        }


def _prepared(scene: Scene) -> None:
    scene.token = prepare(scene.sender).token


def _offered(scene: Scene) -> None:
    scene.hand_off = offered(scene.sender)


def _the_offer(scene: Scene) -> Any:
    assert scene.hand_off is not None
    return scene.hand_off.id


def compact(scene: Scene) -> Any:
    return commit(scene.sender, scene.token)[0].number


def offer(scene: Scene) -> Any:
    return offered(scene.sender, key="k").ended_as


def accept(scene: Scene) -> Any:
    row, _ = acceptances.accept(hand_off_id=_the_offer(scene), by=receiver(scene.mine))
    return len(row.calls)


def refuse(scene: Scene) -> Any:
    row, _ = handoffs.refuse(hand_off_id=_the_offer(scene), by=receiver(scene.mine))
    return row.ended_as


@dataclass(frozen=True)
class Verb:
    """A verb, and what stands before it."""

    act: Callable[[Scene], Any]
    prepare: Callable[[Scene], None] = lambda scene: None

    def __str__(self) -> str:
        return self.act.__name__


VERBS = (Verb(compact, _prepared), Verb(offer), Verb(accept, _offered), Verb(refuse, _offered))


@pytest.mark.parametrize("verb", VERBS, ids=str)
def test_a_break_at_any_statement_leaves_either_side_whole(
    acme: Acme, line: Line, verb: Verb, subtests: pytest.Subtests
) -> None:
    statements, before, after, answer = _rehearsed(acme, line, verb)
    last = len(statements)
    assert statements.count("COMMIT") == 1
    scene = _scene(acme, verb)
    for number in range(1, last + 1):
        with subtests.test(f"{verb}: death before statement {number}"):
            _dies(scene, line, verb, number, answered=False)
            assert scene.story() == before
    with subtests.test(f"{verb}: death after the commit, before its answer"):
        _dies(scene, line, verb, last, answered=True)
        assert scene.story() == after
    with subtests.test(f"{verb}: asked again"):
        assert verb.act(scene) == answer
        assert scene.story() == after


def _scene(acme: Acme, verb: Verb) -> Scene:
    scene = Scene(acme)
    verb.prepare(scene)
    return scene


def _rehearsed(
    acme: Acme, line: Line, verb: Verb
) -> tuple[list[str], dict[str, Any], dict[str, Any], Any]:
    """Statements, story before and after, and the answer, where nothing befalls the verb."""
    verb.act(_scene(acme, verb))  # what is read once and remembered is read here
    scene = _scene(acme, verb)
    before = scene.story()
    with used(line.connect()) as client:
        answer = verb.act(scene)
    statements = list(line.statements)
    client.close()
    return statements, before, scene.story(), answer


def _dies(scene: Scene, line: Line, verb: Verb, number: int, *, answered: bool) -> None:
    client = mortal(line.connect())
    pid = line.pid
    fate = line.cut(number, answered=answered)
    with used(client), pytest.raises((Died, *AWAY)):
        verb.act(scene)
    assert fate.reached.is_set()
    client.close()
    until_gone(pid)


# Races


def test_two_equal_commits_at_once_are_one_compaction(acme: Acme) -> None:
    scene = Scene(acme)
    _prepared(scene)
    answers = at_once([lambda: commit(scene.sender, scene.token) for _ in range(4)])
    rows = [each for each in answers if isinstance(each, tuple)]
    assert len(rows) == 4, answers
    assert ({row.id for row, _ in rows}, [new for _, new in rows].count(True)) == (
        {Compaction.objects.get().id},
        1,
    )


def test_two_sessions_that_accept_at_once_are_one_owner(acme: Acme) -> None:
    scene = Scene(acme)
    _offered(scene)
    mine = [scene.mine, bens(acme)]

    def taking(session: Session) -> Callable[[], Any]:
        return lambda: acceptances.accept(hand_off_id=_the_offer(scene), by=receiver(session))

    answers = at_once([taking(each) for each in mine])
    assert sorted(type(each) for each in answers if isinstance(each, Exception)) == [HandOffEnded]
    owned = [len(unresolved.of_session(each.id)) for each in mine]
    assert sorted(owned) == [0, 3]


def test_a_compaction_and_an_acceptance_at_once_are_one_after_the_other(acme: Acme) -> None:
    scene = Scene(acme)
    _prepared(scene)
    _offered(scene)
    answers = at_once([lambda: compact(scene), lambda: accept(scene)])
    refused = [each for each in answers if isinstance(each, Exception)]
    assert all(isinstance(each, LedgerError) for each in refused), refused
    assert answers[1] == 3
    told = list(Compaction.objects.values_list("unresolved", flat=True))
    assert told in ([], [[call.id for call in scene.calls]])


def test_a_result_waits_for_a_compaction_under_way_and_is_in_its_carry_over(acme: Acme) -> None:
    scene = Scene(acme)
    _prepared(scene)
    crossed = scene.calls[1]
    with transaction.atomic():
        commit(scene.sender, scene.token)
        pid: list[int] = []
        settling = _in_thread(lambda: _settle(crossed, pid))
        waits.until(lambda: pid, what="the settlement to begin")
        waits.until_blocked(pid[0], by=waits.backend_pid())
    settling()
    assert builders.fresh(crossed).state == "succeeded"
    assert crossed.id in Compaction.objects.get().unresolved


def _settle(call: ToolCall, pid: list[int]) -> None:
    pid.append(waits.backend_pid())
    builders.settle(call)


def _in_thread(act: Callable[[], None]) -> Callable[[], None]:
    """Begin in a thread with a connection of its own; call the answer to see it end."""

    def run() -> None:
        try:
            act()
        finally:
            connection.close()

    pool = ThreadPoolExecutor(1)
    running = pool.submit(run)

    def ended() -> None:
        running.result(timeout=20)
        pool.shutdown()

    return ended


def test_a_result_of_a_lost_fence_reaches_the_call_of_its_new_owner(acme: Acme) -> None:
    scene = Scene(acme)
    _offered(scene)
    crossed = scene.calls[1]
    accept(scene)
    builders.lost(crossed)
    with contextlib.suppress(FenceLost):
        builders.settle(crossed, {"sent": True})
    kinds = [event.kind for event in events_of(crossed.id)]
    assert kinds.index("handed_off") < kinds.index("late_result")
    owned = ToolCall.objects.filter(unresolved.owned_by(scene.mine.id))
    assert crossed.id in owned.values_list("id", flat=True)
