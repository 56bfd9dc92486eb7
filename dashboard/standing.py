"""Where calls stand, as three labels and a basis: state, effect, shown to the model (console, 2).

Three labels, never merged and always in this order; the basis says what a settled call rests on.
Everything is read for many calls at once, in a constant number of queries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from dashboard.labels import EFFECTS, STATES, Label, reading_mark
from ledger.models import Delivery, Event, Fetch, Notice, ToolCall
from recovery import label_queries
from recovery.label_queries import NOTHING_YET


@dataclass(frozen=True, slots=True)
class Shown:
    """What the model was last shown of a call, and whether it is known to have read it."""

    word: str = NOTHING_YET
    is_read: bool = False

    @property
    def label(self) -> Label:
        return Label(self.word.replace(" ", "_"), "plain", mark="shown")

    @property
    def mark(self) -> str:
        """The id of its symbol."""
        return reading_mark(self.is_read)

    @property
    def text(self) -> str:
        if self.word == NOTHING_YET:
            return self.word
        return f"{self.word}, {'read' if self.is_read else 'not read yet'}"


@dataclass(frozen=True, slots=True)
class Standing:
    """The labels of one call. `basis` is empty while it is open."""

    state: Label
    effect: Label
    shown: Shown
    basis: str = ""


def of(call: ToolCall) -> Standing:
    """The labels of one call."""
    return of_many([call])[call.id]


def of_many(calls: Sequence[ToolCall]) -> dict[UUID, Standing]:
    """The labels of these calls, by id."""
    shown, basis = shown_of([call.id for call in calls]), basis_of(calls)
    return {
        call.id: Standing(
            STATES[call.state], EFFECTS[call.effect], shown.get(call.id, Shown()),
            basis.get(call.id, ""),
        )
        for call in calls
    }  # fmt: skip


def shown_of(call_ids: Iterable[UUID]) -> dict[UUID, Shown]:
    """What the model was shown last; calls of which nothing was shown are not there.

    A delivery says more than a fetch: it names the turn and waits for an acknowledgement. A
    fetch is read by whoever fetched it.
    """
    wanted = list(call_ids)
    fetched = Fetch.objects.filter(call__in=wanted).order_by("call_id", "-first_at")
    told = Notice.objects.filter(call__in=wanted).values_list("call_id", "sha256", "kind")
    kinds = {(call_id, sha256): kind for call_id, sha256, kind in told}
    found = {}
    for row in fetched.distinct("call_id"):
        word = kinds.get((row.call_id, row.sha256), "real" if row.sha256 else "notice")
        found[row.call_id] = Shown(word, is_read=True)
    offered = Delivery.objects.filter(call__in=wanted).order_by("call_id", "-offered_at")
    return found | {
        row.call_id: Shown(str(row.kind), is_read=row.acknowledged_at is not None)
        for row in offered.distinct("call_id")
    }


def basis_of(calls: Sequence[ToolCall]) -> dict[UUID, str]:
    """What each settled call rests on; open ones are not there."""
    settled = [call.id for call in calls if call.is_settled]
    last = Event.objects.filter(label_queries.SETTLES, call__in=settled)
    last = last.order_by("call_id", "-seq").distinct("call_id")
    return dict(last.annotate(basis=label_queries.BASIS).values_list("call_id", "basis"))
