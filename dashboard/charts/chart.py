"""What a chart is, and the two pictures that there are: bars that lie and columns that stand.

Geometry is computed here in units of the picture's own box; templates only write it down.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from dashboard import reading

WIDTH = 360
LABEL, CHARACTER = 108, 6.4
"""Units kept for the words before a bar, and for each character of the figure behind it."""
ROW, BAR = 34, 16
"""Heights of a row and its bar. A row may be a link: on a narrow phone it is 24 px (WCAG 2.5.8)."""
HEIGHT = 112


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of a table; with an address it is a link to what it counts."""

    text: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its word, its length, the length of the darker part of it, and its figure.

    With an address it is a link to the list of what it counts.
    """

    word: str
    text: str
    y: int
    length: float
    part: float = 0.0
    family: str = "machine"
    address: str = ""

    @property
    def top(self) -> int:
        """The upper edge of its row."""
        return self.y - (ROW - BAR) // 2

    @property
    def spoken(self) -> str:
        return f"{self.word}: {self.text}"

    @property
    def baseline(self) -> int:
        return self.y + 12

    @property
    def end(self) -> float:
        return LABEL + self.length + 6


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars that lie one below the other."""

    bars: Sequence[Bar]
    template: str = "dashboard/overview/_bars.html"
    width: int = WIDTH
    left: int = LABEL
    row: int = ROW

    @property
    def has_links(self) -> bool:
        return any(each.address for each in self.bars)

    @property
    def height(self) -> int:
        return len(self.bars) * ROW


@dataclass(frozen=True, slots=True)
class Column:
    """One column: where it stands, how wide and high it is, and of which series.

    With an address it is a link to the list of what it counts, and `spoken` is its name.
    """

    x: float
    width: float
    height: float
    series: str
    address: str = ""
    spoken: str = ""

    @property
    def y(self) -> float:
        return round(HEIGHT - self.height, 1)


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns side by side, a line above them, and words below the first and the last."""

    columns: Sequence[Column]
    first: str
    last: str
    top: str
    line: str = ""
    keys: Sequence[tuple[str, str]] = ()
    template: str = "dashboard/overview/_columns.html"
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def has_links(self) -> bool:
        return any(each.address for each in self.columns)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a chart shows. Without rows it shows `sentence` alone, which then says why."""

    sentence: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    picture: Bars | Columns | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: its name in addresses, its title, and how it is read."""

    name: str
    title: str
    read: Callable[[UUID, datetime], Drawn]
    limit: int = field(default=0)

    def facts(self, workspace_id: UUID, now: datetime) -> dict[str, Any]:
        """What its fragment shows; `drawn` is None where it could not be read."""
        return {"chart": self, "drawn": reading.or_none(lambda: self.read(workspace_id, now))}


def bars(
    figures: Sequence[tuple[str, float, str]],
    *,
    parts: Sequence[float] = (),
    family: str = "machine",
    full: float = 0.0,
    addresses: Sequence[str] = (),
) -> Bars:
    """Bars for (word, figure, text); `parts` are the darker parts, in the same measure.

    `addresses` are the lists that they count, empty where there is none.

    The longest bar fills its room, or one of the length `full` where that is said.
    """
    most = full or max((figure for _, figure, _ in figures), default=0) or 1
    figure_room = 12 + CHARACTER * max((len(text) for *_, text in figures), default=0)
    scale = (WIDTH - LABEL - figure_room) / most
    darker = [*parts, *[0.0] * (len(figures) - len(parts))]
    leads = [*addresses, *[""] * (len(figures) - len(addresses))]
    return Bars(
        [
            Bar(word, text, n * ROW + (ROW - BAR) // 2, round(figure * scale, 1),
                round(darker[n] * scale, 1), family, leads[n])
            for n, (word, figure, text) in enumerate(figures)
        ]
    )  # fmt: skip


def columns(
    series: Sequence[tuple[str, str, Sequence[int]]],
    *,
    first: str,
    last: str,
    line: Sequence[int] = (),
    line_word: str = "",
    links: Sequence[tuple[str, str]] = (),
) -> Columns:
    """Columns for (css word, word, figures); all series and the line share one measure.

    `links` are name and address of each column of the first series.
    """
    most = max([1, *line, *(figure for _, _, figures in series for figure in figures)])
    slots = max((len(figures) for _, _, figures in series), default=1) or 1
    slot, scale = WIDTH / slots, (HEIGHT - 14) / most
    width = slot * 0.8 / max(1, len(series))
    drawn = [
        Column(round(n * slot + slot * 0.1 + width * place, 1), round(width, 1),
               round(figure * scale, 1), css,
               *(links[n][::-1] if links and not place else ()))
        for place, (css, _, figures) in enumerate(series)
        for n, figure in enumerate(figures)
        if figure
    ]  # fmt: skip
    points = (f"{n * slot + slot / 2:.1f},{HEIGHT - figure * scale:.1f}" for n, figure in
              enumerate(line))  # fmt: skip
    keys = [(css, word) for css, word, _ in series] + [("line", line_word)] * bool(line_word)
    return Columns(drawn, first, last, str(most), " ".join(points), keys)
