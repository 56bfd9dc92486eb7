"""What a timeline shows, as plain instants: attempts, waits, marks, bounds. Read by
`dashboard/histories.py` from a call's rows, drawn by `dashboard/timeline.py`; no Django here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt as it is drawn. `proved_until` is its last proof of life.

    `window_from` is where its effect may begin (None: it cannot), `window_until` where that is
    over (None: it is not). `goes_on`: its work was parked and goes on elsewhere.
    """

    fence: int
    claimed_at: datetime
    proved_until: datetime
    ended_at: datetime | None = None
    window_from: datetime | None = None
    window_until: datetime | None = None
    narrowed_by: str = ""
    is_lost: bool = False
    goes_on: bool = False
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """A stretch in which nobody ran the call; `fence` is the row it is drawn in."""

    kind: str
    start: datetime
    end: datetime
    fence: int


@dataclass(frozen=True, slots=True)
class Mark:
    """An instant in a row; `fence` 0 lies on the last one."""

    kind: str
    at: datetime
    title: str
    fence: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """One of the four timeouts as a bracket; `fence` 0 spans the whole picture."""

    name: str
    start: datetime
    end: datetime
    fence: int = 0
    fired: bool = False
    set_to: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that the picture shows; `now` is None for a settled call."""

    start: datetime
    end: datetime
    now: datetime | None
    runs: Sequence[Run] = ()
    waits: Sequence[Wait] = ()
    marks: Sequence[Mark] = ()
    bounds: Sequence[Bound] = ()
