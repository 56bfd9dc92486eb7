"""Entries that the ledger made, as one provider takes them: laid out, ids, caps, validated.

Nothing is paired or settled here: a call and its result were one row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.transcripts.neutral import Entry
from ledger.transcripts.profiles import Profile


@dataclass(frozen=True, slots=True)
class Shown:
    """What one call is shown as: our id, the ids it had and has, its tool, the kind of delivery.

    `at` is the entry of the body with its result, `digest` that of the result as sent; `capped`
    where a marker stands for a part of it. `delivery` is `open` where no result is shown, and
    `folded` stands where the step is told as text.
    """

    call: str
    provider_id: str
    was: str
    name: str
    delivery: str
    at: int
    digest: str
    capped: bool = False
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation in a provider's own shape, the entries it was written from, the manifest."""

    body: Any
    entries: list[Entry]
    manifest: list[Shown]


def render(
    entries: Sequence[Entry],
    *,
    profile: Profile,
    cap_bytes: int | None = None,
    open_calls: bool = False,
) -> Rendered:
    """Lay out, rewrite ids, cap, validate and write entries whose calls are paired already.

    Each reply is one entry, its results are the entries of the role `tool` behind it, whatever
    number of results each holds. `open_calls` lets the last step keep calls without results (the
    stored copy). Members of another form (`opaque` of entries, texts, calls, results) are the
    caller's to leave out: `reading.without_members`. Raises Unrepairable, which here is our error.
    """
    raise NotImplementedError
