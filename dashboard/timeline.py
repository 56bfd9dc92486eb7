"""The attempt timeline as geometry: one row per attempt, time to the right, one axis (console, 5).

Pure: a `Story` of instants goes in, a `Picture` of shapes with plain numbers comes out, which the
template writes as SVG with classes and presentation attributes only. It never draws a call as
known while its window is open. Instants are written in the active zone; lengths are in units of
the picture's viewBox.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from dashboard import legends
from dashboard.legends import Key
from dashboard.stories import Bound, Run, Story, Wait
from dashboard.zones import offset
from ledger.vocabulary import spoken

LEFT, WIDTH, RIGHT = 46.0, 1000.0, 984.0
TOP, ROW, BAR, FOOT = 28.0, 48.0, 16.0, 38.0
BEATEN, FOLDED = 22.0, -14.0
"""How much higher a row is that holds a heartbeat's bracket, and one that only says more."""
MIN_WIDTH = 4.0
TIMES_ELSE, TIMES_AT_THE_END = 10, 3
BREAK_SHARE = 0.12
ROWS_MAX, FIRST, LAST = 12, 2, 5
CHARACTER = 7.4
APART = 150.0
UNDER_THE_BAR = ("beat", "ask")
MILLISECONDS_BELOW = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; `open` where its right end is not known."""

    css: str
    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Sign:
    """A symbol of 12 by 12, centred on its instant."""

    kind: str
    x: float
    y: float
    title: str

    @property
    def stands_on_a_bar(self) -> bool:
        """Whether it needs a ground of its own to be seen on a pattern."""
        return self.kind not in UNDER_THE_BAR

    @property
    def left(self) -> float:
        """Its left edge, kept within the picture."""
        return min(self.x - 6, WIDTH - 12)

    @property
    def top(self) -> float:
        """Its upper edge."""
        return self.y - 6


@dataclass(frozen=True, slots=True)
class Bracket:
    """A bound: a line with ends and a label. `more` where it goes on beyond the picture."""

    x: float
    until: float
    y: float
    label: str
    label_x: float
    anchor: str
    bold: bool
    more: bool
    title: str


@dataclass(frozen=True, slots=True)
class Label:
    """A text of the picture."""

    x: float
    y: float
    text: str
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes to be written from first to last."""

    height: float
    labels: list[Label] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    signs: list[Sign] = field(default_factory=list)
    brackets: list[Bracket] = field(default_factory=list)
    breaks: list[float] = field(default_factory=list)
    now_x: float | None = None
    folded: int = 0

    @property
    def legend(self) -> list[Key]:
        """What the marks of this picture mean; one that is not in it is not explained."""
        drawn = {box.css.removesuffix(" endless") for box in self.boxes}
        return legends.of(drawn | {sign.kind for sign in self.signs})

    @property
    def rows_end(self) -> float:
        """Where the rows end and the bracket of the whole call begins."""
        return self.height - FOOT


class Axis:
    """Time to x, in straight pieces; a wait that dwarfs all else is one short broken piece."""

    def __init__(self, story: Story) -> None:
        cuts = sorted({story.start, story.end, *_instants(story)})
        self.cuts = [at for at in cuts if story.start <= at <= story.end]
        if len(self.cuts) < 2:
            self.cuts = [story.start, story.start + timedelta(milliseconds=1)]
        pieces = list(zip(self.cuts, self.cuts[1:], strict=False))
        lengths = [(b - a).total_seconds() for a, b in pieces]
        self.broken = _broken(pieces, lengths, story.runs)
        whole = sum(length for n, length in enumerate(lengths) if n not in self.broken)
        weights = [whole * BREAK_SHARE if n in self.broken else length
                   for n, length in enumerate(lengths)]  # fmt: skip
        scale = (RIGHT - LEFT) / (sum(weights) or 1.0)
        self.edges = [LEFT]
        for weight in weights:
            self.edges.append(self.edges[-1] + weight * scale)

    def x(self, at: datetime) -> float:
        """Where an instant lies; what is outside the picture lies on its edge."""
        n = min(max(bisect_right(self.cuts, at) - 1, 0), len(self.cuts) - 2)
        start, end = self.cuts[n], self.cuts[n + 1]
        share = (at - start) / (end - start)
        left, right = self.edges[n], self.edges[n + 1]
        return round(left + (right - left) * min(max(share, 0.0), 1.0), 1)

    def break_xs(self) -> list[float]:
        return [round((self.edges[n] + self.edges[n + 1]) / 2, 1) for n in sorted(self.broken)]


