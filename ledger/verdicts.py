"""The verdict: did the tool start, did the side effect happen, what did the model see (R14).

Each answer is folded from the call's events and names those that prove it. `unknown` is a legal
answer, an empty one is not. A last sentence says which rule, facts and deadline decided (R62).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from ledger import ids
from ledger.conversations import CORRECTION
from ledger.journal import events_of
from ledger.models import Attempt, Delivery, Event, Fetch, ToolCall
from ledger.vocabulary import Actor, AttemptKind, CallState, DeliveryKind, Effect, spoken

WHOSE_TURN = {
    CallState.RECORDED: "ledger",
    CallState.PAUSED: "person",
    CallState.SCHEDULED: "worker",
    CallState.RUNNING: "worker",
    CallState.PARKED: "outside",
    CallState.BACKING_OFF: "ledger",
    CallState.INTERRUPTED: "recovery",
    CallState.AMBIGUOUS: "operator",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, its sentence, and the sequence numbers of the events that prove it.

    `deliveries` are the offers that prove what a model saw, oldest first.
    """

    answer: str
    sentence: str
    events: list[int] = field(default_factory=list)
    deliveries: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The three answers, and what decided so far."""

    state: str
    whose_turn: str
    failure_point: str
    started: Answer
    effect: Answer
    model_saw: Answer
    decided: str

    def to_json(self) -> dict[str, Any]:
        """The verdict as the API gives it."""
        return asdict(self)


def verdict_for(call: ToolCall) -> Verdict:
    """Fold the events of a call into its verdict."""
    events = events_of(call.id)
    return Verdict(
        state=str(call.state),
        whose_turn=WHOSE_TURN.get(call.state, "nobody"),
        failure_point=str(call.failure_point),
        started=_started(call, events),
        effect=_effect(call, events),
        model_saw=_model_saw(call),
        decided=_decided(call, events),
    )


def _of(events: list[Event], *kinds: str) -> list[Event]:
    return [event for event in events if event.kind in kinds]


def _started(call: ToolCall, events: list[Event]) -> Answer:
    claims = _of(events, "started")
    if not claims and (brought := _of(events, "imported")):
        return _started_elsewhere(brought)
    if not claims:
        return Answer("no", "No worker has claimed this call.", [events[-1].seq])
    first = Attempt.objects.filter(call=call, kind=AttemptKind.RUN).earliest("fence")
    told = f"{_times(len(claims))}, first at {_instant(first.claimed_at)}"
    return Answer("yes", f"A worker claimed it {told}.", _seqs(claims))


def _times(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


def _instant(at: datetime) -> str:
    return f"{at:%H:%M:%S.%f}"[:-3] + " UTC"


def _started_elsewhere(brought: list[Event]) -> Answer:
    """An imported call was none of ours to start: only its result can say that it ran."""
    if brought[0].settles:
        return Answer("yes", "It ran elsewhere: the imported transcript holds its result.",
                      _seqs(brought))  # fmt: skip
    return Answer("unknown", "The imported transcript holds no result of it.", _seqs(brought))


def _effect(call: ToolCall, events: list[Event]) -> Answer:
    crossings = _of(events, "crossed")
    if corrected := [each for each in _of(events, "corrected") if _says(each)]:
        last = corrected[-1]
        return Answer(_says(last), f"An operator corrected it: {CORRECTED[_says(last)]}.",
                      _seqs([*crossings, last]))  # fmt: skip
    proof = [event for event in events if event.effect == call.effect][:1]
    if call.effect is Effect.NONE:
        return Answer("none", "The tool only reads; nothing was changed.", _seqs(events[:1]))
    if call.effect is Effect.NOT_BEGUN:
        return Answer("not_begun", "No attempt crossed the boundary; nothing was changed.",
                      _seqs(events[-1:]))  # fmt: skip
    if call.effect is Effect.POSSIBLE and not crossings:
        return Answer("unknown", "Nothing says whether it ran, and nothing proves what followed.",
                      _seqs(events[:1]))  # fmt: skip
    if call.effect is Effect.POSSIBLE:
        return Answer("unknown", "The boundary was crossed and nothing proves yet what followed.",
                      _seqs(crossings))  # fmt: skip
    how = _how_known(proof[0]) if proof else "the ledger says so"
    said = "happened" if call.effect is Effect.HAPPENED else "did not happen"
    return Answer(str(call.effect), f"Its effect {said}: {how}.", _seqs([*crossings, *proof]))


CORRECTED = {
    "happened": "its effect happened",
    "did_not_happen": "its effect did not happen",
    "unknown": "its effect cannot be known",
}


def _says(event: Event) -> str:
    """What a correction says of the effect; nothing where it says that the settlement stands."""
    answer = str(event.facts_json.get("answer", ""))
    return "unknown" if answer == "abandon" else answer if answer in CORRECTED else ""


HOW_KNOWN = {
    "succeeded": "the tool's own result is recorded",
    "adopted": "a late result of the only crossed attempt was adopted",
    "proved_done": "a probe found it outside",
    "attempt_failed": "the outside refused, or the tool proved that nothing began",
    "cleared_for_retry": "an authoritative probe of a dead attempt found nothing",
    "failed": "the tool's error is a known result",
    "imported": "the imported transcript holds the tool's own answer",
    "interrupt_answered": "it was never run; the result of the same call answers it",
}


def _how_known(event: Event) -> str:
    if event.actor is Actor.OPERATOR:
        backed = event.facts_json.get("backed")
        return "an operator stated it" + (" with evidence" if backed else "")
    return HOW_KNOWN.get(event.kind, f"event {event.kind}")


SAW = {
    DeliveryKind.REAL: "result",
    DeliveryKind.REPLAYED: "result",
    DeliveryKind.PARTIAL: "partial",
    DeliveryKind.NOTICE: "notice",
    DeliveryKind.OPERATOR_STATED: "statement",
}
"""What a model saw, by the kind of the delivery that it confirmed."""


def _model_saw(call: ToolCall) -> Answer:
    """From the deliveries of its turns; where there is none, from what its agent fetched."""
    shown = Delivery.objects.filter(call=call).select_related("turn")
    rows = list(shown.order_by("offered_at", "id"))
    if not rows:
        return _fetched(call)
    confirmed = [each for each in rows if each.acknowledged_at is not None]
    if not confirmed:
        sentence = f"{_told_to(rows)}. That it was sent to the model was never confirmed."
        return _seen("offered", f"It was offered: {sentence}", rows)
    answer = SAW[DeliveryKind(confirmed[0].kind)]
    if any(each.template == CORRECTION for each in confirmed):
        answer = "corrected"
    return _seen(answer, f"The model saw it: {_told_to(confirmed)}.", confirmed)


def _told_to(rows: Sequence[Delivery]) -> str:
    """What each turn was shown, in order."""
    return ", then ".join(f"{_what(each)} in turn {each.turn.number}" for each in rows)


def _what(row: Delivery) -> str:
    if row.template == CORRECTION:
        return "a correction"
    if row.template:
        return f"the {row.kind} '{row.template}'"
    return f"the {row.kind} result, sha256 {row.sha256[:16]}…,"


def _seen(answer: str, sentence: str, rows: Sequence[Delivery]) -> Answer:
    events = sorted({each.event_seq for each in rows})
    offers = [ids.shown("delivery", each.offer_id) for each in rows]
    return Answer(answer, sentence, events, list(dict.fromkeys(offers)))


def _fetched(call: ToolCall) -> Answer:
    fetches = list(Fetch.objects.filter(call=call).order_by("first_at"))
    if not fetches:
        return Answer("not_recorded", "No fetch of its outcome is recorded.", [])
    last = fetches[-1]
    what = f"state {last.state}" + (f", result sha256 {last.sha256[:16]}…" if last.sha256 else "")
    told = f"first at {_instant(last.first_at)}, {_times(sum(each.times for each in fetches))}"
    return Answer(
        "fetched",
        f"Its agent fetched {what} through the API, {told} in all.",
        [fetch.event_seq for fetch in fetches],
    )


QUIET = ("evidence_added", "decided", "taken_back", "progress", "late_result", "proven_dead",
         "handle_stored", "polled", "poll_ended", "probed", "probe_ended", "fence_lost",
         "cancel_requested", "clock_jump", "step_failed",
         "budget_granted")  # fmt: skip


def _decided(call: ToolCall, events: list[Event]) -> str:
    """One sentence: the last event that moved the call, its rule, and what is due next."""
    last = next(event for event in reversed(events) if event.kind not in QUIET)
    facts = last.facts_json
    parts = [f"Event {last.seq} ({last.kind}, by {last.actor})"]
    if rule := facts.get("rule"):
        parts.append(f"rule {rule}")
    if last.cause or call.cause:
        parts.append(spoken(f"cause {last.cause or call.cause}"))
    if deadline := facts.get("deadline"):
        parts.append(f"deadline {deadline}".replace("_", "-"))
    grounds = facts.get("grounds", "")
    due = f" Next due: {call.due_at:%H:%M:%S} UTC." if call.due_at else ""
    return f"{', '.join(parts)}{': ' + grounds if grounds else '.'}{due}"


def _seqs(events: list[Event]) -> list[int]:
    return [event.seq for event in events]
