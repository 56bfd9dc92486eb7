"""The report of a repair: counts, predicted refusals, every change with its reason (part c).

Positions count entries of the input (`from`) and of the output (`to`) from 0. Arguments and results
are never in it, only digests. `dropped` and `inserted` make the sum that holds on every report:
results after = results before - dropped + inserted.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from ledger.transcripts.arguments import text_written, written
from ledger.transcripts.neutral import Opaque, Result, Text
from ledger.transcripts.validation import Violation

DROPS = {"orphan_dropped", "duplicate_dropped", "corrected", "step_folded"}
"""Kinds by which results leave the sent copy; the last two are told as text instead."""

INSERTS = {"replayed", "synthesized"}
"""Kinds by which a result comes in that the input did not have."""


REPORTED = {"differs", "prompt_repeated"}
"""Kinds that are only reported: nothing is changed."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What one list of entries holds, counted by pairing it without a ledger."""

    entries: int = 0
    calls: int = 0
    results: int = 0
    orphans: int = 0
    unanswered: int = 0
    duplicates: int = 0
    displaced: int = 0
    prompts_repeated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that the sent copy has otherwise than the input; None where a word does not apply.

    `results` is how many results it takes out or brings in.
    """

    kind: str
    from_at: int | None = None
    to: int | None = None
    call: str = ""
    provider_id: str | None = None
    source: str = ""
    delivery: str = ""
    template: str = ""
    digest: str = ""
    reason: str = ""
    differs: bool | None = None
    results: int = 0

    def to_json(self) -> dict[str, Any]:
        """Its words as the report gives them, without those that do not apply."""
        words = asdict(self)
        words = {"kind": words.pop("kind"), "from": words.pop("from_at"), **words}
        if self.kind != "step_folded":
            del words["results"]
        return {name: value for name, value in words.items() if value is not None and value != ""}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A likely cause and the input entries that show it; without proof, a hypothesis."""

    cause: str
    entries: tuple[int, ...]
    certainty: str = "hypothesis"


@dataclass(frozen=True, slots=True)
class Renamed:
    """An id that was rewritten: the step, the call's index in it, the id before and now."""

    step: int
    index: int
    was: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that one repair found and did. `remaining` is empty on all that is given out.

    `changed`: some entry of the sent copy is not the input's own, or stands elsewhere.
    """

    profile: str
    format: str
    templates: int
    before: Counts
    after: Counts
    changed: bool
    predicted: Sequence[Violation] = ()
    changes: Sequence[Change] = ()
    diagnosis: Sequence[Diagnosis] = ()
    ids: Sequence[Renamed] = ()
    remaining: Sequence[Violation] = field(default_factory=list)

    @property
    def dropped(self) -> int:
        """Results of the input that are not results of the output."""
        return sum(change.results for change in self.changes if change.kind in DROPS)

    @property
    def inserted(self) -> int:
        """Results of the output that the input did not have."""
        return sum(change.results for change in self.changes if change.kind in INSERTS)

    def to_json(self) -> dict[str, Any]:
        """The report as the API and the command line give it."""
        return {
            "profile": self.profile,
            "format": self.format,
            "changed": self.changed,
            "templates": self.templates,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "predicted": [violation.to_json() for violation in self.predicted],
            "changes": [change.to_json() for change in self.changes],
            "diagnosis": [
                {**asdict(each), "entries": list(each.entries)} for each in self.diagnosis
            ],
            "ids": [asdict(each) for each in self.ids],
            "remaining": [violation.to_json() for violation in self.remaining],
        }


def digest(result: Result) -> str:
    """What stands for a result in the report: of its texts and media, not of its place."""
    told = '{"parts":[' + ",".join([_told(part) for part in result.parts]) + "]}"
    return "sha256:" + sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _told(part: Text | Opaque) -> str:
    return text_written(part.text) if isinstance(part, Text) else written(part.body)
