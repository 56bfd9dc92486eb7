"""How far a resolution has come, folded from its events; and the one way to write such an event."""

from datetime import timedelta

from ledger.models.fields import ClockTimestamp
from ledger.permissions import Person
from ledger.vocabulary import ResolutionStage
from recovery.models import ENDS, Incident, Resolution, ResolutionEvent


def of(resolution: Resolution) -> ResolutionStage:
    """The stage that a resolution is at."""
    kinds = {each.kind for each in resolution.events.all()}
    if ended := kinds & set(ENDS):
        return ResolutionStage(ended.pop())
    if resolution.needs_second_person and ResolutionStage.APPROVED not in kinds:
        return ResolutionStage.REQUESTED
    return ResolutionStage.PENDING


def write(
    resolution: Resolution,
    kind: ResolutionStage,
    *,
    by: Person | None = None,
    grounds: str = "",
    event_seq: int | None = None,
) -> ResolutionEvent:
    """Add an event, in the caller's transaction, under the call's lock."""
    return ResolutionEvent.objects.create(
        workspace_id=resolution.workspace_id,
        resolution=resolution,
        kind=kind,
        by_id=by.id if by else None,
        by_name=by.name if by else "",
        grounds=grounds,
        event_seq=event_seq,
    )


def end(
    incident: Incident,
    kind: ResolutionStage,
    *,
    by: Person | None = None,
    grounds: str = "",
    event_seq: int | None = None,
) -> None:
    """End the decision that waits on an incident; nothing waits there any more."""
    assert incident.pending is not None  # noqa: S101 its callers have looked
    write(incident.pending, kind, by=by, grounds=grounds, event_seq=event_seq)
    Incident.objects.filter(id=incident.id).update(pending=None, pending_until=None)
    incident.pending = incident.pending_until = None


def await_until(incident: Incident, resolution: Resolution, seconds: float) -> None:
    """Let a decision wait on its incident: to be approved, or to be carried out."""
    Incident.objects.filter(id=incident.id).update(
        pending=resolution, pending_until=ClockTimestamp() + timedelta(seconds=seconds)
    )
    incident.refresh_from_db()
