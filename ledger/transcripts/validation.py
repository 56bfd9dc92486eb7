"""What a provider would refuse: one small rule per code, asked only where the profile has the code.

Pure; reads entries as the provider groups them and never changes one. Each fault has one code: the
closest that the profile has, so `count_mismatch` is told where there is no closer one.
Source: transcripts, part a.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ledger.transcripts.neutral import Entry
from ledger.transcripts.profiles import Profile


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: where it shows (entry and part, from 0) and what the provider answers."""

    code: str
    at: int
    part: int
    provider_id: str
    text: str
    certainty: str

    def to_json(self) -> dict[str, Any]:
        """The violation as the API gives it."""
        return asdict(self)


def check(
    entries: Sequence[Entry],
    profile: Profile,
    *,
    around: Mapping[str, Any] | None = None,
    open_calls: bool = False,
) -> list[Violation]:
    """Every broken rule, in the order of the entries; empty for what the provider accepts.

    `entries` as `Shape.read` groups them. `around` is the request that they stand in, where it is
    known: rules about it are asked only then. `open_calls` allows calls of the last step to be
    without results.
    """
    raise NotImplementedError
