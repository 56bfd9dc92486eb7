"""What a conversation holds, and what its faults look like: counted by pairing without a ledger.

A cause is a hypothesis unless the ledger itself says so.
"""

from collections.abc import Iterator, Sequence

from ledger.transcripts.blocks import Block, of
from ledger.transcripts.neutral import Entry, Role, Text
from ledger.transcripts.pairing import Flow, Found, pair
from ledger.transcripts.profiles import Shape
from ledger.transcripts.report import Counts, Diagnosis


def paired(entries: Sequence[Entry], shape: Shape) -> Flow:
    """The entries of a shape as they stand, every result matched or left over."""
    return pair(of(entries, itemised=shape.itemised), anywhere=shape.itemised)


def count(entries: Sequence[Entry], shape: Shape) -> Counts:
    """The counts of entries as their shape groups them."""
    return counted(paired(entries, shape), len(entries))


def counted(flow: Flow, entries: int) -> Counts:
    """The counts of a conversation already paired."""
    slots = list(flow.slots)
    displaced = sum(1 for slot in slots if _is_displaced(slot.found))
    answered = sum(1 for slot in slots if slot.is_answered)
    found = sum(len(slot.found) for slot in slots)
    return Counts(
        entries=entries,
        calls=len(slots),
        results=found + len(flow.orphans),
        orphans=len(flow.orphans),
        unanswered=len(slots) - answered,
        duplicates=sum(max(0, len(slot.found) - 1) for slot in slots),
        displaced=displaced,
        prompts_repeated=len(list(repeated_prompts(flow))),
    )


def _is_displaced(found: Sequence[Found]) -> bool:
    return bool(found) and not any(each.direct for each in found)


def repeated_prompts(flow: Flow) -> Iterator[int]:
    """The places of texts of the user that say again what was said just before, with no reply."""
    said: str | None = None
    for item in flow.items:
        if not isinstance(item, Block) or item.role is Role.ASSISTANT:
            said = None
            continue
        for piece in item.pieces if item.role is Role.USER and not item.screen_only else ():
            if isinstance(piece.part, Text) and piece.part.text.strip():
                if piece.part.text == said:
                    yield piece.at
                said = piece.part.text


def diagnose(flow: Flow) -> list[Diagnosis]:
    """Likely causes of what is wrong, each with the entries that show it."""
    slots = list(flow.slots)
    orphans = [orphan.piece.at for orphan in flow.orphans]
    displaced = [f.piece.at for slot in slots if _is_displaced(slot.found) for f in slot.found]
    doubled = [found.piece.at for slot in slots for found in slot.found[1:]]
    broken = [slot.piece.at for slot in slots if slot.failed]
    silent = [slot.piece.at for slot in slots if not slot.found and not slot.failed]
    cut = [slot.piece.at for slot in slots if slot.call.arguments is None]
    causes = {
        "reply_lost_results_kept": orphans,
        "spoken_while_tools_ran": displaced,
        "result_written_twice": doubled,
        "reply_broke_off": broken,
        "result_never_written": silent,
        "stream_cut_off": cut,
        "prompt_submitted_twice": list(repeated_prompts(flow)),
    }
    return [
        Diagnosis(cause, tuple(dict.fromkeys(places))) for cause, places in causes.items() if places
    ]
