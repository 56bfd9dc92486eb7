"""The normal form: one reply with its calls, one result each, everything else; parts remember.

A piece knows the entry it came from, through every step, so that an entry that nothing touched is
given out as it came (T2) and the report can name both places. Pieces are replaced in place and
compared by identity; entries and parts are never changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

    @property
    def has_opaque(self) -> bool:
        """Whether any part is one that not every format understands."""
        for piece in self.pieces:
            if isinstance(piece.part, Opaque):
                return True
        return False

    def with_pieces(self, pieces: list[Piece], at: int, opaque: Mapping[str, Any]) -> "Block":
        """A message of the same speaker that holds these; `replace` costs three times as much."""
        return Block(
            self.role, pieces, at, self.failed, self.stop_reason, self.screen_only, self.loose,
            opaque,
        )  # fmt: skip


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


def _split(entry: Entry, at: int, own: bool) -> list[Block]:
    pieces = [Piece(part if own else bare(part), at) for part in entry.parts]
    opaque = entry.opaque if own else {}
    if entry.screen_only:
        return [Block(entry.role, pieces, at, screen_only=True, opaque=opaque)]
    loose = entry.role is Role.ASSISTANT
    results = [piece for piece in pieces if isinstance(piece.part, Result)]
    others = [p for p in pieces if not isinstance(p.part, Result)] if results else pieces
    answers = [Block(Role.TOOL, [piece], at, loose=loose) for piece in results]
    if results and not others and not loose:
        return answers
    role = Role.USER if entry.role is Role.TOOL else entry.role
    told = Block(role, others, at, entry.failed, entry.stop_reason, opaque=opaque)
    return [told, *answers] if loose else [*answers, told]


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


def without(
    blocks: Iterable[Block], leaves: Callable[[Part], bool], note: Callable[[Block], None]
) -> Iterator[Block]:
    """The blocks without the opaque parts that leave; one that holds nothing else goes, too.

    `note` is told of every block that lost something.
    """
    for block in blocks:
        if not block.has_opaque:
            yield block
            continue
        kept = [piece for piece in block.pieces if not leaves(piece.part)]
        if len(kept) < len(block.pieces):
            note(block)
        if kept:
            block.pieces = kept
            yield block


def entry_of(block: Block) -> Entry:
    """The block as an entry that we wrote."""
    pieces = block.pieces
    return Entry(
        role=block.role,
        parts=tuple([piece.part for piece in pieces]),
        at=next((piece.at for piece in pieces if piece.at >= 0), block.at),
        stop_reason=block.stop_reason,
        failed=block.failed,
        screen_only=block.screen_only,
        opaque=block.opaque,
    )
