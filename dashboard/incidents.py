"""What the page of an incident shows: the three questions, the file on its call, who works on it.

Everything is read from the ledger and from the verbs that would act: nothing is decided here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from dashboard import budgets, figures, histories, questions, standing, twins
from dashboard.budgets import Row as BudgetRow
from dashboard.figures import Timeline
from dashboard.questions import Questions
from dashboard.standing import Standing
from dashboard.twins import Twin
from ledger import clock, ids, masks
from ledger.masks import Hidden
from ledger.models import Evidence, ToolCall
from ledger.permissions import Person
from ledger.verdicts import Verdict
from ledger.vocabulary import CallState, IncidentKind, ResolutionStage, spoken
from recovery import (
    asides,
    casefiles,
    changes,
    confirmations,
    corrections,
    requests,
    rulings,
    stages,
    takings,
)
from recovery.changes import Change
from recovery.models import Aside, Assignment, Dispute, Incident, Resolution, Step, Taking

KINDS = {
    IncidentKind.RECOVERY: "a call whose outcome is not known",
    IncidentKind.STALE_BINDING: "the session came back with another binding",
    IncidentKind.COMPACTION_LOSS: "a compaction dropped lines of unresolved calls",
    IncidentKind.TRANSCRIPT: "the transcript does not pair",
    IncidentKind.CONTRADICTION: "a late finding contradicts how the call was settled",
    IncidentKind.REPEATED_SEND: "the same request went out twice",
    IncidentKind.UNBOUNDED_WAIT: "a wait without an end",
    IncidentKind.MALFORMED_SNAPSHOT: "a snapshot cannot be read",
    IncidentKind.RESTORED: "a restored backup may not know what happened",
    IncidentKind.HAND_OFF: "nobody took a hand-off",
    IncidentKind.TOOL_CHANGED: "the tool changed under an open call",
}


STANDS: dict[str, str] = {
    CallState.SUCCEEDED: "has succeeded",
    CallState.FAILED: "has failed",
    CallState.EXPIRED: "has expired",
}
"""How a call stands, as the end of a sentence, where that is not "is" and the word itself."""


@dataclass(frozen=True, slots=True)
class Given:
    """One decision with how far it has come, its events and its evidence."""

    row: Resolution
    stage: ResolutionStage
    is_pending: bool
    until: datetime | None
    events: list[Any]
    evidence: list[Evidence]
    holds: bool = False
    is_disputed: bool = False
    is_unanswerable: bool = False
    """Whether it waits for a second person where nobody else may approve."""

    @property
    def is_request(self) -> bool:
        return self.is_pending and self.stage is ResolutionStage.REQUESTED

    @property
    def is_disputable(self) -> bool:
        """Whether it waits or holds, and nobody disputed it: the verb looks again."""
        return not self.is_disputed and (self.is_pending or self.holds)

    @property
    def came(self) -> str:
        """How far it has come, in words."""
        return spoken(self.stage)

    @property
    def came_besides(self) -> str:
        """The same where its last event does not say it already."""
        return "" if self.events and self.events[-1].kind == self.stage else self.came

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return rulings.in_words(self.row.answer, self.row.then)


class Round(NamedTuple):
    """One look at the case: the step that was taken, and the rungs passed over on the way to it."""

    taken: Step
    passed: list[Step]


def rounds_of(steps: Sequence[Step]) -> list[Round]:
    """The steps of recovery round by round, the newest first."""
    rounds: list[Round] = []
    passed: list[Step] = []
    for step in steps:
        if step.taken:
            rounds.append(Round(step, passed))
            passed = []
        else:
            passed.append(step)
    return rounds[::-1]


class Drift(NamedTuple):
    """What a session is bound to, and what it came back with last."""

    field: str
    bound: str
    stated: str


@dataclass(frozen=True, slots=True)
class File:
    """The file on one incident. `version` is the decision version, made by `moved`."""

    incident: Incident
    call: ToolCall | None
    now: datetime
    verdict: Verdict | None = None
    standing: Standing | None = None
    questions: Questions | None = None
    timeline: Timeline | None = None
    lock: rulings.Lock | None = None
    taken: Taking | None = None
    aside: Aside | None = None
    assigned: Assignment | None = None
    budgets: list[BudgetRow] = field(default_factory=list)
    disputes: list[Dispute] = field(default_factory=list)
    moved: list[Change] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    twins: list[Twin] = field(default_factory=list)
    hidden: Hidden | None = None

    @property
    def twin_acted(self) -> bool:
        return any(each.acted for each in self.twins)

    @property
    def shown(self) -> str:
        return ids.shown("incident", self.incident.id)

    @property
    def call_shown(self) -> str:
        return ids.shown("call", self.call.id) if self.call else ""

    @property
    def version(self) -> int:
        return changes.version_after(self.moved)

    @property
    def title(self) -> str:
        return self.call.tool if self.call else self._session_title

    @property
    def heading(self) -> str:
        """The title of its page: state, tool and id."""
        state = f"{self.standing.state.text}: " if self.standing else ""
        return f"{state}{self.title} · incident {self.incident.id.hex[-8:]}"

    @property
    def _session_title(self) -> str:
        session = self.incident.session
        kind = spoken(self.incident.kind).capitalize()
        label = session.label or f"session {session.id.hex[-8:]}" if session else "session"
        return f"{kind}: {label}"

    @property
    def about(self) -> str:
        if self.drift:
            return f"the session came back with another {self.drift.field}"
        return KINDS.get(self.incident.kind, str(self.incident.kind))

    @property
    def subject(self) -> str:
        """What it is about within its kind, where no sentence says it."""
        return "" if self.drift else self.incident.subject

    @property
    def drift(self) -> Drift | None:
        """What differs of a stale binding; None for any other file."""
        if self.incident.kind is not IncidentKind.STALE_BINDING:
            return None
        told = [step.facts for step in self.steps if "stated" in step.facts]
        last = told[-1] if told else self.incident.facts
        field = spoken(self.incident.subject)
        return Drift(field, last.get("bound", ""), last.get("stated", ""))

    @property
    def rounds(self) -> list[Round]:
        return rounds_of(self.steps)

    @property
    def stands(self) -> str:
        """How its call stands, as the end of a sentence: `has failed`, `is parked`."""
        state = self.call.state if self.call else ""
        return STANDS.get(state, f"is {spoken(state)}")

    @property
    def closed_as(self) -> str:
        """How it was closed, in a word; empty while it is open."""
        return "" if self.is_open else str(self.incident.state)

    @property
    def pending(self) -> Given | None:
        return next((each for each in self.given if each.is_pending), None)

    @property
    def decided(self) -> Given | None:
        """The decision that waits, or else the one that holds; None where the machine settled."""
        return self.pending or next((each for each in self.given if each.holds), None)

    @property
    def is_recovery(self) -> bool:
        return self.incident.kind is IncidentKind.RECOVERY

    @property
    def is_open(self) -> bool:
        return self.incident.closed_at is None

    @property
    def is_overdue(self) -> bool:
        return self.is_open and late(self.incident, self.now)

    @property
    def moves(self) -> bool:
        """Whether the page can still change by itself."""
        return self.is_open or self.pending is not None

    @property
    def is_confirmable(self) -> bool:
        return self.is_open and self.incident.kind in confirmations.CONFIRMABLE

    @property
    def is_the_machines(self) -> bool:
        """Whether recovery still finds out, so that a person may end its turn."""
        return self.is_open and self.call is not None and self.call.state is CallState.INTERRUPTED

    @property
    def is_asked(self) -> bool:
        """Whether a decision on the call is waited for, so that the form is drawn."""
        undecided = self.call is not None and self.call.state in rulings.UNDECIDED
        return self.is_open and undecided and self.is_recovery and self.pending is None

    @property
    def is_correctable(self) -> bool:
        return self.call is not None and self.call.is_settled and self.pending is None

    @property
    def contradicted(self) -> bool:
        return self.is_open and self.incident.kind is IncidentKind.CONTRADICTION

    @property
    def unlocks_at(self) -> datetime | None:
        return (self.lock.unlocks_at or self.lock.dead_by) if self.lock else None

    @property
    def wants_death(self) -> bool:
        """Whether the lock on denial waits for a person's word that a machine is off."""
        return self.lock is not None and self.unlocks_at is None

    def since(self, version: int) -> list[Change]:
        """What moved the file after this version was looked at."""
        return self.moved[max(0, version - 1) :]

    @property
    def numbers(self) -> tuple[Any, ...]:
        """What changes when the page does."""
        return (self.version, self.incident.state, self.incident.pending_until, len(self.steps),
                self.call.seq if self.call else 0, self.incident.escalation_level,
                self.standing and self.standing.shown.text,
                self.is_overdue, self.lock and self.lock.awaits,
                self.pending and self.pending.is_unanswerable,
                [each.standing for each in self.budgets],
                self.taken and (self.taken.by_name, int(self._idle_s // 60)),
                self.aside and self.aside.until,
                self.assigned and self.assigned.to_name)  # fmt: skip

    @property
    def _idle_s(self) -> float:
        return (self.now - self.taken.active_at).total_seconds() if self.taken else 0.0


def late(incident: Incident, now: datetime) -> bool:
    """Whether its review time has been over at least once."""
    return incident.escalation_level > 0 or bool(incident.review_at and incident.review_at < now)


def of(incident: Incident) -> File:
    """Read the file of an incident; `call` and `pending` come with the row."""
    call, now = incident.call, clock.now()
    in_hand: dict[str, Any] = {
        "taken": takings.of([incident.id]).get(incident.id),
        "aside": asides.of([incident.id]).get(incident.id),
        "assigned": asides.assigned([incident.id]).get(incident.id),
    }
    steps = list(Step.objects.filter(incident=incident).order_by("id"))
    if call is None:
        return File(incident, None, now, steps=steps, **in_hand)
    evidence = list(Evidence.objects.filter(call=call).order_by("at").defer("body"))
    asked = questions.of(call)
    disputes = list(Dispute.objects.filter(call=call).select_related("resolution", "decision"))
    return File(
        incident=incident,
        call=call,
        now=now,
        verdict=asked.verdict,
        standing=standing.of(call),
        questions=asked,
        timeline=figures.timeline_of(histories.read(call, now)),
        lock=rulings.lock_of(casefiles.of(call, incident)) if incident.closed_at is None else None,
        budgets=budgets.of_call(call) if incident.closed_at is None else [],
        moved=changes.of(call.id),
        evidence=evidence,
        given=_given(incident, call, evidence, disputes),
        steps=steps,
        disputes=disputes,
        **in_hand,
        twins=twins.of(call),
        hidden=masks.of(call),
    )


def _given(
    incident: Incident, call: ToolCall, evidence: Sequence[Evidence], disputes: Sequence[Dispute]
) -> list[Given]:
    rows = Resolution.objects.filter(call=call).prefetch_related("events", "backing")
    held = corrections.held_by(call) if call.is_settled else None
    disputed = {each.resolution_id for each in disputes}
    known = {each.id: each for each in evidence}
    return [
        Given(
            row=row,
            stage=stages.of(row),
            is_pending=incident.pending_id == row.id,
            until=incident.pending_until if incident.pending_id == row.id else None,
            events=sorted(row.events.all(), key=lambda each: each.at),
            holds=row == held,
            is_disputed=row.id in disputed,
            is_unanswerable=_is_unanswerable(incident, row),
            evidence=[known[b.evidence_id] for b in row.backing.all() if b.evidence_id in known],
        )
        for row in rows.order_by("at")
    ]


def _is_unanswerable(incident: Incident, row: Resolution) -> bool:
    if incident.pending_id != row.id or stages.of(row) is not ResolutionStage.REQUESTED:
        return False
    return requests.nobody_but(row.by_id, row.workspace_id)


def rows_of(person: Person) -> Any:
    """The incidents of a person's workspace, with what a page needs of each."""
    rows = Incident.objects.filter(workspace=person.workspace_id)
    return rows.select_related(
        "call__agent",
        "call__policy",
        "call__tool_version",
        "call__session",
        "call__turn",
        "session__agent",
        "pending",
    )
