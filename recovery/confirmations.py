"""Confirming: a person has looked at an incident that asks for nothing but that.

After a restore, a doubled send, a wait without end, a hand-off that nobody took or lines lost by a
compaction there is nothing to decide about the call;
somebody has to have looked, and says so on grounds. A `recovery` incident is ended by a
resolution, a `contradiction` by a correction; neither by this.

Locks: call or session, incident, then appends.
"""

from uuid import UUID

from ledger.errors import LedgerError, NotFound
from ledger.models import Session, ToolCall
from ledger.transactions import repeatable
from ledger.vocabulary import IncidentKind
from recovery import incidents
from recovery.models import Incident

CONFIRMABLE = frozenset(
    {
        IncidentKind.RESTORED,
        IncidentKind.REPEATED_SEND,
        IncidentKind.UNBOUNDED_WAIT,
        IncidentKind.COMPACTION_LOSS,
        IncidentKind.HAND_OFF,
        IncidentKind.STALE_BINDING,
    }
)


class NotConfirmable(LedgerError):
    """An incident of this kind needs a decision, not only that somebody has looked."""

    code = "not_confirmable"
    sentence = (
        "An incident of the kind {kind} is not ended by looking at it. Nothing was recorded. "
        "Decide about its call: that ends it."
    )


@repeatable
def confirm(*, workspace_id: UUID, incident_id: UUID, by_name: str, grounds: str) -> Incident:
    """Close an incident that a person has looked at; return it. Told twice, it answers the same.

    Raises NotFound, and NotConfirmable for kinds that need a decision.
    """
    incident = Incident.objects.filter(workspace=workspace_id, id=incident_id).first()
    if incident is None:
        raise NotFound(noun="incident")
    _lock(incident)
    incident.refresh_from_db()
    if incident.kind not in CONFIRMABLE:
        raise NotConfirmable(kind=incident.kind)
    if incident.closed_at is None:
        incidents.resolved(incident, by=by_name, grounds=grounds, rule="confirmed")
        incident.refresh_from_db()
    return incident


def _lock(incident: Incident) -> None:
    if incident.call_id is None:
        rows = Session.objects.select_for_update(no_key=True)
        rows.filter(incidents=incident.id).get()
    else:
        ToolCall.objects.locked(incident.call_id)
