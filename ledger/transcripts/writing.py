"""The last steps that repair and rendering share: ids, caps, entries as they came, body.

An entry that nothing touched is the one that came in, so that it is written as it was (T2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ledger.transcripts.blocks import Block, Piece, entry_of
from ledger.transcripts.caps import capped, is_over
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Entry, Result
from ledger.transcripts.profiles import Profile
from ledger.transcripts.report import digest


def cap(blocks: Iterable[Block], cap_bytes: int, log: Log) -> None:
    """Cut every result over the cap, with a record. Raises CapTooSmall."""
    for piece in (piece for block in blocks for piece in block.pieces):
        result = piece.part
        if isinstance(result, Result) and is_over(result, cap_bytes):
            piece.part = capped(result, cap_bytes)
            log.note(
                "result_capped",
                piece,
                from_at=piece.at if piece.at >= 0 else None,
                call=result.ledger_id,
                provider_id=result.answers,
                digest=digest(result),
            )


def finished(
    blocks: Sequence[Block],
    came: Sequence[Entry],
    profile: Profile,
    log: Log | None = None,
) -> tuple[list[Entry], dict[int, int]]:
    """The entries to write, and where each piece stands, by its identity.

    `came` are the entries of the same form that the pieces know, empty for another form.
    """
    entries = [_entry(block, came, profile, log) for block in blocks]
    places = {id(piece): at for at, block in enumerate(blocks) for piece in block.pieces}
    return entries, places


def _entry(block: Block, came: Sequence[Entry], profile: Profile, log: Log | None) -> Entry:
    source = _source(block.pieces, block.at)
    members = _members(block.opaque, profile)
    if 0 <= source < len(came):
        before = came[source]
        if before.role is block.role and before.opaque == members:
            if before.parts == tuple([piece.part for piece in block.pieces]):
                return before
    entry = entry_of(block)
    if members is block.opaque:
        return entry
    if log:
        log.note("members_dropped", *block.pieces[:1], from_at=block.at, reason="empty_calls")
    return replace(entry, opaque=members)


def _source(pieces: Sequence[Piece], at: int) -> int:
    """The one entry that all pieces came from, -1 if there are several."""
    if len(pieces) == 1:
        return pieces[0].at
    places = {piece.at for piece in pieces} or {at}
    return places.pop() if len(places) == 1 else -1


def _members(opaque: Mapping[str, Any], profile: Profile) -> Mapping[str, Any]:
    if "empty_calls" in profile.refusals and opaque.get("tool_calls") == []:
        return {name: value for name, value in opaque.items() if name != "tool_calls"}
    return opaque
