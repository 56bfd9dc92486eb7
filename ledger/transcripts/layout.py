"""From the normal form to a provider's grouping (T20): deterministic, and it loses nothing."""

from collections.abc import Sequence

from ledger.transcripts.neutral import Entry
from ledger.transcripts.profiles import Profile


def lay_out(entries: Sequence[Entry], profile: Profile) -> list[Entry]:
    """The entries as the profile's provider wants them grouped, reasoning suited to it (T19, T20).

    `entries` may stand in any order: results wherever they are stay between the same neighbours.
    An entry of the output has the `at` of the first entry that it was made from, or -1.
    """
    raise NotImplementedError
