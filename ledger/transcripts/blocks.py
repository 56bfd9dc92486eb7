"""The normal form: one reply with its calls, one result each, everything else; parts remember.

A piece knows the entry it came from, through every step, so that an entry that nothing touched is
given out as it came (T2) and the report can name both places. Pieces are replaced in place and
compared by identity; entries and parts are never changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ledger.transcripts.neutral import (
    Call,
    Entry,
    Opaque,
    OpaqueKind,
    Part,
    Result,
    Role,
)


@dataclass(slots=True, eq=False)
class Piece:
    """A part and the place of the entry that brought it, -1 where we wrote it."""

    part: Part
    at: int = -1


@dataclass(slots=True, eq=False)
class Block:
    """One message of the normal form. `loose`: a result that stood in a reply, in no run."""

    role: Role
    pieces: list[Piece]
    at: int = -1
    failed: bool = False
    stop_reason: str = ""
    screen_only: bool = False
    loose: bool = False
    opaque: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> list[Piece]:
        return [piece for piece in self.pieces if isinstance(piece.part, Call)]


def of(entries: Sequence[Entry], *, itemised: bool = False, own: bool = True) -> list[Block]:
    """The entries as blocks: each result alone, what stood beside results behind them.

    `itemised` joins a run of assistant items into one reply. Unless the entries are of the form
    that they will be sent in (`own`), members that only their form understands are left behind.
    """
    blocks: list[Block] = []
    for at, entry in enumerate(entries):
        for block in _split(entry, at, own):
            if itemised and blocks and _one_reply(blocks[-1], block):
                _join(blocks[-1], block)
            else:
                blocks.append(block)
    return blocks


def _split(entry: Entry, at: int, own: bool) -> Iterator[Block]:
    pieces = [Piece(part if own else bare(part), at) for part in entry.parts]
    opaque = entry.opaque if own else {}
    if entry.screen_only:
        yield Block(entry.role, pieces, at, screen_only=True, opaque=opaque)
        return
    results = [piece for piece in pieces if isinstance(piece.part, Result)]
    others = [piece for piece in pieces if not isinstance(piece.part, Result)]
    answers = (
        Block(Role.TOOL, [piece], at, loose=entry.role is Role.ASSISTANT) for piece in results
    )
    role = Role.USER if entry.role is Role.TOOL else entry.role
    told = Block(role, others, at, entry.failed, entry.stop_reason, opaque=opaque)
    if entry.role is Role.ASSISTANT:
        yield told
        yield from answers
    else:
        yield from answers
        if others or not results:
            yield told


def _one_reply(before: Block, block: Block) -> bool:
    return (
        before.role is block.role is Role.ASSISTANT
        and not before.screen_only
        and not block.screen_only
        and not before.failed
    )


def _join(before: Block, block: Block) -> None:
    before.pieces.extend(block.pieces)
    before.failed, before.stop_reason = block.failed, block.stop_reason


def bare(part: Part) -> Part:
    """A part without the members that only its form understands."""
    return part if isinstance(part, Opaque) or not part.opaque else replace(part, opaque={})


def is_foreign(part: Part, forms: Iterable[str]) -> bool:
    """Whether a part is opaque to all these forms and cannot be carried over into one."""
    return (
        isinstance(part, Opaque)
        and part.kind in (OpaqueKind.OTHER, OpaqueKind.PROVIDER_TOOL)
        and part.format not in forms
    )


def entry_of(block: Block) -> Entry:
    """The block as an entry that we wrote."""
    return Entry(
        role=block.role,
        parts=tuple(piece.part for piece in block.pieces),
        at=next((piece.at for piece in block.pieces if piece.at >= 0), block.at),
        stop_reason=block.stop_reason,
        failed=block.failed,
        screen_only=block.screen_only,
        opaque=block.opaque,
    )
