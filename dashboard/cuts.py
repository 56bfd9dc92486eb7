"""Where a session may be cut by a compaction, and what each cut would pass."""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger import carry_over, compactions, ids, masking
from ledger.cuts import Cut
from ledger.models import Compaction, Session


@dataclass(frozen=True, slots=True)
class Place:
    """An allowed cut, as its turn and position, and the unresolved calls before it."""

    cut: Cut

    @property
    def passes(self) -> list[str]:
        return [ids.shown("call", each) for each in self.cut.passes]


@dataclass(frozen=True, slots=True)
class Cuts:
    """The latest allowed cuts, newest first; the block that would be carried over; what was cut."""

    places: Sequence[Place]
    carried: int
    block: str
    version: int
    earlier: Sequence[Compaction]


def of(session: Session) -> Cuts:
    """Nothing is written; the token that a compaction needs is an agent's and is not shown."""
    found = compactions.prepare(session=session)
    return Cuts(
        places=[Place(each) for each in reversed(found.cuts)],
        carried=len(found.carried),
        block=masking.masked_text(carry_over.block(found.carried)),
        version=found.looked.version,
        earlier=list(Compaction.objects.filter(session=session).order_by("-number")[:20]),
    )
