"""From the normal form to a provider's grouping (T20): deterministic, and it loses nothing.

A chain of small passes over the blocks, each asked of the profile: reasoning suited, steps folded,
system text first, text before calls, results together, neighbours merged, placeholders where a
message is demanded that nobody wrote.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ledger.transcripts.blocks import Block, Piece, entry_of, is_foreign, of, without
from ledger.transcripts.folding import fold, suit
from ledger.transcripts.items import without_unsure_ids
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Call, Entry, Opaque, OpaqueKind, Result, Role, Text
from ledger.transcripts.profiles import Profile, ResultsIn

OPENING = "(The conversation begins with a reply.)"
CLOSING = "(The conversation ends with a reply.)"
BETWEEN = "(No reply was recorded here.)"
EMPTY = "(This message was empty.)"
"""Placeholder texts: fixed, so that equal input gives equal bytes."""


def lay_out(entries: Sequence[Entry], profile: Profile) -> list[Entry]:
    """The entries as the profile's provider wants them grouped, reasoning suited to it (T19, T20).

    `entries` may stand in any order: results wherever they are stay between the same neighbours.
    An entry of the output has the `at` of the first entry that it was made from, or -1.
    """
    return [entry_of(block) for block in arrange(of(entries), profile)]


def arrange(
    blocks: Sequence[Block],
    profile: Profile,
    *,
    log: Log | None = None,
    plain: bool = False,
    open_calls: bool = False,
) -> list[Block]:
    """Blocks as messages of the provider. `plain` groups only: no fold, no placeholder, so that
    what was wrong stays wrong. `open_calls`: the last step may end the conversation.
    """
    visible = [block for block in blocks if profile.screen_only or not block.screen_only]
    suited = list(suit(_carried(visible, profile, log), profile, log))
    told = suited if plain else list(fold(suited, profile, log))
    named = _names(_system(told, profile), profile)
    readable = _readable(named, profile, log, plain=plain)
    grouped = list(_grouped(readable, profile, log))
    if profile.families and not plain:
        grouped = list(without_unsure_ids(grouped, profile, log))
    return grouped if plain else list(_completed(grouped, profile, log, open_calls=open_calls))


def _carried(blocks: Iterable[Block], profile: Profile, log: Log | None) -> Iterator[Block]:
    """Without what another form alone understands; media are the writer's to carry over."""
    forms = (profile.shape.name, profile.shape.form)

    def note(block: Block) -> None:
        if log:
            log.note("part_dropped", from_at=block.at, reason="of_another_form")

    return without(blocks, lambda part: is_foreign(part, forms), note)


def _system(blocks: Iterable[Block], profile: Profile) -> Iterator[Block]:
    """A system text behind the first other message is told as the user's where systems lead."""
    began = False
    for block in blocks:
        if block.role is not Role.SYSTEM:
            began = True
        elif began and profile.system_leads:
            block = replace(block, role=Role.USER, opaque={})
        yield block


def _names(blocks: Iterable[Block], profile: Profile) -> Iterator[Block]:
    """Results by the name of their call where the format repeats it."""
    if not profile.shape.names_results:
        yield from blocks
        return
    names: dict[str, str] = {}
    for block in blocks:
        if block.calls:
            calls = (piece.part for piece in block.calls)
            names = {call.id or "": call.name for call in calls if isinstance(call, Call)}
        for piece in block.pieces:
            result = piece.part
            if isinstance(result, Result):
                name = names.get(result.answers or "", result.name)
                if not result.name.strip() and name:
                    piece.part = replace(result, name=name)
        yield block


def _readable(
    blocks: Iterable[Block], profile: Profile, log: Log | None, *, plain: bool
) -> Iterator[Block]:
    """No empty texts where they are refused, and texts before calls."""
    for block in blocks:
        if not plain and "empty_text" in profile.refusals:
            kept = [_spoken(piece, log) for piece in block.pieces if not _is_empty(piece)]
            if log and len(kept) < len(block.pieces):
                log.note("empty_dropped", from_at=block.at, reason="empty_text")
            block.pieces = kept
            if not block.pieces:
                if block.role is Role.ASSISTANT:
                    continue
                block.pieces = [_placeholder(EMPTY, log)]
        if not plain and "text_after_call" in profile.refusals:
            _put_texts_first(block, log)
        yield block


def _is_empty(piece: Piece) -> bool:
    return isinstance(piece.part, Text) and not piece.part.text.strip()


