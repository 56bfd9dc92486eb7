"""What the page of a session is made of: turns, what was said in them, calls, bars, offers.

Values for templates, read by `dashboard/transcripts.py`; texts in them are masked already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.template.defaultfilters import pluralize

from dashboard.labels import STATES, Label, reading_mark
from dashboard.payloads import Payload
from ledger import ids
from ledger.models import Compaction, Offer, ToolCall, Turn, TurnEvent
from ledger.outcomes import Shown
from ledger.vocabulary import DeliveryKind

CORRECTED = "corrected"
NOUNS = {
    "real": "result",
    "replayed": "replayed result",
    "partial": "partial result",
    "operator-stated": "operator-stated result",
    CORRECTED: "correction",
}
"""What was delivered, by its kind; a notice is called a notice."""


def noun_of(kind: str) -> str:
    """What a delivery of this kind brings: `result` for real."""
    return NOUNS.get(kind, kind)


@dataclass(frozen=True, slots=True)
class Saw:
    """The third label of a call: what the model was shown, and whether its outcome is due."""

    text: str
    is_read: bool = False
    is_due: bool = False

    @property
    def family(self) -> str:
        return "person" if self.is_due else "plain"

    @property
    def shape(self) -> str:
        return reading_mark(self.is_read)


@dataclass(frozen=True, slots=True)
class Read:
    """One delivery of a call: kind, when offered, whether read, and whether it is still true.

    `is_current`: the call stands today in the state that was shown.
    """

    kind: str
    turn: int
    offered_at: datetime
    acknowledged_at: datetime | None
    consumer: str
    is_current: bool

    @property
    def is_read(self) -> bool:
        return self.acknowledged_at is not None

    @property
    def is_correction(self) -> bool:
        return self.kind == CORRECTED

    @property
    def noun(self) -> str:
        return noun_of(self.kind)

    @property
    def saw(self) -> Saw:
        return Saw(f"{self.noun}, {'read' if self.is_read else 'not read yet'}", self.is_read)


@dataclass(frozen=True, slots=True)
class CallShown:
    """One call in its place: its row, what stands behind it, and who read what of it."""

    call: ToolCall
    shown: Shown
    told: str = ""
    reads: Sequence[Read] = ()
    fetched_at: datetime | None = None
    is_covered: bool = False
    owner: UUID | None = None
    arguments: Payload | None = None
    result: Payload | None = None
    result_bytes: int = 0
    result_is_error: bool = False

    @property
    def anchor(self) -> str:
        return ids.shown("call", self.call.id)

    @property
    def is_open(self) -> bool:
        return not self.call.is_settled

    @property
    def is_its_own(self) -> bool:
        """Whether the tool speaks itself here; only of a settled call."""
        return self.shown.is_its_own and not self.is_open

    @property
    def is_unresolved(self) -> bool:
        """Whether this session still answers for it: open, and not handed over."""
        return self.is_open and self.owner is None

    @property
    def is_settled_twin(self) -> bool:
        """Whether it was given another call's outcome, and never ran itself."""
        return self.call.twin_of_id is not None and not self.is_open

    @property
    def is_due(self) -> bool:
        """Whether it is settled and no model is known to have read its outcome."""
        return not self.is_open and self.owner is None and self._read_as_it_stands is None

    @property
    def saw(self) -> Saw:
        """What was read of it as it stands, else what is due, else what was offered last."""
        if self._read_as_it_stands is not None:
            return self._read_as_it_stands
        if self.is_due:
            return Saw(self._what_is_due, is_due=True)
        return self.reads[-1].saw if self.reads else Saw("not shown yet")

    @property
    def _read(self) -> list[Read]:
        return [each for each in self.reads if each.is_read]

    @property
    def _read_as_it_stands(self) -> Saw | None:
        current = [each for each in self._read if each.is_current]
        if current:
            return current[-1].saw
        if self.fetched_at is not None:
            return Saw("outcome, fetched by the agent", is_read=True)
        return None

    @property
    def _what_is_due(self) -> str:
        if self._read:
            return "outcome not read yet"
        return self.reads[-1].saw.text if self.reads else "undelivered"

    @property
    def source(self) -> str:
        """Where the text behind the call comes from, or that nobody was told it yet."""
        if not self.reads and self.fetched_at is None:
            return "would be told"
        if self.is_due and (read := self._read):
            return f"what the model read {'first' if read[-1].is_correction else 'last'}"
        return _SOURCES.get(self.shown.kind, "notice")

    @property
    def times(self) -> str:
        """How often it was shown: `once`, `3 times`."""
        return "once" if len(self.reads) == 1 else f"{len(self.reads)} times"

    @property
    def likeness(self) -> tuple[object, ...]:
        """What neighbours have in common that may be folded together; unresolved ones nothing."""
        alone = self.call.id if self.is_unresolved else None
        return (self.call.tool, self.call.state, self.call.effect, self.saw.text, alone)


