"""The neutral form, held to the common core: what meets it can be laid out for every provider.

Source: transcripts, part a, common core.
"""

from ledger.transcripts.profiles import ANYBODY, Ids, Profile, Reasoning
from ledger.transcripts.providers.common_core import REFUSALS
from ledger.transcripts.shapes.neutral import Neutral

PROFILE = Profile(
    name="neutral",
    shape=Neutral(),
    refusals=REFUSALS,
    ids=Ids(),
    reasoning=Reasoning.OPTIONAL,
    reasoning_formats=frozenset({ANYBODY}),
)