def _spoken(piece: Piece, log: Log | None) -> Piece:
    """A result without empty texts; an error result says at least that it is empty."""
    result = piece.part
    if isinstance(result, Result):
        parts = tuple(p for p in result.parts if not isinstance(p, Text) or p.text.strip())
        if not parts and result.is_error:
            parts = (Text(EMPTY),)
        if parts != result.parts:
            piece.part = replace(result, parts=parts)
            if log:
                log.note(
                    "empty_dropped", piece, from_at=piece.at, provider_id=result.answers,
                    reason="empty_text",
                )  # fmt: skip
    return piece


def _put_texts_first(block: Block, log: Log | None) -> None:
    """Texts behind a call go before the first one: the only order that all providers accept."""
    first = next((n for n, p in enumerate(block.pieces) if isinstance(p.part, Call)), None)
    if first is None:
        return
    late = [piece for piece in block.pieces[first:] if isinstance(piece.part, Text)]
    if late:
        rest = [piece for piece in block.pieces[first:] if not isinstance(piece.part, Text)]
        block.pieces = [*block.pieces[:first], *late, *rest]
        if log:
            log.note("text_moved", late[0], from_at=late[0].at)


def _grouped(blocks: Iterable[Block], profile: Profile, log: Log | None) -> Iterator[Block]:
    if profile.results_in is ResultsIn.ITEMS:
        yield from (item for block in blocks for item in _items(block))
        return
    before: Block | None = None
    for block in blocks:
        if before is not None and _belong(before, block, profile):
            if log and 0 <= before.at != block.at and Role.TOOL is not block.role:
                log.note("merged", next(iter(block.pieces), None), from_at=block.at)
            before.pieces.extend(block.pieces)
            continue
        if before is not None:
            yield before
        before = block
    if before is not None:
        yield before


def _belong(before: Block, block: Block, profile: Profile) -> bool:
    """Whether two neighbours are one message to this provider."""
    if before.screen_only or block.screen_only:
        return False
    if before.role is Role.TOOL and profile.results_in is ResultsIn.TOGETHER:
        if block.role is Role.TOOL:
            return isinstance(before.pieces[-1].part, Result)
        beside = block.role is Role.USER and profile.text_beside_results
        return beside and (profile.roles_alternate or before.at == block.at >= 0)
    if before.role is not block.role or block.role in (Role.TOOL, Role.SYSTEM):
        return False
    return profile.roles_alternate or (block.role is Role.ASSISTANT and profile.calls_follow_user)


def _items(block: Block) -> Iterator[Block]:
    """Each call, result and piece of reasoning an item, the texts between them one message."""
    said: list[Piece] = []
    for piece in block.pieces:
        if _stands_alone(piece) or (said and said[-1].at != piece.at):
            if said:
                yield block.with_pieces(said, said[0].at, block.opaque)
            said = []
        if _stands_alone(piece):
            yield block.with_pieces([piece], piece.at, {})
        else:
            said.append(piece)
    if said or not block.pieces:
        yield block.with_pieces(said, said[0].at if said else block.at, block.opaque)


def _stands_alone(piece: Piece) -> bool:
    part = piece.part
    alone = (OpaqueKind.REASONING, OpaqueKind.PROVIDER_TOOL)
    return isinstance(part, Call | Result) or (isinstance(part, Opaque) and part.kind in alone)


def _completed(
    blocks: Sequence[Block], profile: Profile, log: Log | None, *, open_calls: bool
) -> Iterator[Block]:
    """With the messages that the provider demands and nobody wrote."""
    spoken = [block for block in blocks if block.role is not Role.SYSTEM and not block.screen_only]
    if spoken and spoken[0].role is Role.ASSISTANT and _is_opened_by_user(blocks, profile):
        leads = blocks.index(spoken[0])
        opening = Block(Role.USER, [_placeholder(OPENING, log)])
        blocks = [*blocks[:leads], opening, *blocks[leads:]]
    before: Block | None = None
    for block in blocks:
        if before and profile.reply_after_results and _follows_results(before, block):
            yield Block(Role.ASSISTANT, [_placeholder(BETWEEN, log)])
        yield block
        before = block
    waits = before and (before.opaque.get("prefix") is True or (open_calls and before.calls))
    if before and profile.last_not_assistant and before.role is Role.ASSISTANT and not waits:
        yield Block(Role.USER, [_placeholder(CLOSING, log)])


def _is_opened_by_user(blocks: Sequence[Block], profile: Profile) -> bool:
    """Whether the first reply needs the user before it; some take a system text instead."""
    led = blocks[0].role is Role.SYSTEM
    return profile.first_is_user or ("first_not_user" in profile.refusals and not led)


def _follows_results(before: Block, block: Block) -> bool:
    return before.role is Role.TOOL and block.role is Role.USER


def _placeholder(text: str, log: Log | None) -> Piece:
    piece = Piece(Text(text))
    if log:
        log.note("placeholder", piece)
    return piece
