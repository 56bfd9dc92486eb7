"""Orphans whose call only the ledger knows (T16): put behind it, or dropped with a record.

A lost reply is restored only whole: every call of it known, none of it in the transcript.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ledger.transcripts.blocks import Block, Piece
from ledger.transcripts.known import Known, KnownCall
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Call, Role
from ledger.transcripts.pairing import Flow, Found, Orphan, Slot, Step
from ledger.transcripts.report import digest


class Relinking:
    """Gives each orphan to the slot of its call; `ours` learns the calls of restored replies."""

    def __init__(self, flow: Flow, known: Known, ours: dict[int, KnownCall], log: Log) -> None:
        self.flow, self.known, self.ours, self.log = flow, known, ours, log
        self.slots = {
            ours[id(slot.piece)].ledger_id: slot for slot in flow.slots if id(slot.piece) in ours
        }
        self.unknown = {slot.call.id for slot in flow.slots if id(slot.piece) not in ours}
        self.restored: defaultdict[int, list[Step]] = defaultdict(list)

    def run(self) -> None:
        for orphan in self.flow.orphans:
            owner = self._owner(orphan)
            if owner is None:
                self.log.drop("orphan_dropped", orphan.piece, orphan.reason)
            else:
                owner.found.append(Found(orphan.piece, direct=False, relinked=True))
        if self.restored:
            self.flow.items = [*_inserted(self.flow.items, self.restored)]

    def _owner(self, orphan: Orphan) -> Slot | None:
        ours = self._named(orphan)
        if ours is None:
            return None
        return self.slots.get(ours.ledger_id) or self._restore(ours, orphan.before)

    def _named(self, orphan: Orphan) -> KnownCall | None:
        """The one recorded call that the result can be of: by label, then by its very bytes."""
        result = orphan.result
        bearers = [
            each
            for each in self.known.by_label(result.answers, result.name)
            if each.result is not None
        ]
        if len(bearers) > 1:
            told = digest(result)
            bearers = [each for each in bearers if _recorded(each) == told]
        return bearers[0] if len(bearers) == 1 else None

    def _restore(self, ours: KnownCall, before: int) -> Slot | None:
        if ours.reply is None:
            return None
        calls = {call.ledger_id: self.known.by_id(call.ledger_id) for call in ours.reply.calls}
        lost_whole = all(
            each is not None and key not in self.slots and each.provider_id not in self.unknown
            for key, each in calls.items()
        )
        if not lost_whole or ours.ledger_id not in calls:
            return None
        pieces = [Piece(part) for part in ours.reply.parts]
        step = Step(Block(Role.ASSISTANT, pieces, opaque=ours.reply.opaque), [])
        for piece in step.reply.calls:
            self._take(piece, step)
        self.restored[before].append(step)
        return self.slots[ours.ledger_id]

    def _take(self, piece: Piece, step: Step) -> None:
        call = piece.part
        assert isinstance(call, Call)  # noqa: S101
        known = self.known.by_id(call.ledger_id)
        assert known is not None  # noqa: S101
        slot = Slot(piece)
        step.slots.append(slot)
        self.slots[known.ledger_id], self.ours[id(piece)] = slot, known
        self.log.note(
            "call_restored",
            piece,
            call=known.ledger_id,
            provider_id=call.id,
            source="ledger",
            reason="reply_lost",
        )


def _recorded(ours: KnownCall) -> str:
    answer = ours.answer(ours.provider_id)
    return digest(answer) if answer else ""


def _inserted(
    items: Sequence[Step | Block], restored: Mapping[int, Sequence[Step]]
) -> list[Step | Block]:
    """The flow with the restored steps where their results stood."""
    whole: list[Step | Block] = []
    for place in range(len(items) + 1):
        whole += restored.get(place, ())
        whole += items[place : place + 1]
    return whole
