"""Calls in the middle of their work: what is asked for, and the fact by which the moment is known.

Each scene pauses its tool where a fault must find it, and says what the published matrix makes
of a fault there (reliability, section 4, base rule).
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from drills.agent import Agent
from tests.acceptance.stack import Stack
from tests.sandbox.world import until

PAUSE_S = 10  # long enough that all scenes of a test stand at their phase before one ends
HANG_S = 6


@dataclass(frozen=True, slots=True)
class Scene:
    """One call and its moment. `arguments` takes a word that is the call's own."""

    name: str
    tool: str
    arguments: Callable[[str], dict[str, Any]]
    phase: str = ""
    crossed: bool = False
    state: str = "running"


@dataclass(frozen=True, slots=True)
class Playing:
    """A scene that was begun."""

    scene: Scene
    word: str
    id: str
    agent: Agent = field(repr=False)

    @property
    def marker(self) -> str:
        return "clearhouse-" + self.id.rpartition("_")[2]

    def is_in_its_middle(self) -> bool:
        if self.scene.phase:
            return self.agent.phase(self.id) == self.scene.phase
        call = self.agent.call(self.id)
        has_crossed = call["boundary_crossed"] or not self.scene.crossed
        return bool(call["state"] == self.scene.state and has_crossed)

    def settled(self, limit_s: float = 30) -> dict[str, Any]:
        """Return the call once it is settled."""
        return until(lambda: self._if_settled(), f"{self.scene.name} settles", limit_s)  # type: ignore[no-any-return]

    def _if_settled(self) -> dict[str, Any] | None:
        with contextlib.suppress(OSError):  # the server, or its ledger, may be away just now
            call = self.agent.call(self.id, wait_s=5)
            return call if call["settled"] else None
        return None

    def at(self, *kinds: str, fence: int = 0) -> float | None:
        """When the first event of these kinds came, of this fence or a later one; else None."""
        for event in self.agent.events(self.id):
            if event["kind"] in kinds and (event["fence"] or 0) >= fence:
                return datetime.fromisoformat(event["at"]).timestamp()
        return None

    def kinds(self) -> list[str]:
        """The kinds of its events, in order."""
        return [event["kind"] for event in self.agent.events(self.id)]


def _mail(**pauses: float) -> Callable[[str], dict[str, Any]]:
    return lambda word: {"to": "ada@example.com", "subject": word, "body": "Hello.", **pauses}


def _text(**pauses: float) -> Callable[[str], dict[str, Any]]:
    return lambda word: {"path": f"{word}.txt", "text": word, **pauses}


LOOKUP = Scene(
    "a read under way",
    "sandbox.lookup",
    lambda word: {"name": "opening-hours", "slow_s": PAUSE_S},
    phase="before_reading",
)
BEFORE_RENAME = Scene(
    "a write before its file appears",
    "sandbox.write_artifact",
    _text(pause_before_s=PAUSE_S),
    phase="before_rename",
)
AFTER_RENAME = Scene(
    "a write whose file is there",
    "sandbox.write_artifact",
    _text(pause_after_s=PAUSE_S),
    phase="after_rename",
)
BEFORE_CROSS = Scene(
    "a mail before its boundary",
    "sandbox.send_mail",
    _mail(pause_before_cross_s=PAUSE_S),
    phase="before_cross",
)
AFTER_CROSS = Scene(
    "a mail between boundary and effect",
    "sandbox.send_mail",
    _mail(pause_after_cross_s=PAUSE_S),
    phase="after_cross",
)
AFTER_EFFECT = Scene(
    "a mail that was sent",
    "sandbox.send_mail",
    _mail(pause_after_effect_s=PAUSE_S),
    phase="after_effect",
)
BEFORE_HANDLE = Scene(
    "a render whose handle is not stored",
    "sandbox.render",
    lambda word: {"frames": 4, "seconds": 2, "pause_before_handle_s": PAUSE_S},
    phase="before_handle",
)
PARKED = Scene(
    "a render that is parked",
    "sandbox.render",
    lambda word: {"frames": 16, "seconds": 8},
    state="parked",
)
BEGINNING = Scene(
    "a sign-in that waits for its server",
    "sandbox.device_login",
    lambda word: {"hang_s": HANG_S, "expires_in_s": 3, "interval_s": 1},
    crossed=True,
)
LOGIN = Scene(
    "a sign-in that nobody completes",
    "sandbox.device_login",
    lambda word: {"expires_in_s": 10, "interval_s": 1},
    state="parked",
)

EFFECTS = (
    BEFORE_RENAME, AFTER_RENAME, BEFORE_CROSS, AFTER_CROSS, AFTER_EFFECT, BEFORE_HANDLE, BEGINNING,
)  # fmt: skip
ALL = (PARKED, LOGIN, LOOKUP, *EFFECTS)

Play = dict[Scene, Playing]


def begin(agent: Agent, scenes: Iterable[Scene] = ALL, **place: str) -> Play:
    """Submit the calls, in a `session` and `turn` if named; return when each is in its middle."""
    words = {scene: f"w{uuid4().hex[:12]}" for scene in scenes}
    wanted = [
        {"tool": each.tool, "arguments": each.arguments(words[each]), **place} for each in words
    ]
    items = agent.post("/api/v1/calls", {"calls": wanted})["items"]
    play = {
        scene: Playing(scene, words[scene], item["id"], agent)
        for scene, item in zip(words, items, strict=True)
    }
    for playing in play.values():
        until(playing.is_in_its_middle, f"{playing.scene.name} is in its middle")
    return play


def world_is_right(stack: Stack, play: Play) -> None:
    """Whatever happened: one mail a call, one whole artifact, one render."""
    for scene, playing in play.items():
        match scene.tool:
            case "sandbox.send_mail":
                assert stack.mails(playing.word) == 1, scene.name
            case "sandbox.write_artifact":
                assert stack.artifacts(f"{playing.word}.txt") == [playing.word.encode()]
            case "sandbox.render":
                assert stack.renders(playing.marker) == 1, scene.name
