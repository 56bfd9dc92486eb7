"""The base rule as these scenes show it: what becomes of a call whose attempt is lost.

Source: reliability, section 4 (base rule) and the five laws of recovery. As data, so that each
fault is judged by the same table.
"""

from dataclasses import dataclass

from tests.acceptance.scenes import (
    AFTER_CROSS,
    AFTER_EFFECT,
    AFTER_RENAME,
    BEFORE_CROSS,
    BEFORE_HANDLE,
    BEFORE_RENAME,
    BEGINNING,
    LOGIN,
    LOOKUP,
    PARKED,
    Play,
    Playing,
    Scene,
)

SWEEP_S = 1.0
NOTICED_S = 2.0
"""A dead worker's call is running again or flagged within this time (reliability, section 1)."""

RUNS_OR_FLAGGED = ("interrupted", "started")
ENDED = ("expired", "failed")  # by our bound or by the server's word, whichever comes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a call must come to, with how many attempts, by way of which events."""

    states: tuple[str, ...] = ("succeeded",)
    effects: tuple[str, ...] = ("happened",)
    attempts: int = 1
    by_way_of: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def is_of(self, playing: Playing) -> None:
        """Fail unless the call settles as this outcome says."""
        call = playing.settled(60)
        kinds = playing.kinds()
        story = f"{playing.scene.name}: {call['state']}, {call['effect']}, {kinds}"
        assert call["state"] in self.states, story
        assert call["effect"] in self.effects, story
        assert call["attempts_used"] == self.attempts, story
        assert set(self.by_way_of) <= set(kinds), story
        assert not set(self.never) & set(kinds), story


CLOSED = Outcome(states=ENDED, effects=("possible", "did_not_happen"))
WHEN_LOST: dict[Scene, Outcome] = {
    LOOKUP: Outcome(effects=("none",), attempts=2, never=("interrupted",)),
    BEFORE_RENAME: Outcome(attempts=2, by_way_of=("interrupted", "cleared_for_retry")),
    AFTER_RENAME: Outcome(by_way_of=("interrupted", "proved_done")),
    BEFORE_CROSS: Outcome(attempts=2, by_way_of=("attempt_failed",), never=("interrupted",)),
    AFTER_CROSS: Outcome(attempts=2, by_way_of=("interrupted", "cleared_for_retry")),
    AFTER_EFFECT: Outcome(by_way_of=("interrupted", "proved_done")),
    BEFORE_HANDLE: Outcome(by_way_of=("interrupted", "resumed")),
    PARKED: Outcome(by_way_of=("parked",), never=("interrupted",)),
    BEGINNING: Outcome(
        states=ENDED, effects=CLOSED.effects, attempts=2, by_way_of=("interrupted",)
    ),
    LOGIN: CLOSED,
}


def _unharmed(lost: Outcome) -> Outcome:
    # Our own bound takes the fence of the poll that it meets; nothing else may.
    never = ("interrupted",) if lost is CLOSED else ("interrupted", "fence_lost")
    return Outcome(states=lost.states, effects=lost.effects, never=never)


UNHARMED = {scene: _unharmed(outcome) for scene, outcome in WHEN_LOST.items()}
"""What no fault has touched: one attempt each, and nothing to recover."""


def outcomes_are(play: Play, expected: dict[Scene, Outcome]) -> None:
    """Wait for every call and compare it with its cell."""
    for scene, playing in play.items():
        expected[scene].is_of(playing)


def noticed_after_s(playing: Playing, fault_at: float) -> float:
    """Seconds from a fault to the call's running again under a new fence, or being flagged."""
    found = [playing.at("interrupted"), playing.at("started", fence=2)]
    return min(each for each in found if each is not None) - fault_at
