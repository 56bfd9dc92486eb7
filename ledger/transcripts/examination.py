"""What is wrong with a transcript, for one provider or for all: nothing is mended.

Read once, counted once; for each provider the faults that it would answer with, in its words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ledger.transcripts.counting import counted, diagnose, paired
from ledger.transcripts.profiles import Profile
from ledger.transcripts.profiles import shape as shape_of
from ledger.transcripts.repair import foreseen
from ledger.transcripts.report import Counts, Diagnosis
from ledger.transcripts.validation import Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The counts of a transcript, the likely causes, and what each provider would refuse."""

    format: str
    counts: Counts
    diagnosis: Sequence[Diagnosis]
    predicted: Mapping[str, Sequence[Violation]]

    @property
    def is_sound(self) -> bool:
        """Whether none of the providers asked for would refuse it."""
        return not any(self.predicted.values())

    def to_json(self) -> dict[str, Any]:
        """The examination as the API and the command line give it."""
        return {
            "format": self.format,
            "sound": self.is_sound,
            "counts": asdict(self.counts),
            "diagnosis": [
                {**asdict(each), "entries": list(each.entries)} for each in self.diagnosis
            ],
            "profiles": {
                name: {"sound": not found, "predicted": [each.to_json() for each in found]}
                for name, found in self.predicted.items()
            },
        }


def examine(transcript: Any, *, format: str, profiles: Iterable[Profile]) -> Examination:
    """Say what these providers would refuse in a transcript of `format`.

    Raises UnknownProfile for a format nobody reads, Unreadable for input that is not of it.
    """
    shape = shape_of(format)
    entries = shape.read(transcript)
    flow = paired(entries, shape)
    around = transcript if isinstance(transcript, Mapping) else None
    return Examination(
        format=format,
        counts=counted(flow, len(entries)),
        diagnosis=diagnose(flow),
        predicted={
            profile.name: foreseen(entries, shape, profile, around=around) for profile in profiles
        },
    )
