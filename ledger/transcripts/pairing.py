"""Which result answers which call (T11 to T16), on the ids as received, in one pass.

A result in the run directly behind a reply is matched to that reply, first in, first out for equal
ids. Outside its run it may be moved to a call before it only where it can belong to no other. It
never pairs with a later call, and nothing is re-labelled by its place.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ledger.transcripts.blocks import Block, Piece
from ledger.transcripts.neutral import Call, Result, Role
from ledger.transcripts.report import digest


@dataclass(slots=True, eq=False)
class Found:
    """A result that a call has; `direct` where it stood in the run behind its reply, `relinked`
    where only the ledger says whose it is. `number` is its order among all results.
    """

    piece: Piece
    direct: bool
    relinked: bool = False
    number: int = 0

    @property
    def result(self) -> Result:
        assert isinstance(self.piece.part, Result)  # noqa: S101
        return self.piece.part


@dataclass(slots=True, eq=False)
class Slot:
    """A call of a step and every result that is its own, in the order received.

    `answer` is the one that is sent, None while nothing is settled or where the call stays open;
    `dropped` says why the call is not sent.
    """

    piece: Piece
    failed: bool = False
    found: list[Found] = field(default_factory=list)
    answer: Piece | None = None
    dropped: str = ""

    @property
    def call(self) -> Call:
        assert isinstance(self.piece.part, Call)  # noqa: S101
        return self.piece.part

    @property
    def is_answered(self) -> bool:
        """Whether a result stands where its provider looks for it."""
        return any(found.direct for found in self.found)


@dataclass(slots=True, eq=False)
class Step:
    """A reply and its calls."""

    reply: Block
    slots: list[Slot]


@dataclass(slots=True, eq=False)
class Orphan:
    """A result that no call of the transcript can be proved to own.

    `before` is how many items of the flow stand before it; `reason` is `unknown` where no call
    bears its id, `ambiguous` where several could own it.
    """

    piece: Piece
    before: int
    reason: str

    @property
    def result(self) -> Result:
        assert isinstance(self.piece.part, Result)  # noqa: S101
        return self.piece.part


@dataclass(slots=True, eq=False)
class Flow:
    """The conversation paired: steps and what stood between them, and the results left over."""

    items: list[Step | Block] = field(default_factory=list)
    orphans: list[Orphan] = field(default_factory=list)

    @property
    def steps(self) -> Iterator[Step]:
        return (item for item in self.items if isinstance(item, Step))

    @property
    def slots(self) -> Iterator[Slot]:
        return (slot for step in self.steps for slot in step.slots)


def pair(
    blocks: Sequence[Block],
    is_notice: Callable[[Result], bool] = lambda _: False,
    *,
    anywhere: bool = False,
) -> Flow:
    """Match every result. A call that only a notice answers may still own a later result (T17).

    `anywhere`: in this form a result may stand anywhere behind its call, so none is displaced.
    """
    return _Pairing(is_notice, anywhere=anywhere).run(blocks)


class _Pairing:
    """The state of the one pass: the run we are in, and the calls that may still own a result."""

    def __init__(self, is_notice: Callable[[Result], bool], *, anywhere: bool) -> None:
        self.is_notice, self.anywhere = is_notice, anywhere
        self.number = 0
        self.flow = Flow()
        self.waiting: dict[str, deque[Slot]] = {}
        self.last_in_run: dict[str, Slot] = {}
        # Calls that may own a displaced result, by id and name and by id alone (for results that
        # do not repeat the name): dictionaries as ordered sets, so that a look-up is two steps.
        self.open: defaultdict[tuple[str, str], dict[Slot, None]] = defaultdict(dict)
        self.nearest: dict[tuple[str, str], Slot] = {}
        self.digests: defaultdict[tuple[str, str], dict[str, Slot]] = defaultdict(dict)

    def run(self, blocks: Sequence[Block]) -> Flow:
        for block in blocks:
            if block.screen_only:
                self.flow.items.append(block)
            elif block.role is Role.TOOL:
                self._result(block.pieces[0], in_run=not block.loose)
            else:
                self._end_run()
                self.flow.items.append(self._step(block) if block.calls else block)
        return self.flow

    def _end_run(self) -> None:
        self.waiting, self.last_in_run = {}, {}

    def _step(self, reply: Block) -> Step:
        slots = [Slot(piece, failed=reply.failed) for piece in reply.calls]
        for slot in slots:
            self.waiting.setdefault(slot.call.id or "", deque()).append(slot)
            for key in self._keys(slot):
                self.open[key][slot] = None
                self.nearest[key] = slot
        return Step(reply, slots)

    def _result(self, piece: Piece, *, in_run: bool) -> None:
        result = piece.part
        assert isinstance(result, Result)  # noqa: S101
        label = result.answers or ""
        if not label:
            self.flow.orphans.append(Orphan(piece, len(self.flow.items), "unknown"))
        elif in_run and label in self.waiting:
            self._answer_directly(piece, result, self.waiting[label])
        elif owner := self._owner(result):
            self._give(owner, piece, direct=self.anywhere)
        else:
            key = (label, result.name)
            reason = "ambiguous" if key in self.nearest else "unknown"
            self.flow.orphans.append(Orphan(piece, len(self.flow.items), reason))

    def _answer_directly(self, piece: Piece, result: Result, waiting: deque[Slot]) -> None:
        label = result.answers or ""
        if waiting:
            self.last_in_run[label] = waiting.popleft()
        self._give(self.last_in_run[label], piece, direct=True)

    def _owner(self, result: Result) -> Slot | None:
        """The only call that a displaced result can belong to, or None (T14, T15).

        The bearer nearest to it must be the one that is open: where the nearest is answered and
        an earlier one is open, either may own it. The very bytes that another bearer already has
        are a second copy of those.
        """
        key = (result.answers or "", result.name)
        copied = self.digests[key].get(digest(result))
        if copied is not None:
            return copied
        candidates = list(islice(self.open[key], 2))
        if not candidates:
            return self.nearest.get(key)
        return candidates[0] if candidates == [self.nearest[key]] else None

    def _give(self, slot: Slot, piece: Piece, *, direct: bool) -> None:
        found = Found(piece, direct, number=self.number)
        self.number += 1
        slot.found.append(found)
        if self.is_notice(found.result):
            return
        told = digest(found.result)
        for key in self._keys(slot):
            self.open[key].pop(slot, None)
            self.digests[key].setdefault(told, slot)

    def _keys(self, slot: Slot) -> tuple[tuple[str, str], tuple[str, str]]:
        label = slot.call.id or ""
        return (label, slot.call.name), (label, "")