def _instants(story: Story) -> Iterable[datetime]:
    for run in story.runs:
        yield from (run.claimed_at, run.proved_until)
        yield from (each for each in (run.ended_at, run.window_from, run.window_until) if each)
    for wait in story.waits:
        yield from (wait.start, wait.end)
    yield from (mark.at for mark in story.marks)


def _broken(
    pieces: Sequence[tuple[datetime, datetime]], lengths: Sequence[float], runs: Sequence[Run]
) -> set[int]:
    """The waits that are more than ten times all else, judged from the shortest on.

    The last piece is broken sooner: after the last mark nothing is drawn in it.
    """
    at_work = [n for n, (a, b) in enumerate(pieces) if any(_works(run, a, b) for run in runs)]
    rest = sorted((lengths[n], n) for n in range(len(pieces)) if n not in at_work)
    found: set[int] = set()
    so_far = sum(lengths[n] for n in at_work)
    for length, n in rest:
        times = TIMES_AT_THE_END if n == len(pieces) - 1 else TIMES_ELSE
        if at_work and (found or length > times * so_far):
            found.add(n)
        else:
            so_far += length
    return found


def _works(run: Run, start: datetime, end: datetime) -> bool:
    until = run.proved_until if run.is_lost or run.ended_at is None else run.ended_at
    return run.claimed_at <= start and end <= until


def draw(story: Story) -> Picture:
    """Lay the picture out."""
    axis = Axis(story)
    rows, folded = _rows(story)
    tops = _tops(rows, story)
    height = tops[-1] + FOOT + 8
    y_of = {fence: y for fence, y in zip(rows, tops, strict=False) if fence is not None}
    picture = Picture(
        height=height, folded=folded, breaks=axis.break_xs(),
        now_x=axis.x(story.now) if story.now else None,
    )  # fmt: skip
    picture.labels.extend([*_row_labels(rows, tops, folded), *_hours(story, axis)])
    for wait in story.waits:
        if wait.fence in y_of:
            picture.boxes.append(_wait_box(wait, axis, y_of[wait.fence]))
    for run in story.runs:
        if run.fence in y_of:
            picture.boxes.extend(_run_boxes(run, story, axis, y_of[run.fence]))
    picture.signs.extend([*_signs(story, axis, y_of), *_narrowings(story, axis, y_of)])
    picture.brackets.extend(_brackets(story, axis, y_of, height))
    return picture


def _rows(story: Story) -> tuple[list[int | None], int]:
    """The attempts that have a row, None for those folded between; and how many these are."""
    fences: list[int | None] = [run.fence for run in story.runs]
    fences += sorted({wait.fence for wait in story.waits} - {run.fence for run in story.runs})
    if len(fences) <= ROWS_MAX:
        return fences, 0
    return [*fences[:FIRST], None, *fences[-LAST:]], len(fences) - FIRST - LAST


def _tops(rows: Sequence[int | None], story: Story) -> list[float]:
    """The upper edge of each row, and that of what follows the last one."""
    beaten = {bound.fence for bound in story.bounds if bound.name == "heartbeat"}
    tops = [TOP]
    for fence in rows or [0]:
        more = FOLDED if fence is None else BEATEN if fence in beaten else 0
        tops.append(tops[-1] + ROW + more)
    return tops


def _row_labels(rows: Sequence[int | None], tops: Sequence[float], folded: int) -> Iterable[Label]:
    for fence, top in zip(rows, tops, strict=False):
        y = top + BAR - 3
        if fence is None:
            yield Label(LEFT, y, f"{folded} more like these")
        else:
            yield Label(LEFT - 10, y, f"#{fence}", "end")


def _hours(story: Story, axis: Axis) -> Iterable[Label]:
    """The instants above the picture: its two ends, and what lies well apart between them."""
    fine = story.end - story.start < MILLISECONDS_BELOW
    yield Label(LEFT, 12, instant(story.start, fine=fine))
    taken = [LEFT, RIGHT]
    for run in story.runs:
        x = axis.x(run.claimed_at)
        if min(abs(x - each) for each in taken) > APART:
            taken.append(x)
            yield Label(x, 12, instant(run.claimed_at, fine=fine), "middle")
    now = "now " if story.now else ""
    yield Label(RIGHT, 12, f"{now}{instant(story.end, fine=fine)}", "end")


def instant(at: datetime, *, fine: bool = True) -> str:
    """The time of day in the zone of who looks, with milliseconds where they matter."""
    text = f"{timezone.localtime(at):%H:%M:%S.%f}"
    return text[:-3] if fine else text[:8]


