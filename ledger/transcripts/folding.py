"""Reasoning that cannot be sent: dropped whole, or the step that needs it told as text (T19)."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from ledger.transcripts.arguments import written
from ledger.transcripts.blocks import Block, Piece, without
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Call, Opaque, Part, Result, Role, Text
from ledger.transcripts.profiles import Profile
from ledger.transcripts.thinking import NEVER_DEMANDED, accepted, is_reasoning, lacking


def suit(blocks: Iterable[Block], profile: Profile, log: Log | None) -> Iterator[Block]:
    """The blocks without the reasoning of other providers; a reply of nothing else is left out."""

    def note(block: Block) -> None:
        if log:
            log.note("reasoning_dropped", from_at=block.at, reason="of_another_provider")

    return without(blocks, lambda part: _is_foreign(part, profile), note)


def _is_foreign(part: Part, profile: Profile) -> bool:
    return isinstance(part, Opaque) and is_reasoning(part) and not accepted(part, profile)


def without_calls(block: Block, dropped: Collection[Piece], *, alone: bool) -> list[Piece]:
    """The pieces of a reply without these calls and the reasoning that led to nothing else.

    `alone`: reasoning that nothing follows is refused, and goes too.
    """
    kept: list[Piece] = []
    led_to: list[bool] = []
    thought = False
    for piece in reversed(block.pieces):
        if is_reasoning(piece.part):
            thought = True
            kept += [piece] if any(led_to) or (not led_to and not alone) else []
            continue
        led_to, thought = ([] if thought else led_to), False
        led_to.append(piece not in dropped)
        kept += [] if piece in dropped else [piece]
    return kept[::-1]


def fold(blocks: Sequence[Block], profile: Profile, log: Log | None) -> Iterator[Block]:
    """Tell as plain text every step whose signature the profile demands and nobody has (T19).

    Whole steps only: one whose calls are not all answered stays as it is.
    """
    if profile.reasoning in NEVER_DEMANDED:
        yield from blocks
        return
    told = [(block.role, [piece.part for piece in block.pieces]) for block in blocks]
    due = set(lacking(told, profile))
    place = 0
    while place < len(blocks):
        block = blocks[place]
        answers = _answers(block, _results_behind(blocks, place)) if place in due else None
        if answers is None:
            yield block
            place += 1
            continue
        if log:
            log.note("step_folded", from_at=block.at, results=len(answers))
        yield from _folded(block, answers)
        place += 1 + len(answers)


def _results_behind(blocks: Sequence[Block], place: int) -> list[Block]:
    behind = []
    for block in blocks[place + 1 : place + 1 + len(blocks[place].calls)]:
        if block.role is not Role.TOOL:
            break
        behind.append(block)
    return behind


def _answers(reply: Block, results: Sequence[Block]) -> list[Result] | None:
    """The result of each call in the order of the calls, by its id; None unless all have one.

    Results stand in the order in which they came.
    """
    by_id: defaultdict[str | None, deque[Result]] = defaultdict(deque)
    for block in results:
        for result in (piece.part for piece in block.pieces):
            if isinstance(result, Result):
                by_id[result.answers].append(result)
    calls = [piece.part for piece in reply.calls if isinstance(piece.part, Call)]
    found = [by_id[call.id].popleft() for call in calls if by_id[call.id]]
    return found if len(found) == len(calls) == len(results) else None


def _folded(reply: Block, answers: Sequence[Result]) -> Iterator[Block]:
    said = [
        piece
        for piece in reply.pieces
        if not isinstance(piece.part, Call) and not is_reasoning(piece.part)
    ]
    if said:
        yield Block(Role.ASSISTANT, said, reply.at, opaque=reply.opaque)
    told: list[Piece] = []
    for piece, answer in zip(reply.calls, answers, strict=True):
        if isinstance(piece.part, Call):
            told.append(Piece(Text(_words(piece.part, answer))))
            told += [Piece(part) for part in answer.parts if isinstance(part, Opaque)]
    yield Block(Role.USER, told)


def _words(call: Call, answer: Result) -> str:
    ended = "Its error" if answer.is_error else "Its result"
    asked = written(call.arguments or {})
    return f"Earlier tool call, told as text: {call.name} with {asked}. {ended}: {answer.text}\n"
