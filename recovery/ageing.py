"""Ageing: an incident that waits for a person reminds, then asks a wider circle. Never decides.

Reminders at half of its time and at nine tenths; at the review deadline the next circle is asked
and the time begins anew (R53). Each is a line on the incident, and an event while the call is
open. A sweep of its own, on the incident's dates: a settled call has no deadline any more, and
what contradicts it must not be forgotten. One on a session ages alike, by a time of its own.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from ledger import clock, journal
from ledger.journal import Move
from ledger.models import ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import Actor, CallState, Deadline, IncidentKind
from recovery.models import Incident, Step

REMIND_AT = (0.5, 0.9)
"""Parts of the review time after which a reminder is due."""

SESSION_REVIEW_S = 4 * 3600.0
"""How long an incident on a session waits before a wider circle is asked, as for a side effect."""

ASKED = ("operator", "approver", "admin")
"""Who is asked at each level; the last one stays."""

ESCALATED = "review"
"""The rung of the step by which a wider circle is asked."""


def asked(level: int) -> str:
    """The role that is asked at this level."""
    return ASKED[min(level, len(ASKED) - 1)]


def begin(incident: Incident, review_s: float) -> None:
    """Start the time of a review: its deadline and its first reminder, on the database's clock."""
    Incident.objects.filter(id=incident.id).update(
        review_at=ClockTimestamp() + timedelta(seconds=review_s),
        remind_at=ClockTimestamp() + timedelta(seconds=review_s * REMIND_AT[0]),
    )
    incident.refresh_from_db(fields=["review_at", "remind_at"])


def due(limit: int) -> list[tuple[UUID, UUID | None]]:
    """Open incidents whose next date has come, with their calls; served by `incident_to_remind`.

    None in place of the call for one on a session.
    """
    return list(
        Incident.objects.filter(closed_at__isnull=True, remind_at__lte=ClockTimestamp())
        .order_by("remind_at")
        .values_list("id", "call_id")[:limit]
    )


def _locked(incident_id: UUID) -> Incident | None:
    return (
        Incident.objects.select_for_update(of=("self",), skip_locked=True)
        .filter(
            id=incident_id,
            closed_at__isnull=True,
            remind_at__lte=ClockTimestamp(),
            review_at__isnull=False,
        )
        .first()
    )


def remind_of_session(incident_id: UUID) -> bool:
    """Remind of an incident on a session, in a transaction of its own."""
    with transaction.atomic():
        incident = _locked(incident_id)
        if incident is None:
            return False
        _remind_or_ask_wider(None, incident, SESSION_REVIEW_S)
        return True


def remind(call: ToolCall, *, incident_id: UUID) -> bool:
    """Remind, or ask the next circle where the time is over. The caller holds the call's lock."""
    incident = _locked(incident_id)
    if incident is None:
        return False
    if incident.kind is IncidentKind.RECOVERY and call.state is not CallState.AMBIGUOUS:
        # It is the machine's turn again: nobody is waited for.
        Incident.objects.filter(id=incident.id).update(remind_at=None, review_at=None)
        return True
    _remind_or_ask_wider(call, incident, call.policy.call_policy.review_s)
    return True


def _remind_or_ask_wider(call: ToolCall | None, incident: Incident, review_s: float) -> None:
    now = clock.now()
    assert incident.review_at is not None  # noqa: S101 `_locked` has looked
    if incident.review_at <= now:
        _ask_wider(call, incident, review_s)
    else:
        _remind(call, incident, review_s, now)


def _remind(call: ToolCall | None, incident: Incident, review_s: float, now: datetime) -> None:
    assert incident.review_at is not None  # noqa: S101 `_locked` has looked
    began = incident.review_at - timedelta(seconds=review_s)
    dates = (began + timedelta(seconds=review_s * part) for part in REMIND_AT)
    later = min((each for each in dates if each > now), default=incident.review_at)
    Incident.objects.filter(id=incident.id).update(remind_at=later)
    left = (incident.review_at - now).total_seconds()
    _tell(call, incident, "reminder", f"Reminded {asked(incident.escalation_level)}: {left:.0f} s "
          "are left of the review time. Nothing is decided by that.", {})  # fmt: skip


def deadline(call: ToolCall, incident: Incident) -> None:
    """The review deadline of an ambiguous call has passed. The caller holds the call's lock."""
    _ask_wider(call, incident, call.policy.call_policy.review_s)


def _ask_wider(call: ToolCall | None, incident: Incident, review_s: float) -> None:
    incident.escalation_level += 1
    Incident.objects.filter(id=incident.id).update(escalation_level=incident.escalation_level)
    begin(incident, review_s)
    own = incident.kind is IncidentKind.RECOVERY
    arm: dict[Deadline, float | None] = {Deadline.REVIEW: review_s} if own else {}
    _tell(call, incident, ESCALATED, f"The review time is over: {asked(incident.escalation_level)} "
          "is asked from now on, and the time begins anew. Nothing is decided by that.",
          arm)  # fmt: skip


def _tell(
    call: ToolCall | None,
    incident: Incident,
    rung: str,
    grounds: str,
    arm: dict[Deadline, float | None],
) -> None:
    level = incident.escalation_level
    facts = {"level": level, "asked": asked(level), "incident": incident.id.hex}
    Step.objects.create(
        incident=incident, rung=rung, taken=True, rule="review_reminds_and_escalates",
        policy_version=call.policy.number if call else None, facts=facts,
        timer=str(Deadline.REVIEW), grounds=grounds,
    )  # fmt: skip
    if call is not None and call.state is CallState.AMBIGUOUS:
        journal.append([Move(call=call, kind="reminded", by=Actor.WATCHDOG, facts=facts, arm=arm)])
