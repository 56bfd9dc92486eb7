"""Own ids of items, where a format has any: left out when unsure, since none is demanded.

An id of the wrong family is refused, and so is a call with its own id whose reasoning is missing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ledger.transcripts.blocks import Block, Piece
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Call, Role
from ledger.transcripts.profiles import Profile
from ledger.transcripts.rules import OWN_ID_MAX, item_kind
from ledger.transcripts.thinking import is_reasoning


def without_unsure_ids(
    blocks: Iterable[Block], profile: Profile, log: Log | None
) -> Iterator[Block]:
    """The items with only those ids of their own that the provider takes."""
    blocks = list(blocks)
    demanded = any(is_reasoning(piece.part) for block in blocks for piece in block.pieces)
    led = False
    for block in blocks:
        replied = block.role is Role.ASSISTANT
        led = replied and (led or any(is_reasoning(piece.part) for piece in block.pieces))
        for piece in block.calls:
            _suit(piece, profile, log, sure=led or not demanded)
        if not _fits(block.opaque, "message", profile):
            block.opaque = _without_id(block.opaque)
            if log:
                log.note("members_dropped", *block.pieces[:1], from_at=block.at, reason="item_id")
        yield block


def _suit(piece: Piece, profile: Profile, log: Log | None, *, sure: bool) -> None:
    call = piece.part
    if isinstance(call, Call) and "id" in call.opaque:
        if not sure or not _fits(call.opaque, item_kind(call), profile):
            piece.part = replace(call, opaque=_without_id(call.opaque))
            if log:
                log.note(
                    "members_dropped", piece, from_at=piece.at, provider_id=call.id,
                    reason="item_id",
                )  # fmt: skip


def _fits(opaque: Mapping[str, Any], kind: str, profile: Profile) -> bool:
    own = str(opaque.get("id", profile.families.get(kind, "")))
    return own.startswith(profile.families.get(kind, "")) and len(own) <= OWN_ID_MAX


def _without_id(opaque: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in opaque.items() if name != "id"}