_SOURCES = {DeliveryKind.OPERATOR_STATED: "operator-stated", DeliveryKind.PARTIAL: "partial"}


ALIKE_MIN, ALIKE_IN_SIGHT = 4, 2
"""From how many neighbours on calls that look alike are folded, and how many stay in sight."""


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbours that look alike: those in sight, and those folded behind them."""

    in_sight: Sequence[CallShown]
    folded: Sequence[CallShown] = ()

    @property
    def label(self) -> Label:
        return STATES[self.in_sight[0].call.state]


def _run_of(alike: Sequence[CallShown]) -> Run:
    if len(alike) < ALIKE_MIN:
        return Run(alike)
    return Run(alike[:ALIKE_IN_SIGHT], alike[ALIKE_IN_SIGHT:])


@dataclass(frozen=True, slots=True)
class Said:
    """A message: who spoke, the texts, what else it holds, and the calls of a reply."""

    role: str
    at: datetime | None = None
    position: int = 0
    texts: Sequence[Payload] = ()
    others: Sequence[str] = ()
    calls: Sequence[CallShown] = ()
    refused: Sequence[Mapping[str, Any]] = ()
    stop_reason: str = ""
    failed: bool = False
    is_covered: bool = False

    @property
    def runs(self) -> list[Run]:
        """The calls in their order, long runs of the same folded."""
        return [_run_of(list(alike)) for _, alike in groupby(self.calls, attrgetter("likeness"))]


@dataclass(frozen=True, slots=True)
class Bar:
    """A compaction where it cuts: what stands above it is told as its summary."""

    compaction: Compaction
    summary: Payload
    missing: Sequence[UUID] = ()

    @property
    def carried(self) -> Sequence[str]:
        """The calls that it carried over, as the API shows them."""
        return [ids.shown("call", each) for each in self.compaction.unresolved]

    @property
    def lost(self) -> Sequence[str]:
        """Those of them that the agent's own transcript had lost when it was checked last."""
        return [ids.shown("call", each) for each in self.missing]


@dataclass(frozen=True, slots=True)
class Offered:
    """An offer of a turn: to whom, how many calls, and when it was confirmed."""

    offer: Offer
    kinds: Mapping[str, int]

    @property
    def counted(self) -> str:
        """What it held: `3 notices, 1 result`."""
        return ", ".join(f"{n} {noun_of(kind)}{pluralize(n)}" for kind, n in self.kinds.items())


@dataclass(frozen=True, slots=True)
class TurnShown:
    """A turn: what was said in it, its bars, what the model was shown, what happened to it."""

    number: int
    turn: Turn | None
    lines: Sequence[Said | Bar]
    offers: Sequence[Offered] = ()
    events: Sequence[TurnEvent] = ()
    interruption: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_imported_without_reply(self) -> bool:
        """Whether an import closed it as answered, though nobody replied; so it has no event."""
        if self.turn is None or self.turn.closed_as != "answered" or self.events:
            return False
        return not any(isinstance(line, Said) and line.role == "assistant" for line in self.lines)
