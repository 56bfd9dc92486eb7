"""What the page of a session is made of: turns, what was said in them, calls, bars, offers.

Values for templates, read by `dashboard/transcripts.py`; texts in them are masked already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from dashboard.payloads import Payload
from ledger import ids
from ledger.models import Compaction, Offer, ToolCall, Turn, TurnEvent
from ledger.outcomes import Shown


@dataclass(frozen=True, slots=True)
class Read:
    """What is known of one delivery of a call: kind, when offered, and whether it was read."""

    kind: str
    turn: int
    offered_at: datetime
    acknowledged_at: datetime | None
    consumer: str

    @property
    def is_read(self) -> bool:
        return self.acknowledged_at is not None


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
    def word(self) -> str:
        """The label: what the model was shown last, and whether it read it (console, section 2)."""
        if self.reads:
            last = self.reads[-1]
            return f"{last.kind}, {'read' if last.is_read else 'not read yet'}"
        if self.fetched_at is not None:
            return f"{self.shown.kind}, fetched by the agent"
        return "undelivered" if self.call.is_settled else "nothing yet"

    @property
    def is_read(self) -> bool:
        return any(each.is_read for each in self.reads) or self.fetched_at is not None


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


@dataclass(frozen=True, slots=True)
class TurnShown:
    """A turn: what was said in it, its bars, what the model was shown, what happened to it."""

    number: int
    turn: Turn | None
    lines: Sequence[Said | Bar]
    offers: Sequence[Offered] = ()
    events: Sequence[TurnEvent] = ()
    interruption: Mapping[str, Any] = field(default_factory=dict)
