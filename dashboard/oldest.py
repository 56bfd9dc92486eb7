"""The five open incidents that have waited longest: which, since when, and until when."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from dashboard import addresses, reading
from dashboard.labels import EFFECTS, STATES, Label
from ledger import ids
from ledger.vocabulary import spoken
from recovery.models import Incident

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Waiting:
    """One open incident as the overview lists it; one on a session has no labels of a call."""

    id: UUID
    shown: str
    address: str
    tool: str
    call: UUID | None
    agent: str
    kind: str
    state: Label | None
    effect: Label | None
    opened_at: datetime
    review_at: datetime | None


def oldest(workspace_id: UUID) -> list[Waiting] | None:
    """The oldest first; None where they could not be read in time. Served by `incident_open`."""
    return reading.or_none(lambda: _read(workspace_id))


def _read(workspace_id: UUID) -> list[Waiting]:
    rows = Incident.objects.filter(workspace=workspace_id, closed_at=None)
    with reading.bounded():
        found = rows.select_related("call__agent", "session__agent").order_by("opened_at", "id")[
            :SHOWN
        ]
        return [_shown(each) for each in found]


def _shown(row: Incident) -> Waiting:
    return Waiting(
        id=row.id,
        shown=ids.shown("incident", row.id),
        address=addresses.of("incident", row.id),
        tool=row.call.tool if row.call else "session",
        call=row.call_id,
        agent=_agent(row),
        kind=spoken(row.kind),
        state=STATES[row.call.state] if row.call else None,
        effect=EFFECTS[row.call.effect] if row.call else None,
        opened_at=row.opened_at,
        review_at=row.review_at,
    )


def _agent(row: Incident) -> str:
    """Whose call or session it is."""
    of = row.call or row.session
    return of.agent.name if of else ""
