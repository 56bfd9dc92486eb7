"""Whoever dies between any two statements of a verb leaves all of it or nothing, and an owner.

Each verb is cut at each of its statements on a real connection: the client dies before it; it
dies when the server has done its COMMIT; only the answer to that is lost, the client lives and
asks again. Then time passes, and a sound worker answers what is due: no call is lost,
none stays without an owner, and the ledger's invariants hold (reliability, 8.3).
"""

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, InterfaceError

from ledger import transactions
from ledger.models import Tool, ToolCall
from ledger.workers import Holder
from recovery.models import Incident
from tests import passing
from tests.cast import Acme
from tests.lines import Died, Line, mortal, until_gone, used
from tests.properties.stories import story_of
from tests.properties.verbs import VERBS, Scene, Verb, a_tool, scene

pytestmark = pytest.mark.django_db(transaction=True)

THOROUGH = [pytest.param(verb, id=str(verb)) for verb in VERBS]
POINTS = [
    pytest.param(verb, each, id=f"{verb}-{each}") for verb in VERBS for each in verb.classes[:-1]
]
AWAY = (DatabaseError, InterfaceError)


@pytest.fixture
def line(acme: Acme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    # The server is there: whoever lost only its line need not wait before it asks again.
    monkeypatch.setattr(transactions, "time", SimpleNamespace(sleep=lambda seconds: None))
    with Line(tmp_path) as opened:
        yield opened


@dataclass
class Rehearsal:
    """What a verb does where nothing befalls it: its statements, its answer, the story before
    and after it."""

    statements: list[str]
    answer: Any
    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def commits(self) -> list[int]:
        return [n for n, text in enumerate(self.statements, 1) if text == "COMMIT"]

    def expected(self, done: int) -> list[dict[str, Any]]:
        """The stories that may stand where the server did the statements up to `done`."""
        if not self.commits:
            return [self.after] if done == len(self.statements) else [self.before]
        if done < self.commits[0]:
            return [self.before]
        return [self.after] if done >= self.commits[-1] else [self.before, self.after]


FRESH_S = 3.0
"""After this long a scene is made anew: a lease that is half over is another scene."""


@dataclass
class Stage:
    """One verb on one tool, again and again."""

    verb: Verb
    acme: Acme
    tool: Tool
    worker: Holder
    line: Line
    _kept: tuple[float, Scene] | None = None

    def scene(self) -> Scene:
        """A call where the verb may be used: the last one, if a break left it as it was."""
        if self._kept is not None and self._kept[0] > time.monotonic() - FRESH_S:
            return self._kept[1]
        self.end_kept()
        return scene(self.verb, self.acme, self.tool, self.worker)

    def keep(self, made: Scene) -> None:
        since = self._kept[0] if self._kept else time.monotonic()
        self._kept = (since, made)

    def end_kept(self) -> None:
        if self._kept is not None:
            self.end(self._kept[1])

    def end(self, made: Scene) -> None:
        """Time passes: the call is settled, or ambiguous with an incident and a review date."""
        self._kept = None
        passing.until_quiet(self.worker, [made.call_id])
        call = ToolCall.objects.filter(id=made.call_id).first()
        if call is None:
            assert self.verb.name == "submit"
        elif not call.is_settled:
            assert (call.state, call.effect) == ("ambiguous", "possible")
            assert call.review_at is not None
            assert Incident.objects.filter(call=call, closed_at=None).count() == 1
            assert call.recovery_class not in ("read_only", "provider_auth")

    def rehearse(self) -> Rehearsal:
        made = self.scene()
        before = story_of(made.call_id)
        with used(self.line.connect()) as client:
            answer = self.verb.act(made)
        statements = list(self.line.statements)
        client.close()
        after = story_of(made.call_id)
        self.end(made)
        return Rehearsal(statements, told(answer, made), before, after)


def told(answer: Any, made: Scene) -> str:
    """An answer with the call's own id named, so that two calls' answers can be compared."""
    return str(answer).replace(repr(made.call_id), "this call").replace(str(made.call_id), "this")


def named(number: int, text: str) -> str:
    """A statement as a point's name has it."""
    words = re.sub(r'"(ledger|recovery)_|[".].*', r"", text).split()
    return f"{number} {' '.join(words[:3])}"


def _stage(verb: Verb, recovery_class: str, acme: Acme, worker: Holder, line: Line) -> Stage:
    return Stage(verb, acme, a_tool(acme, recovery_class), worker, line)


@pytest.mark.parametrize("verb", THOROUGH)
def test_a_break_at_any_statement_leaves_all_or_nothing_and_an_owner(
    acme: Acme, worker: Holder, line: Line, verb: Verb, subtests: pytest.Subtests
) -> None:
    stage = _stage(verb, verb.classes[-1], acme, worker, line)
    stage.rehearse()  # what is read once and remembered is read here
    rehearsal = stage.rehearse()
    assert rehearsal.statements
    for number, text in enumerate(rehearsal.statements, 1):
        with subtests.test(f"{verb}: death before {named(number, text)}"):
            _dies(stage, rehearsal, number, answered=False)
    for number in rehearsal.commits or [len(rehearsal.statements)]:
        with subtests.test(f"{verb}: death after {number} COMMIT"):
            _dies(stage, rehearsal, number, answered=True)
        with subtests.test(f"{verb}: {number} COMMIT is never answered"):
            _asks_again(stage, rehearsal, number)
    stage.end_kept()


@pytest.mark.parametrize(("verb", "recovery_class"), POINTS)
def test_a_commit_that_nobody_heard_of_leaves_an_owner_in_every_class(
    acme: Acme, worker: Holder, line: Line, verb: Verb, recovery_class: str
) -> None:
    stage = _stage(verb, recovery_class, acme, worker, line)
    made = stage.scene()
    client = mortal(line.connect())
    pid = line.pid
    fate = line.cut("COMMIT", answered=True)
    with used(client), contextlib.suppress(Died, *AWAY):
        verb.act(made)
    assert fate.reached.is_set() == ("COMMIT" in line.statements)
    client.close()
    until_gone(pid)
    stage.end(made)


def _dies(stage: Stage, rehearsal: Rehearsal, number: int, *, answered: bool) -> None:
    made = stage.scene()
    client = mortal(stage.line.connect())
    pid = stage.line.pid
    fate = stage.line.cut(number, answered=answered)
    with used(client), pytest.raises((Died, *AWAY)):
        stage.verb.act(made)
    assert fate.reached.is_set()
    client.close()
    until_gone(pid)
    story = story_of(made.call_id)
    assert story in rehearsal.expected(number if answered else number - 1)
    if story == rehearsal.before:
        stage.keep(made)
    else:
        stage.end(made)


def _asks_again(stage: Stage, rehearsal: Rehearsal, number: int) -> None:
    """The client lives: what repeats itself answers as ever; else its caller repeats it."""
    made = stage.scene()
    client = stage.line.connect()
    pid = stage.line.pid
    fate = stage.line.cut(number, answered=True)
    with used(client):
        if stage.verb.repeats:
            assert told(stage.verb.act(made), made) == rehearsal.answer
        else:
            with contextlib.suppress(*AWAY):
                stage.verb.act(made)
            client.close()
            until_gone(pid)
            stage.verb.act(made)
    assert fate.reached.is_set()
    client.close()
    if stage.verb.converges:
        assert story_of(made.call_id) == rehearsal.after
    stage.end(made)
