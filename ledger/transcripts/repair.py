"""Repair: a broken conversation in, one that its provider accepts out, and a report.

read, pair, settle, lay out, rewrite ids, cap, validate: pure steps, each in a file of its own,
linear in the number of entries. It invents no result and re-labels none (T5); a sound input comes
back as the very object that came in (T1); what is known to fail is never handed out (T23).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ledger.transcripts.known import NOTHING_KNOWN, Known
from ledger.transcripts.neutral import Entry
from ledger.transcripts.profiles import Profile
from ledger.transcripts.report import Report
from ledger.transcripts.validation import Violation


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


@dataclass(frozen=True, slots=True)
class Repaired:
    """The sent copy as entries and in its provider's shape, and what was done."""

    entries: list[Entry]
    body: Any
    report: Report


class Unrepairable(Exception):
    """The last validation still finds faults: the provider would refuse, so nothing is given out.

    `violations` lists them; `report` is that of the attempt, where there was one.
    """

    def __init__(self, violations: Sequence[Violation], report: Report | None = None) -> None:
        super().__init__("; ".join(sorted({violation.code for violation in violations})))
        self.violations, self.report = violations, report


def repair(
    transcript: Any,
    *,
    format: str,
    profile: Profile,
    ledger: Known = NOTHING_KNOWN,
    options: Options = DEFAULTS,
) -> Repaired:
    """Mend a transcript of `format` (the name of a format) for one provider.

    Raises UnknownProfile for a format nobody reads, Unreadable for input that is not of it (T24),
    Unrepairable where the provider would still refuse (T23).
    """
    raise NotImplementedError
