"""The timeline in words: one plain sentence, the window in bold, and the table for the picture.

The same figures as the picture, which a screen reader meets instead of it. A time-out is never an
outcome: past the boundary it reads *may have happened* until something proves more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard import histories, timeline
from dashboard.histories import History
from dashboard.stories import Run, Story
from dashboard.timeline import Picture, instant
from ledger.vocabulary import Effect, spoken
from recovery.casefiles import crossing


@dataclass(frozen=True, slots=True)
class Timeline:
    """What `parts/_timeline.html` shows: its first instant, sentence, emphasis, picture, table."""

    start: datetime
    sentence: str
    emphasis: str
    picture: Picture
    lines: "list[Line]"

    @property
    def name(self) -> str:
        """The picture's name for a screen reader: the same sentence."""
        return f"{self.sentence} {self.emphasis}".strip()


def timeline_of(history: History) -> Timeline:
    """The timeline of a call, drawn and in words."""
    story = histories.story_of(history)
    sentence, emphasis = _sentences(history, story.runs)
    return Timeline(story.start, sentence, emphasis, timeline.draw(story), _table(history, story))


def _sentences(history: History, runs: Sequence[Run]) -> tuple[str, str]:
    if not runs:
        state = spoken(history.call.state)
        return f"No worker has claimed this call; it is {state}.", ""
    return _what_ran(runs[-1]), _what_may(history, runs)


def _what_ran(run: Run) -> str:
    began = f"Attempt {run.fence} ran from {instant(run.claimed_at)}"
    alive = f"its last proof of life came at {instant(run.proved_until)}"
    if run.ended_at is None:
        silent = "; its lease has ended and nobody has acted on it yet" if run.is_lost else ""
        return f"Attempt {run.fence} has run since {instant(run.claimed_at)}; {alive}{silent}."
    if run.is_lost:
        return f"{began}; {alive}; the loss was noticed at {instant(run.ended_at)}."
    return f"{began} to {instant(run.ended_at)} ({run.outcome})."


def _what_may(history: History, runs: Sequence[Run]) -> str:
    """The window in words, while the effect is not known; and until when denial is locked."""
    crossed = [run for run in runs if run.window_from is not None]
    if history.call.effect is not Effect.POSSIBLE or not crossed:
        return ""
    begins = instant(min(run.window_from for run in crossed if run.window_from))
    ends = [run.window_until for run in crossed]
    if all(ends):
        over = instant(max(end for end in ends if end is not None))
        return f"The effect may have happened between {begins} and {over}.{_lock(history)}"
    if any(run.is_lost for run in crossed):
        return (f"The effect may have happened from {begins} on; the window is open, because the "
                f"attempt is not proven dead.{_lock(history)}")  # fmt: skip
    where = ": the work goes on outside" if any(run.goes_on for run in crossed) else ""
    return f"The effect may have happened at any time since {begins}{where}."


def _lock(history: History) -> str:
    """When “did not happen” unlocks, where it is locked."""
    grace_s = history.call.policy.call_policy.in_flight_grace_s
    judged = [crossing(each, grace_s) for each in history.rows if each.crossed_at is not None]
    if history.call.is_settled or not judged:
        return ""
    instants = [each.unlocks_at for each in judged]
    if not all(instants):
        return " “Did not happen” stays locked until its death is proven."
    until = max(each for each in instants if each is not None)
    return f" “Did not happen” unlocks at {instant(until)}." if until > history.now else ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table that stands for the picture."""

    fence: int
    worker: str
    claimed: str
    crossed: str
    alive: str
    ended: str
    window: str
    outcome: str


def _table(history: History, story: Story) -> list[Line]:
    """The figures of the picture, an attempt a line."""
    workers = {each.fence: each.worker.name for each in history.rows}
    return [_line(run, workers[run.fence]) for run in story.runs]


def _line(run: Run, worker: str) -> Line:
    window = "–"
    if run.window_from is not None:
        over = instant(run.window_until) if run.window_until else "open"
        window = f"{instant(run.window_from)} – {over}"
    return Line(
        fence=run.fence,
        worker=worker,
        claimed=instant(run.claimed_at),
        crossed=instant(run.window_from) if run.window_from else "–",
        alive=instant(run.proved_until),
        ended=instant(run.ended_at) if run.ended_at else "–",
        window=window,
        outcome=run.outcome,
    )
