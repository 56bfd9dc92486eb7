"""What a row of the drill is: what is broken and expected before, what was seen after."""

import json
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from drills.agent import Agent
from drills.stack import Stack
from drills.waits import until

LIMIT_S = 45.0


class NotAsExpected(AssertionError):
    """The call came to something else; the sentence says to what."""


@dataclass(slots=True)
class Played:
    """A test under way: the stack, an agent, and the call as soon as there is one."""

    stack: Stack
    agent: Agent = field(init=False)
    call: str = ""

    def __post_init__(self) -> None:
        self.agent = self.stack.agent()

    def submit(self, tool: str, arguments: dict[str, Any], **more: Any) -> str:
        """Record the call that this test is about."""
        self.call = self.agent.submit(tool, arguments, **more)
        return self.call

    def hex(self) -> str:
        """The call's id as the points and the world know it."""
        return self.call.rpartition("_")[2]

    def until_phase(self, phase: str) -> None:
        """Wait until the tool says that it stands there."""
        until(lambda: self.agent.phase(self.call) == phase, f"the tool stands at {phase}", LIMIT_S)

    def until_state(self, *states: str) -> dict[str, Any]:
        """Wait until the call is in one of these states; a server that is away is awaited."""
        return until(  # type: ignore[no-any-return]
            lambda: self._if_in(states), f"{self.call} is {' or '.join(states)}", LIMIT_S
        )

    def _if_in(self, states: tuple[str, ...]) -> dict[str, Any] | None:
        try:
            call = self.agent.call(self.call)
        except OSError:
            return None
        if call["settled"] and call["state"] not in states:
            raise NotAsExpected(f"it settled as {call['state']}, effect {call['effect']}")
        return call if call["state"] in states else None

    def settled(self) -> dict[str, Any]:
        """Wait until the call is settled, as anything."""
        return until(self._if_settled, f"{self.call} settles", LIMIT_S)  # type: ignore[no-any-return]

    def _if_settled(self) -> dict[str, Any] | None:
        try:
            call = self.agent.call(self.call, wait_s=2)
        except OSError:
            return None
        return call if call["settled"] else None

    def kinds(self) -> list[str]:
        """The kinds of the call's events, in order."""
        return [event["kind"] for event in self.agent.events(self.call)]


def expect(holds: bool, otherwise: str) -> None:
    """Raise NotAsExpected with the sentence unless it holds."""
    if not holds:
        raise NotAsExpected(otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test. `play` returns what was seen; it raises where that is not what was expected."""

    number: str
    name: str
    killed: str
    where: str
    expected: str
    play: Callable[[Played], str]
    stage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The outcome of one test. `verdict` is the file with the call's three answers."""

    number: str
    name: str
    killed: str
    where: str
    expected: str
    seen: str
    passed: bool | None
    seconds: float
    call: str = ""
    verdict: str = ""
    answers: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The row as the report keeps it; `passed` is null for a test that is not there yet."""
        return asdict(self)


def played(test: Test, stack: Stack, folder: Path) -> Row:
    """Run one test and say what became of it; whatever goes wrong is what was seen."""
    playing, began = Played(stack), time.monotonic()
    try:
        seen, passed = test.play(playing), True
    except AssertionError as found:
        seen, passed = str(found), False
    except Exception as error:
        (folder / f"row-{test.number}.txt").write_text(traceback.format_exc())
        seen, passed = f"{type(error).__name__}: {error}", False
    verdict = _verdict(playing)
    file = folder / f"{playing.call or 'row-' + test.number}.json"
    return Row(
        number=test.number,
        name=test.name,
        killed=test.killed,
        where=test.where,
        expected=test.expected,
        seen=seen,
        passed=passed,
        seconds=round(time.monotonic() - began, 1),
        call=playing.call,
        verdict=str(_kept(file, verdict)) if verdict else "",
        answers={
            name: verdict[name]["answer"]
            for name in ("started", "effect", "model_saw")
            if name in verdict
        },
    )


def _verdict(playing: Played) -> dict[str, Any]:
    """The three answers with the events that prove them; {} where they cannot be had."""
    if not playing.call:
        return {}
    try:
        verdict = playing.agent.verdict(playing.call)
        return {**verdict, "events": playing.agent.events(playing.call)}
    except Exception:
        return {}  # the row says what went wrong; a missing verdict is seen by its absence


def _kept(file: Path, verdict: dict[str, Any]) -> Path:
    file.write_text(json.dumps(verdict, indent=1) + "\n")
    return file
