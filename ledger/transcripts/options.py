"""What a caller of repair may choose."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The choices a caller has; each default is the decision of transcripts, part b.

    `frontier`: calls of the last step stay open for a caller that will run them itself.
    `unanswered`: a call without a result is closed by a notice, or dropped.
    `failed_reply`: unrecorded calls of a reply that broke off are not sent, or kept and closed.
    `late_results`: a notice that a reply has read stays, and the result follows as a correction, or
    the result takes its place. A notice that nobody read is always replaced.
    `offered_tools`: calls of other tools are dropped. `cap_bytes`: None for the profile's.
    `notices`: further texts that count as notices, matched whole.
    """

    frontier: Literal["close", "open"] = "close"
    unanswered: Literal["close", "drop"] = "close"
    failed_reply: Literal["drop", "close"] = "drop"
    late_results: Literal["correction", "in_place"] = "correction"
    offered_tools: Collection[str] | None = None
    cap_bytes: int | None = None
    notices: Collection[str] = ()


DEFAULTS = Options()
