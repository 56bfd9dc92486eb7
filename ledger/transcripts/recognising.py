"""Which call of the transcript is which call of the ledger; a doubt is no match (T5, T16).

Our own id decides. Else the provider's id and the tool's name, if they name one call on both
sides; of several, the arguments must tell them apart, or the whole list agree in order.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ledger.transcripts.arguments import same
from ledger.transcripts.blocks import Piece
from ledger.transcripts.known import Known, KnownCall
from ledger.transcripts.neutral import Call


def recognise(pieces: Iterable[Piece], known: Known) -> dict[int, KnownCall]:
    """The ledger's calls by the identity of the pieces that stand for them."""
    if not len(known):
        return {}
    found: dict[int, KnownCall] = {}
    labelled: defaultdict[tuple[str, str], list[Piece]] = defaultdict(list)
    for piece in pieces:
        call = piece.part
        if not isinstance(call, Call):
            continue
        ours = known.by_id(call.ledger_id) if call.ledger_id else None
        if ours is not None:
            found[id(piece)] = ours
        elif call.id:
            labelled[call.id, call.name.strip()].append(piece)
    taken = {ours.ledger_id for ours in found.values()}
    for (label, name), bearers in labelled.items():
        ours_left = [k for k in known.by_label(label, name) if k.ledger_id not in taken]
        found |= _told_apart(bearers, ours_left)
    return found


def _told_apart(bearers: Sequence[Piece], ours: Sequence[KnownCall]) -> dict[int, KnownCall]:
    if len(bearers) == len(ours):
        pairs = list(zip(bearers, ours, strict=True))
        if all(_may_be(piece, each) for piece, each in pairs):
            return {id(piece): each for piece, each in pairs}
    return _by_arguments(bearers, ours)


def _by_arguments(bearers: Sequence[Piece], ours: Sequence[KnownCall]) -> dict[int, KnownCall]:
    """Those whose arguments stand once on each side."""
    here: defaultdict[str, list[Piece]] = defaultdict(list)
    there: defaultdict[str, list[KnownCall]] = defaultdict(list)
    for piece in bearers:
        if isinstance(piece.part, Call) and piece.part.arguments is not None:
            here[same(piece.part.arguments)].append(piece)
    for each in ours:
        if each.call.arguments is not None:
            there[same(each.call.arguments)].append(each)
    return {
        id(pieces[0]): there[asked][0]
        for asked, pieces in here.items()
        if len(pieces) == 1 and len(there.get(asked, ())) == 1
    }


def _may_be(piece: Piece, ours: KnownCall) -> bool:
    """Whether nothing that both have contradicts it; cut-off arguments contradict nothing."""
    call = piece.part
    if not isinstance(call, Call) or call.arguments is None or ours.call.arguments is None:
        return True
    return same(call.arguments) == same(ours.call.arguments)
