"""What became of compactions and hand-offs, as incidents of the session (R107; semantics, 16).

The ledger cannot open incidents, so it leaves findings: a comparison in which lines were missing,
an offer that was declined or that nobody answered. A sweep takes each up once, in a transaction of
its own. It decides nothing about a call: the calls go on under their own deadlines meanwhile.

Locks: session, then the finding.
"""

from collections.abc import Callable, Iterable
from uuid import UUID

from django.db import transaction

from ledger import handoffs, ids
from ledger.models import CompactionCheck, HandOff, Session
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import HandOffEnd, IncidentKind
from recovery import incidents
from recovery.models import Incident

NOBODY_TOOK_IT = (HandOffEnd.DECLINED, HandOffEnd.EXPIRED)


def sweep(limit: int) -> int:
    """Expire what nobody answered, then take up what was found; return how many rows."""
    return handoffs.expire_due(limit) + _take_up_checks(limit) + _take_up_offers(limit)


def _take_up_checks(limit: int) -> int:
    """Comparisons in order; served by `check_to_take_up`."""
    found = CompactionCheck.objects.filter(taken_up_at__isnull=True).order_by("id")
    return _each(found.values_list("id", "compaction__session_id")[:limit], _judge)


def _take_up_offers(limit: int) -> int:
    """Offers that ended without an owner; served by `hand_off_to_take_up`."""
    found = HandOff.objects.filter(ended_as__in=NOBODY_TOOK_IT, taken_up_at__isnull=True)
    rows = found.order_by("ended_at").values_list("id", "from_session_id")[:limit]
    return _each(rows, _report_offer)


def _each(rows: Iterable[tuple[UUID, UUID]], act: Callable[[UUID, Session], bool]) -> int:
    return sum(_one(row_id, session_id, act) for row_id, session_id in rows)


def _one(row_id: UUID, session_id: UUID, act: Callable[[UUID, Session], bool]) -> bool:
    with transaction.atomic():
        session = (
            Session.objects.select_for_update(no_key=True, skip_locked=True)
            .filter(id=session_id)
            .first()
        )
        return session is not None and act(row_id, session)


def _judge(check_id: UUID, session: Session) -> bool:
    """Open the incident of what was missing, or close the one that this comparison ends."""
    check = CompactionCheck.objects.filter(id=check_id, taken_up_at__isnull=True).first()
    if check is None:
        return False
    if check.missing:
        _report_loss(check, session)
    else:
        _close_loss(check, session)
    CompactionCheck.objects.filter(id=check.id).update(taken_up_at=ClockTimestamp())
    return True


def _report_loss(check: CompactionCheck, session: Session) -> None:
    lost = [ids.shown("call", each) for each in check.missing]
    incidents.report_of_session(
        session,
        IncidentKind.COMPACTION_LOSS,
        subject=check.compaction_id.hex,
        grounds=f"The agent's transcript does not name {len(lost)} of the "
        f"{len(check.compaction.unresolved)} unresolved calls that compaction "
        f"{check.compaction.number} carried over, first {lost[0]}. It was given their lines again.",
        facts={
            "compaction": ids.shown("compaction", check.compaction_id),
            "missing": lost,
            "transcript_sha256": check.transcript_sha256,
        },
    )


def _close_loss(check: CompactionCheck, session: Session) -> None:
    incident = Incident.objects.filter(
        session=session,
        kind=IncidentKind.COMPACTION_LOSS,
        subject=check.compaction_id.hex,
        closed_at__isnull=True,
    ).first()
    if incident is not None:
        incidents.found_again(
            incident, grounds="A later comparison found every unresolved call in the transcript."
        )


def _report_offer(hand_off_id: UUID, session: Session) -> bool:
    row = HandOff.objects.filter(id=hand_off_id, taken_up_at__isnull=True).first()
    if row is None:
        return False
    said = f": {row.ended_why}" if row.ended_why else ""
    incidents.report_of_session(
        session,
        IncidentKind.HAND_OFF,
        subject=row.id.hex,
        grounds=f"The hand-off to {row.to_agent.name} was {row.ended_as}{said}. The session keeps "
        "its unresolved calls. Somebody has to say who goes on with them.",
        facts={"hand_off": ids.shown("hand_off", row.id), "ended_as": str(row.ended_as)},
    )
    HandOff.objects.filter(id=row.id).update(taken_up_at=ClockTimestamp())
    return True
