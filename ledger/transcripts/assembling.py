"""Settled steps as blocks again: each reply, its results behind it, the rest in its order."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ledger.transcripts.blocks import Block, Piece
from ledger.transcripts.folding import without_calls
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Result, Role
from ledger.transcripts.pairing import Flow, Found, Slot, Step
from ledger.transcripts.profiles import Profile
from ledger.transcripts.report import digest


def assemble(
    flow: Flow, profile: Profile, corrections: Sequence[tuple[int, Piece]], log: Log
) -> list[Block]:
    """The blocks of the sent copy. A reply that has become empty goes; it ended its step before.

    Each correction joins the first message of the user at or behind the entry it names, one that
    names none (-1) the last message that no reply has followed.
    """
    blocks = [block for item in flow.items for block in _blocks(item, profile, log)]
    return _told(blocks, corrections) if corrections else blocks


def _blocks(item: Step | Block, profile: Profile, log: Log) -> Iterator[Block]:
    block = item.reply if isinstance(item, Step) else item
    slots = item.slots if isinstance(item, Step) else []
    if block.role is Role.ASSISTANT and not block.screen_only:
        had = len(block.pieces)
        dropped = {slot.piece for slot in slots if slot.dropped}
        alone = "reasoning_alone" in profile.refusals
        block.pieces = without_calls(block, dropped, alone=alone)
        if len(block.pieces) < had - len(dropped):
            log.note("reasoning_dropped", from_at=block.at, reason="left_alone")
        if had and not block.pieces:
            return
    yield block
    if isinstance(item, Step):
        yield from (_result(piece) for piece in _answers(item, profile, log))


def _answers(step: Step, profile: Profile, log: Log) -> list[Piece]:
    """In the order of the calls; as they came where that order is free and nothing is new."""
    sent = [slot for slot in step.slots if not slot.dropped and slot.answer is not None]
    came = {id(found.piece): found for slot in sent for found in slot.found if found.direct}
    if profile.result_order_free and all(id(slot.answer) in came for slot in sent):
        sent = sorted(sent, key=lambda slot: came[id(slot.answer)].number)
    _note_order([came[id(slot.answer)] for slot in sent if id(slot.answer) in came], log)
    return [_of_its_kind(slot, slot.answer) for slot in sent if slot.answer is not None]


def _note_order(sent: Sequence[Found], log: Log) -> None:
    """Write down which results of a step now stand where another one came."""
    for found, came in zip(sent, sorted(sent, key=lambda each: each.number), strict=True):
        if found is not came:
            log.note(
                "moved", found.piece, from_at=found.piece.at, provider_id=found.result.answers,
                source="transcript", delivery="real", digest=digest(found.result),
                reason="call_order",
            )  # fmt: skip


def _of_its_kind(slot: Slot, answer: Piece) -> Piece:
    """A custom call gets a custom output, any other none (part a, OpenAI Responses)."""
    result, custom = answer.part, slot.call.kind == "custom"
    if isinstance(result, Result) and (result.kind == "custom") is not custom:
        answer.part = replace(result, kind=slot.call.kind)
    return answer


def _result(piece: Piece) -> Block:
    return Block(Role.TOOL, [piece], piece.at)


def _told(blocks: list[Block], corrections: Sequence[tuple[int, Piece]]) -> list[Block]:
    last_reply = max(
        (n for n, block in enumerate(blocks) if block.role in (Role.ASSISTANT, Role.TOOL)),
        default=-1,
    )
    users = [
        (n, block)
        for n, block in enumerate(blocks)
        if block.role is Role.USER and not block.screen_only
    ]
    places = [block.at for _, block in users]
    unanswered = [block for n, block in users if n > last_reply]
    closing = Block(Role.USER, [])
    for after, piece in corrections:
        behind = [block for _, block in users[bisect_left(places, after) :][:1]]
        target = [*(behind if after >= 0 else unanswered[:1]), closing][0]
        target.pieces.append(piece)
    return [*blocks, closing] if closing.pieces else blocks
