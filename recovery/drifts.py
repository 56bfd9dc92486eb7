"""Drifts told: what came to a session from elsewhere and was refused is an incident (R111).

The ledger notes a drift in the transaction that refuses it, and knows nothing of incidents; this
pass opens one for each session and field, or writes on the one that is open. It moves no call and
changes no effect: a crossed attempt goes up the ladder like any other (semantics, section 17).
"""

from django.db import transaction

from ledger.models import Drift, Session
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import IncidentKind, spoken
from recovery import incidents


def tell(limit: int) -> int:
    """Tell of the drifts that were refused and not told yet; return how many."""
    due = Drift.objects.filter(blocked=True, told_at__isnull=True).order_by("id")
    return sum(map(_one, due.values_list("id", flat=True)[:limit]))


@transaction.atomic
def _one(drift_id: int) -> bool:
    session = (
        Session.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
        .filter(drifts__id=drift_id)
        .first()
    )
    if session is None:
        return False
    # Another watchdog may have told it between our look and our lock.
    drift = Drift.objects.filter(id=drift_id, told_at__isnull=True).first()
    if drift is None:
        return False
    if drift.epoch == session.epoch:
        _report(session, drift)
    Drift.objects.filter(id=drift_id).update(told_at=ClockTimestamp())
    return True


def _report(session: Session, drift: Drift) -> None:
    field = spoken(drift.field)
    times = "once" if drift.times == 1 else f"{drift.times} times"
    incidents.report_of_session(
        session,
        IncidentKind.STALE_BINDING,
        subject=drift.field,
        grounds=f"The session came back at {drift.at} with another {field} than it is bound to, "
        f"{times} so far. What was asked for was refused; nothing was changed.",
        facts={
            "field": drift.field,
            "bound": drift.bound,
            "stated": drift.stated,
            "epoch": drift.epoch,
            "at": drift.at,
            "times": drift.times,
        },
    )