def _zoned(at: datetime) -> str:
    return f"{instant(at)} {offset(timezone.localtime(at))}"


def _box(css: str, axis: Axis, start: datetime, end: datetime, y: float, title: str,
         height: float = BAR) -> Box:  # fmt: skip
    x = min(axis.x(start), RIGHT - MIN_WIDTH)
    width = round(max(MIN_WIDTH, axis.x(end) - x), 1)
    return Box(css, x, y, width, height, f"{title}, {instant(start)} to {_zoned(end)}")


def _wait_box(wait: Wait, axis: Axis, y: float) -> Box:
    words = spoken(wait.kind)
    return _box(f"wait {wait.kind}", axis, wait.start, wait.end, y, words)


def _run_boxes(run: Run, story: Story, axis: Axis, y: float) -> Iterable[Box]:
    until = run.proved_until if run.is_lost else run.ended_at or story.end
    what = f"Attempt {run.fence} running, proved by its lease"
    yield _box("ran", axis, run.claimed_at, max(until, run.claimed_at), y, what)
    if run.window_from is None:
        return
    alive = max(run.window_from, min(until, run.window_until or until))
    if not run.is_lost:
        # Parked work goes on elsewhere: its window stays open although the attempt has ended.
        alive = max(alive, run.window_until or story.end)
    what = "The effect may have happened"
    how = "the work goes on outside" if run.goes_on else "the attempt is proved alive"
    yield _box("may", axis, run.window_from, alive, y, f"{what}; {how}")
    if run.is_lost:
        over = run.window_until or story.end
        how = f"; narrowed by {run.narrowed_by}" if run.narrowed_by else ""
        css = "may unproved" + ("" if run.window_until else " endless")
        yield _box(css, axis, alive, max(over, alive), y,
                   f"{what}; nothing is proved any more{how}")  # fmt: skip


def _signs(story: Story, axis: Axis, y_of: dict[int, float]) -> Iterable[Sign]:
    last = max(y_of, default=0)
    for mark in story.marks:
        y = y_of.get(mark.fence or last)
        if y is not None:
            middle = y + BAR + 4 if mark.kind in UNDER_THE_BAR else y + BAR / 2
            yield Sign(mark.kind, axis.x(mark.at), middle, f"{mark.title}, {_zoned(mark.at)}")


def _narrowings(story: Story, axis: Axis, y_of: dict[int, float]) -> Iterable[Sign]:
    """Where something proved that a window was over, and what that was."""
    for run in story.runs:
        if run.fence in y_of and run.window_until is not None and run.narrowed_by:
            what = f"The window ends here: {run.narrowed_by}"
            yield Sign("narrowed", axis.x(run.window_until), y_of[run.fence] + BAR / 2,
                       f"{what}, {_zoned(run.window_until)}")  # fmt: skip


LINES = {"schedule_to_start": 12.0, "start_to_close": 12.0, "heartbeat": 36.0}


def _brackets(story: Story, axis: Axis, y_of: dict[int, float], height: float) -> Iterable[Bracket]:
    """The bounds. Those that fired come first: where labels meet, theirs is the one that stays."""
    taken: dict[float, list[tuple[float, float]]] = {}
    for bound in sorted(story.bounds, key=_weight):
        if not bound.fence or bound.fence in y_of:
            y = y_of[bound.fence] + BAR + LINES[bound.name] if bound.fence else height - FOOT + 8
            yield _bracket(bound, story, axis, y, taken.setdefault(y, []))


def _weight(bound: Bound) -> tuple[bool, bool]:
    return not bound.fired, bound.name == "schedule_to_start"


def _bracket(
    bound: Bound, story: Story, axis: Axis, y: float, taken: list[tuple[float, float]]
) -> Bracket:
    x, more = axis.x(bound.start), bound.end > story.end
    until = min(max(axis.x(bound.end), x + MIN_WIDTH), RIGHT)
    text = f"{bound.name.replace('_', '-')} {bound.set_to}" + (" fired" if bound.fired else "")
    length = CHARACTER * len(text)
    fits = x + 4 + length <= RIGHT
    left = x if fits else until - length
    is_free = all(left + length < low or left > high for low, high in taken)
    if is_free:
        taken.append((left, left + length + 10))
    return Bracket(
        x, until, y, text if is_free else "", x + 4 if fits else until - 4,
        "start" if fits else "end", bound.fired, more,
        f"{text}: {instant(bound.start)} to {_zoned(bound.end)}",
    )  # fmt: skip
