"""Entries that the ledger made, as one provider takes them: laid out, ids, caps, validated.

Nothing is paired or settled here: a call and its result were one row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.transcripts.blocks import Block, Piece, of
from ledger.transcripts.collecting import collector_at_rest
from ledger.transcripts.identifiers import rewrite
from ledger.transcripts.layout import arrange
from ledger.transcripts.log import Log
from ledger.transcripts.neutral import Call, Entry, Part, Result
from ledger.transcripts.profiles import Profile
from ledger.transcripts.repair import Unrepairable
from ledger.transcripts.report import digest
from ledger.transcripts.rereading import as_read
from ledger.transcripts.validation import check
from ledger.transcripts.writing import cap, finished


@dataclass(frozen=True, slots=True)
class Shown:
    """What one call is shown as: our id, the ids it has and had, its tool, the kind of delivery.

    `at` is the entry of the body with its result, -1 where none is shown; `digest` is that of the
    result as sent; `capped` where a marker stands for a part of it. `delivery` is `open` where no
    result is shown; `folded` where the step is told as text.
    """

    call: str
    provider_id: str
    was: str
    name: str
    delivery: str
    at: int
    digest: str
    capped: bool = False
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation in a provider's own shape, the entries it was written from, the manifest."""

    body: Any
    entries: list[Entry]
    manifest: list[Shown]


def render(
    entries: Sequence[Entry],
    *,
    profile: Profile,
    cap_bytes: int | None = None,
    open_calls: bool = False,
) -> Rendered:
    """Lay out, rewrite ids, cap, validate and write entries whose calls are paired already.

    Each reply is one entry, its results are the entries of the role `tool` behind it, whatever
    number of results each holds. `open_calls` lets the last step keep calls without results (the
    stored copy). Members of another form (`opaque` of entries and parts) are the caller's to leave
    out. Raises Unrepairable, which here is our own error, and CapTooSmall.
    """
    with collector_at_rest():
        return _render(entries, profile, cap_bytes or profile.cap_bytes, open_calls)


def _render(
    entries: Sequence[Entry], profile: Profile, cap_bytes: int, open_calls: bool
) -> Rendered:
    blocks = of(entries)
    rows = list(_rows(blocks))
    log = Log()
    laid_out = arrange(blocks, profile, log=log, open_calls=open_calls)
    rewrite(laid_out, profile.ids)
    whole = {id(piece): piece.part for _, _, piece in rows if piece}
    cap(laid_out, cap_bytes, log)
    sent, places = finished(laid_out, entries, profile)
    body = profile.shape.write(sent)
    if check(as_read(sent, body, profile), profile, open_calls=open_calls):
        # Read back in any case: the places are those that the receiver counts.
        if remaining := check(profile.shape.read(body), profile, open_calls=open_calls):
            raise Unrepairable(remaining)
    return Rendered(body, sent, [_shown(row, places, whole) for row in rows])


Row = tuple[Piece, str, Piece | None]
"""A call, the id it came with, and its result if there is one."""


def _rows(blocks: Sequence[Block]) -> Iterator[Row]:
    calls: list[Piece] = []
    results: dict[str, list[Piece]] = {}
    for block in [*blocks, None]:
        if block is not None and block.pieces and isinstance(block.pieces[0].part, Result):
            answers = block.pieces[0].part.answers or ""
            results.setdefault(answers, []).append(block.pieces[0])
            continue
        for piece in calls:
            label = piece.part.id or "" if isinstance(piece.part, Call) else ""
            yield piece, label, next(iter(results.get(label, ())), None)
            results[label] = results.get(label, [])[1:]
        calls, results = (block.calls if block else []), {}


def _shown(row: Row, places: Mapping[int, int], whole: Mapping[int, Part]) -> Shown:
    call_piece, was, answer = row
    call = call_piece.part
    assert isinstance(call, Call)  # noqa: S101
    result = answer.part if answer else None
    folded = id(call_piece) not in places
    return Shown(
        call=call.ledger_id,
        provider_id=call.id or "",
        was=was,
        name=call.name,
        delivery=(result.delivery or "real") if isinstance(result, Result) else "open",
        at=places.get(id(answer), -1),
        digest=digest(result) if isinstance(result, Result) else "",
        capped=answer is not None and _is_other(whole[id(answer)], result),
        folded=folded,
    )


def _is_other(whole: Part, sent: Part | None) -> bool:
    """Whether the text of a result was cut since it was `whole`."""
    if whole is sent or not isinstance(whole, Result) or not isinstance(sent, Result):
        return False
    return whole.text != sent.text
