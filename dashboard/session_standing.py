"""Where one session stands: its turn, what is unresolved in it, its binding, what was handed on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.template.defaultfilters import pluralize

from ledger import ids, unresolved
from ledger.models import Compaction, Drift, HandOff, Import, Session, ToolCall, Turn
from ledger.vocabulary import spoken
from recovery.models import Incident

UNRESOLVED_SHOWN = 20
REPAIRS = {
    "call_dropped": "call{s} dropped",
    "call_restored": "call{s} restored",
    "duplicate_dropped": "duplicate{s} dropped",
    "moved": "result{s} moved",
    "orphan_dropped": "orphan{s} dropped",
    "part_dropped": "part{s} dropped",
    "prompt_repeated": "repeated prompt{s}",
    "replayed": "result{s} replayed",
    "result_capped": "result{s} capped",
    "step_folded": "step{s} folded",
    "synthesized": "result{s} synthesized",
}
"""What a repair changed, where a number before it needs more than the words of its kind."""


@dataclass(frozen=True, slots=True)
class Open:
    """An unresolved call and the incident on it, if there is one."""

    call: ToolCall
    incident_id: UUID | None
    is_own: bool

    @property
    def number(self) -> int:
        """The number of its turn; 0 outside any."""
        return self.call.turn.number if self.call.turn else 0

    @property
    def anchor(self) -> str:
        return ids.shown("call", self.call.id)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the head of a session's page says."""

    session: Session
    turn: Turn | None
    open: Sequence[Open]
    drifts: int
    incidents: Sequence[Incident]
    handoffs: Sequence[HandOff]
    imported: Import | None
    compactions: int

    @property
    def shown(self) -> Sequence[Open]:
        return self.open[:UNRESOLVED_SHOWN]

    @property
    def first(self) -> Open | None:
        """The first unresolved call that has its place in this session."""
        return next((each for each in self.open if each.is_own), None)

    @property
    def repaired(self) -> str:
        """What the import's repair changed, by kind: `2 orphans dropped, 1 result moved`."""
        changes = self.imported.report["report"]["changes"] if self.imported else []
        counted = Counter(str(each["kind"]) for each in changes)
        return ", ".join(changed(kind, number) for kind, number in counted.most_common())

    @property
    def numbers(self) -> tuple[Any, ...]:
        """What the head is made of: it is drawn anew when one of them moves."""
        calls = [(each.call.id.hex, each.call.seq) for each in self.open]
        incidents = [(each.id.hex, each.state) for each in self.incidents]
        session = self.session
        return (session.version, session.epoch, session.stopped_at, self.drifts, calls, incidents)


def changed(kind: str, number: int) -> str:
    """How many changes of one kind a repair made: `2 orphans dropped`."""
    words = REPAIRS.get(kind, spoken(kind)).format(s=pluralize(number))
    return f"{number} {words}"


def of(session: Session) -> Standing:
    """Read it in a fixed number of queries."""
    open_calls = unresolved.of_session(session.id)
    by_call = Incident.objects.filter(
        call__in=[each.id for each in open_calls], closed_at__isnull=True
    )
    incidents = dict(by_call.order_by("id").values_list("call_id", "id"))
    found = [
        Open(each, incidents.get(each.id), each.session_id == session.id) for each in open_calls
    ]
    drifts = Drift.objects.filter(session=session, epoch=session.epoch, blocked=True)
    of_session = Incident.objects.filter(session=session, closed_at__isnull=True)
    handoffs = HandOff.objects.filter(from_session=session) | HandOff.objects.filter(
        to_session=session
    )
    return Standing(
        session=session,
        turn=Turn.objects.filter(session=session, closed_at__isnull=True).first(),
        open=found,
        drifts=drifts.count(),
        incidents=list(of_session.order_by("id")[:10]),
        handoffs=list(handoffs.select_related("to_agent", "from_session").order_by("-id")[:10]),
        imported=Import.objects.defer("body").filter(session=session).first(),
        compactions=Compaction.objects.filter(session=session).count(),
    )
