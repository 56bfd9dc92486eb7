"""Where calls stand, as three labels and a basis: state, effect, shown to the model (console, 2).

Three labels, never merged and always in this order; the basis says what a settled call rests on.
Everything is read for many calls at once, in a constant number of queries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dashboard.labels import EFFECTS, STATES, Label
from ledger import machine
from ledger.models import Delivery, Event, Fetch, Notice, ToolCall
from ledger.vocabulary import Actor, CallState, Cause
from recovery.models.resolutions import ResolutionEvidence

BROUGHT_NOTHING = frozenset(
    {Cause.WORKER_LOST, Cause.HANG, Cause.CONNECTION_LOST, Cause.GATEWAY_TIMEOUT,
     Cause.RESOURCE_KILLED, Cause.VANISHED, Cause.RESTORED}
)  # fmt: skip
"""Causes after which a failure rests on the policy and not on what the tool said."""
BACKED = ("checked", "document", "probe", "late_result")
RESTS_ON_RESULT = ("succeeded", "adopted", "interrupt_answered")
STATED = frozenset({"proved_done", "failed", "abandoned", "corrected"})


@dataclass(frozen=True, slots=True)
class Shown:
    """What the model was last shown of a call, and whether it is known to have read it."""

    word: str = "nothing yet"
    is_read: bool = False

    @property
    def label(self) -> Label:
        return Label(self.word.replace(" ", "_"), "plain", mark="shown")

    @property
    def text(self) -> str:
        if self.word == "nothing yet":
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
    settled = {call.id: call for call in calls if call.is_settled}
    kinds = [*machine.SETTLING, "corrected"]
    last = list(
        Event.objects.filter(call__in=settled, kind__in=kinds, to_state__in=_settled_states())
        .order_by("call_id", "-seq")
        .distinct("call_id")
    )
    backed = _backed({each.facts_json.get("resolution") for each in last} - {None})
    return {each.call_id: _basis(each, settled[each.call_id], backed) for each in last}


def _settled_states() -> list[str]:
    return [str(state) for state in CallState if state.is_settled]


def _backed(resolutions: set[Any]) -> set[str]:
    """Those of these resolutions that rest on more than a sentence."""
    if not resolutions:
        return set()
    rows = ResolutionEvidence.objects.filter(
        resolution__in=[UUID(each) for each in resolutions], evidence__kind__in=BACKED
    )
    return {each.hex for each in rows.values_list("resolution_id", flat=True)}


def _basis(event: Event, call: ToolCall, backed: set[str]) -> str:
    if event.actor is Actor.OPERATOR and event.kind in STATED:
        has_more = event.facts_json.get("resolution") in backed
        return "operator with evidence" if has_more else "operator's word only"
    if event.kind in RESTS_ON_RESULT and event.to_state is CallState.SUCCEEDED:
        return "handle" if event.from_state == CallState.PARKED else "tool result"
    if event.kind == "proved_done":
        return "probe"
    if event.kind == "failed" and call.cause not in BROUGHT_NOTHING:
        return "tool result"
    return "tool result" if event.kind == "imported" else "policy"
