"""Incidents: the file on one call, or one session, that needs recovery, and its timeline."""

from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models import Session, ToolCall, Workspace
from ledger.models.fields import ClockTimestamp, WordField, append_only, moment
from ledger.vocabulary import (
    CLOSED_INCIDENT,
    Cause,
    ExhaustionReason,
    FailurePoint,
    IncidentKind,
    IncidentState,
)


class Incident(models.Model):
    """One open `recovery` incident for each interrupted or ambiguous call, none otherwise (I30).

    `number` counts the interruptions of a call, `root` is the incident of its first one (empty
    there), and the steps without progress are counted on from one to the next. `remind_at` is
    when somebody is reminded next, `review_at` when a wider circle is asked.

    One on a session has no call; its `subject` tells it from others of its kind that are open on
    the session (a field of the binding, a compaction, a hand-off).
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="incidents")
    call = models.ForeignKey(
        ToolCall, null=True, on_delete=models.PROTECT, related_name="incidents"
    )
    session = models.ForeignKey(
        Session, null=True, on_delete=models.PROTECT, related_name="incidents"
    )
    subject = models.CharField(max_length=64, blank=True)
    kind = WordField(IncidentKind, max_length=20)
    number = models.IntegerField(default=1)
    root = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+")
    state = WordField(IncidentState, max_length=20)
    cause = WordField(Cause, blank=True)
    failure_point = WordField(FailurePoint, blank=True)
    reason = WordField(ExhaustionReason, blank=True)
    facts = models.JSONField(default=dict)
    steps_taken = models.IntegerField(default=0)
    pending = models.ForeignKey(
        "recovery.Resolution", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    pending_until = moment()
    steps_without_progress = models.IntegerField(default=0)
    progress_at = models.DateTimeField(db_default=ClockTimestamp())
    escalation_level = models.IntegerField(default=0)
    remind_at = moment()
    review_at = moment()
    opened_at = models.DateTimeField(db_default=ClockTimestamp())
    closed_at = moment()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["call"],
                condition=Q(kind="recovery", closed_at__isnull=True),
                name="one_open_recovery_incident",
            ),
            models.UniqueConstraint(fields=["call", "kind", "number"], name="incident_number"),
            models.UniqueConstraint(
                fields=["session", "kind", "subject"],
                condition=Q(session__isnull=False, closed_at__isnull=True),
                name="one_open_incident_of_session",
            ),
            models.CheckConstraint(
                name="incident_is_of_call_or_session",
                condition=Q(call__isnull=False, session__isnull=True, subject="")
                | Q(call__isnull=True, session__isnull=False),
            ),
            models.UniqueConstraint(fields=["workspace", "id"], name="incident_in_workspace"),
            models.CheckConstraint(
                name="pending_has_its_date",
                condition=Q(pending__isnull=True, pending_until__isnull=True)
                | Q(pending__isnull=False, pending_until__isnull=False),
            ),
            models.CheckConstraint(
                name="incident_state_says_closed",
                condition=Q(closed_at__isnull=False, state__in=sorted(CLOSED_INCIDENT))
                | Q(closed_at__isnull=True) & ~Q(state__in=sorted(CLOSED_INCIDENT)),
            ),
        ]
        indexes = [
            models.Index(
                fields=["remind_at"], name="incident_to_remind", condition=Q(closed_at__isnull=True)
            ),
            models.Index(
                fields=["workspace", "opened_at"],
                name="incident_open",
                condition=Q(closed_at__isnull=True),
            ),
            # The watchdog asks for it twice a second.
            models.Index(
                fields=["pending_until"],
                name="incident_pending",
                condition=Q(pending_until__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return ids.shown("incident", self.id)

    @property
    def runbook(self) -> str:
        """What its call's policy names for where the break fell; empty where it names nothing."""
        return self.call.policy.call_policy.runbook_at(self.failure_point) if self.call else ""


OF_PERSONS = ("person", "confirmed")
"""Rules of the steps that a person took."""


class Step(models.Model):
    """One line of an incident's timeline: what was tried or passed over, and why (R62).

    `rule` and `policy_version` say by which rule, `facts` what it looked at, `timer` which
    deadline led to it ("" for a report), `grounds` the same in one sentence.
    """

    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="steps")
    at = models.DateTimeField(db_default=ClockTimestamp())
    rung = models.CharField(max_length=40)
    taken = models.BooleanField()
    rule = models.CharField(max_length=60, blank=True)
    policy_version = models.PositiveIntegerField(null=True)
    facts = models.JSONField(default=dict)
    timer = models.CharField(max_length=40, blank=True)
    grounds = models.TextField()

    class Meta:
        triggers = [append_only("step_append_only")]
        indexes = [
            models.Index(fields=["at"], name="step_of_person", condition=Q(rule__in=OF_PERSONS)),
        ]

    def __str__(self) -> str:
        return f"{self.rung}: {self.grounds}"


class Sweep(models.Model):
    """When each watchdog last swept: its heartbeat."""

    name = models.CharField(primary_key=True, max_length=200)
    swept_at = models.DateTimeField(db_default=ClockTimestamp())

    def __str__(self) -> str:
        return self.name
