"""What the peek panel shows of a row of a list: the three questions, why, and what is due next.

A short reading of what the pages of calls and incidents show whole; nothing is decided here, and
whatever the row, it costs the same few queries.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.urls import reverse

from dashboard import calls, incidents, questions, standing
from dashboard.inbox import HOLDS
from dashboard.questions import Questions
from dashboard.standing import Standing
from ledger import clock, ids
from ledger.models import Interrupt, ToolCall
from ledger.vocabulary import Deadline, spoken
from recovery import asides, takings
from recovery.models import Incident

EVERY = "5s"
THEN: dict[str, str] = {
    Deadline.SCHEDULE_TO_START: "a worker must have taken it",
    Deadline.START_TO_CLOSE: "the attempt must have ended",
    Deadline.SCHEDULE_TO_CLOSE: "all attempts must have ended",
    Deadline.HEARTBEAT: "the attempt must have been heard of",
    Deadline.BACKOFF: "the next attempt begins",
    Deadline.NEXT_POLL: "the outside is asked for its handle",
    Deadline.NEXT_STEP: "recovery takes its next step",
    Deadline.RECOVERY_WINDOW: "recovery asks a person",
    Deadline.REVIEW: "a wider circle is asked",
    Deadline.INTERRUPT_EXPIRY: "the question expires",
}
"""What happens, or must have happened, when a deadline comes."""
CARRIED_OUT = "what was decided is carried out"
BROUGHT_BACK = "it comes back from being set aside"


class Due(NamedTuple):
    """An instant that is waited for, and what comes with it."""

    at: datetime
    then: str


class Way(NamedTuple):
    """A page that shows the whole."""

    text: str
    address: str


@dataclass(frozen=True, slots=True)
class Peek:
    """One row at a glance. Without a call there are no questions: it is about a session."""

    shown: str
    title: str
    part_at: str
    ways: list[Way]
    why: str
    dues: list[Due]
    is_closed: bool
    call: ToolCall | None = None
    standing: Standing | None = None
    questions: Questions | None = None
    runbook: str = ""
    people: list[str] = field(default_factory=list)

    @property
    def every(self) -> str:
        """How often it is asked for again: never once nothing can change."""
        return "" if self.is_closed else EVERY

    @property
    def numbers(self) -> tuple[Any, ...]:
        """What changes when the panel does."""
        call = self.call
        moves = (call.seq, call.delivered_at, call.cancel_requested_at) if call else ()
        return (self.shown, self.why, self.is_closed, *moves, *self.dues, *self.people)


def of_call(call: ToolCall) -> Peek:
    """A call; its open question and its open incident are named as ways to go on."""
    shown = ids.shown("call", call.id)
    holds = list(Interrupt.objects.filter(call=call, ended_at__isnull=True))
    files = Incident.objects.filter(call=call, closed_at__isnull=True).order_by("opened_at")
    reasons = [HOLDS.get(each.reason, each.reason) for each in holds]
    return Peek(
        shown=shown,
        title=call.tool,
        part_at=reverse("calls-peek", args=[shown]),
        ways=[
            Way("Open the call", reverse("calls-detail", args=[shown])),
            *(Way("Open its question", reverse("inbox-hold", args=[each.id])) for each in holds),
            *(Way("Open its incident", _page_of(each)) for each in files),
        ],
        why=_sentences(*reasons, _cause(call.cause), _reason(call.reason)),
        dues=_in_order(_armed(call)),
        is_closed=call.is_settled,
        runbook=calls.runbook_of(call),
        **_answers(call),
    )


def of_incident(incident: Incident) -> Peek:
    """An incident, on a call or on a session; the row comes with its call and the policy."""
    file = incidents.File(incident, incident.call, clock.now())
    shown, call = file.shown, incident.call
    return Peek(
        shown=shown,
        title=file.title,
        part_at=reverse("inbox-peek", args=[shown]),
        ways=[Way("Open the incident", _page_of(incident)), *_way_to(call)],
        why=_sentences(file.about, _cause(incident.cause), _reason(incident.reason)),
        dues=_in_order([*_armed(call), *_dues(incident)]),
        is_closed=not file.moves,
        runbook=incident.runbook,
        people=list(_people(incident)),
        **(_answers(call) if call else {}),
    )


def _answers(call: ToolCall) -> dict[str, Any]:
    return {"call": call, "standing": standing.of(call), "questions": questions.of(call)}


def _page_of(incident: Incident) -> str:
    return reverse("inbox-incident", args=[ids.shown("incident", incident.id)])


def _way_to(call: ToolCall | None) -> Iterable[Way]:
    if call is not None:
        yield Way("Open its call", reverse("calls-detail", args=[ids.shown("call", call.id)]))


def _sentences(*parts: str) -> str:
    """The parts that say something, each as a sentence."""
    said = [each[0].upper() + each[1:] + "." for each in parts if each]
    return spoken(" ".join(said))


def _cause(word: str) -> str:
    return f"cause: {word}" if word else ""


def _reason(word: str) -> str:
    return f"reason: {word}" if word else ""


def _armed(call: ToolCall | None) -> Iterable[Due]:
    if call is None:
        return
    for each in Deadline:
        at = getattr(call, f"{each}_at")
        if at is not None:
            yield Due(at, THEN[each])


def _dues(incident: Incident) -> Iterable[Due]:
    if incident.pending_until is not None:
        yield Due(incident.pending_until, CARRIED_OUT)
    if incident.closed_at is None and incident.review_at is not None:
        yield Due(incident.review_at, THEN[Deadline.REVIEW])
    aside = asides.of([incident.id]).get(incident.id)
    if aside is not None:
        yield Due(aside.until, BROUGHT_BACK)


def _in_order(dues: Iterable[Due]) -> list[Due]:
    """The earliest of each kind, the next one first."""
    first: dict[str, Due] = {}
    for due in sorted(dues):
        first.setdefault(due.then, due)
    return list(first.values())


def _people(incident: Incident) -> Iterable[str]:
    """Who has it in hand, in words."""
    taken = takings.of([incident.id]).get(incident.id)
    if taken is not None:
        yield f"Taken by {taken.by_name}"
    assigned = asides.assigned([incident.id]).get(incident.id)
    if assigned is not None:
        yield f"Assigned to {assigned.to_name}"
