"""One result for each call that is sent (T17, T18), from the first of these that there is:

the ledger's record, a person's settlement, the result in the transcript, partial output, a notice.
A result that stands alone in its place is kept even where the ledger's differs; a notice never
beats a result; a real error or a denial is a result. What is not sent is written down.
"""

from collections.abc import Callable, Mapping

from ledger import notices
from ledger.transcripts.blocks import Block, Piece
from ledger.transcripts.caps import cut, is_over
from ledger.transcripts.known import KnownCall
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Result, Role, Text
from ledger.transcripts.options import Options
from ledger.transcripts.pairing import Flow, Found, Slot, Step
from ledger.transcripts.report import digest
from ledger.transcripts.told import unrecorded


class Settling:
    """Chooses for every slot. `corrections` are the texts that follow a notice that was read."""

    def __init__(
        self,
        options: Options,
        log: Log,
        *,
        ours: Mapping[int, KnownCall],
        doomed: Mapping[int, str],
        is_notice: Callable[[Result], bool],
        cap_bytes: int,
    ) -> None:
        self.cap_bytes = cap_bytes
        self.options, self.log, self.ours, self.doomed = options, log, ours, doomed
        self.is_notice = is_notice
        self.corrections: list[tuple[int, Piece]] = []
        self.said: set[str] = set()

    def run(self, flow: Flow) -> None:
        replies = [n for n, item in enumerate(flow.items) if _is_reply(item)]
        last_reply = replies[-1] if replies else -1
        self.said = set(_user_texts(flow))
        for place, item in enumerate(flow.items):
            if isinstance(item, Step):
                behind = flow.items[place + 1 :] if place == last_reply else [item]
                frontier = self.options.frontier == "open" and not behind
                for slot in item.slots:
                    self._settle(slot, was_read=place < last_reply, may_stay_open=frontier)

    def _settle(self, slot: Slot, *, was_read: bool, may_stay_open: bool) -> None:
        ours = self.ours.get(id(slot.piece))
        reason = self.doomed.get(id(slot.piece)) or self._broke_off(slot, ours)
        recorded = ours.answer(slot.call.id) if ours else None
        real = [found for found in slot.found if not self.is_notice(found.result)]
        first = next(iter(slot.found), None)
        stands_in = first if first and first.direct and first not in real else None
        if reason:
            self._drop(slot, reason)
        elif len(slot.found) == 1 and real and real[0].direct:
            self._keep(slot, real[0], recorded)
        elif stands_in and (real or recorded):
            self._late(slot, stands_in, real, recorded, was_read=was_read)
        elif recorded:
            self._record(slot, recorded, real)
        elif slot.found:
            self._take(slot, (real or slot.found)[0], source="transcript")
        elif not may_stay_open:
            self._close(slot, ours)

    def _broke_off(self, slot: Slot, ours: KnownCall | None) -> str:
        """Recorded means complete; an unrecorded call of a failed reply may be half-written."""
        dropped = slot.failed and ours is None and self.options.failed_reply == "drop"
        return "failed_reply" if dropped else ""

    def _drop(self, slot: Slot, reason: str) -> None:
        slot.dropped = reason
        self.log.drop_call(slot.piece, reason)
        for found in slot.found:
            self.log.drop("orphan_dropped", found.piece, reason)

    def _keep(self, slot: Slot, found: Found, recorded: Result | None) -> None:
        slot.answer = found.piece
        if recorded is not None and digest(recorded) != digest(found.result):
            self._note("differs", slot, found.piece, from_at=found.piece.at, source="ledger")

    def _take(self, slot: Slot, chosen: Found, *, source: str, kind: str = "moved") -> None:
        """Send a result that came in; every other one of the call is a duplicate (T15)."""
        slot.answer = chosen.piece
        if not chosen.direct:
            kind = "relinked" if chosen.relinked else kind
            self._note(
                kind,
                slot,
                chosen.piece,
                from_at=chosen.piece.at,
                source="ledger" if chosen.relinked else source,
                delivery="real",
                digest=digest(chosen.result),
            )
        self._drop_others(slot, chosen, digest(chosen.result))

    def _record(self, slot: Slot, recorded: Result, real: list[Found]) -> None:
        """The recorded result: the copy of it that came in, or in the place of what did."""
        told = digest(recorded)
        copy = next((found for found in slot.found if digest(found.result) == told), None)
        if copy is not None:
            self._take(slot, copy, source="transcript")
            return
        slot.answer = Piece(recorded)
        replaced = next(iter(real or slot.found), None)
        if replaced is None:
            self._note("replayed", slot, slot.answer, **_ledger(recorded), results=1)
            return
        kind = "relinked" if replaced.relinked else "moved"
        self._note(
            kind if real else "notice_replaced",
            slot,
            slot.answer,
            from_at=replaced.piece.at,
            differs=True if real else None,
            **_ledger(recorded),
        )
        self._drop_others(slot, replaced, told)

    def _late(
        self,
        slot: Slot,
        notice: Found,
        real: list[Found],
        recorded: Result | None,
        *,
        was_read: bool,
    ) -> None:
        """A result for a call whose notice stands in its place."""
        late = recorded or real[0].result
        only_text = all(isinstance(part, Text) for part in late.parts)
        # The reply that had read it may be gone by now; a correction that stands says that one had.
        was_read = was_read or self._correction(slot, notice, late) in self.said
        if was_read and only_text and self.options.late_results == "correction":
            self._correct(slot, notice, real, recorded)
        elif recorded is not None:
            self._record(slot, recorded, real)
        else:
            self._take_place(slot, real[0])

    def _take_place(self, slot: Slot, chosen: Found) -> None:
        slot.answer = chosen.piece
        self._note(
            "notice_replaced",
            slot,
            chosen.piece,
            from_at=chosen.piece.at,
            source="transcript",
            delivery="real",
            digest=digest(chosen.result),
        )
        self._drop_others(slot, chosen, digest(chosen.result))

    def _correct(
        self, slot: Slot, notice: Found, real: list[Found], recorded: Result | None
    ) -> None:
        """The notice stays where the model read it; the result follows as marked text."""
        slot.answer = notice.piece
        came = real[0] if real else None
        late = recorded or (came.result if came else None)
        assert late is not None  # noqa: S101
        text = self._correction(slot, notice, late)
        if text not in self.said:
            piece = Piece(Text(text))
            self.corrections.append((came.piece.at if came else -1, piece))
            self._note(
                "corrected",
                slot,
                piece,
                from_at=came.piece.at if came else None,
                source="ledger" if recorded else "transcript",
                template="correction",
                digest=digest(late),
                results=1 if came else 0,
            )
            kept = came
        else:
            kept = None
        self._drop_all(slot, [f for f in slot.found if f not in (notice, kept)], digest(late))

    def _correction(self, slot: Slot, notice: Found, late: Result) -> str:
        name = slot.call.ledger_id or slot.call.id or ""
        now = cut(late.text, self.cap_bytes) if is_over(late, self.cap_bytes) else late.text
        return notices.correction(call=name, earlier=notice.result.text, now=now).text

    def _close(self, slot: Slot, ours: KnownCall | None) -> None:
        if self.options.unanswered == "drop":
            slot.dropped = "unanswered"
            self.log.drop_call(slot.piece, "unanswered")
            return
        told = unrecorded()
        text, template, kind = told.text, told.template, told.kind
        if ours is not None and ours.notice:
            text, template = ours.notice, ours.template
            kind = "partial" if template in notices.PARTIAL else "notice"
        slot.answer = Piece(
            Result(
                answers=slot.call.id,
                parts=(Text(text),),
                name=slot.call.name,
                is_error=True,
                kind=slot.call.kind,
                ledger_id=ours.ledger_id if ours else "",
                delivery=kind,
            )
        )
        source = "ledger" if ours is not None and ours.notice else ""
        self._note(
            "synthesized",
            slot,
            slot.answer,
            source=source,
            delivery=kind,
            template=template,
            results=1,
        )

    def _drop_others(self, slot: Slot, chosen: Found, told: str) -> None:
        self._drop_all(slot, [found for found in slot.found if found is not chosen], told)

    def _drop_all(self, slot: Slot, others: list[Found], told: str) -> None:
        for found in others:
            reason = "notice" if self.is_notice(found.result) else "answered"
            differs = digest(found.result) != told
            self.log.drop("duplicate_dropped", found.piece, reason, differs=differs)

    def _note(self, kind: str, slot: Slot, piece: Piece, **words: object) -> None:
        ours = self.ours.get(id(slot.piece))
        call = ours.ledger_id if ours else slot.call.ledger_id
        self.log.note(kind, piece, call=call, provider_id=slot.call.id, **words)


def _ledger(recorded: Result) -> dict[str, str]:
    # What the transcript lacked and the ledger has was shown before: its label is `replayed`.
    shown = "replayed" if recorded.delivery in ("", "real") else recorded.delivery
    return {"source": "ledger", "delivery": shown, "digest": digest(recorded)}


def _is_reply(item: Step | Block) -> bool:
    return isinstance(item, Step) or (item.role is Role.ASSISTANT and not item.screen_only)


def _user_texts(flow: Flow) -> list[str]:
    blocks = (item for item in flow.items if isinstance(item, Block) and item.role is Role.USER)
    return [p.part.text for block in blocks for p in block.pieces if isinstance(p.part, Text)]
