"""Incidents: the file on one call that needs recovery, and its timeline."""

from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models import ToolCall, Workspace
from ledger.models.fields import ClockTimestamp, WordField, append_only, moment
from ledger.vocabulary import (
    Cause,
    ExhaustionReason,
    FailurePoint,
    IncidentKind,
    IncidentState,
)


class Incident(models.Model):
    """One open `recovery` incident for each interrupted or ambiguous call, none otherwise (I30)."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="incidents")
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="incidents")
    kind = WordField(IncidentKind, max_length=20)
    number = models.IntegerField(default=1)
    state = WordField(IncidentState, max_length=20)
    cause = WordField(Cause, blank=True)
    failure_point = WordField(FailurePoint, blank=True)
    reason = WordField(ExhaustionReason, blank=True)
    steps_taken = models.IntegerField(default=0)
    pending = models.ForeignKey(
        "recovery.Resolution", null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    pending_until = moment()
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
            models.UniqueConstraint(fields=["workspace", "id"], name="incident_in_workspace"),
            models.CheckConstraint(
                name="pending_has_its_date",
                condition=Q(pending__isnull=True, pending_until__isnull=True)
                | Q(pending__isnull=False, pending_until__isnull=False),
            ),
        ]
        indexes = [
            # The watchdog asks for it twice a second.
            models.Index(
                fields=["pending_until"],
                name="incident_pending",
                condition=Q(pending_until__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return ids.shown("incident", self.id)


class Step(models.Model):
    """One line of an incident's timeline: what was tried or passed over, by which rule, and why."""

    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="steps")
    at = models.DateTimeField(db_default=ClockTimestamp())
    rung = models.CharField(max_length=40)
    taken = models.BooleanField()
    rule = models.CharField(max_length=60, blank=True)
    grounds = models.TextField()

    class Meta:
        triggers = [append_only("step_append_only")]

    def __str__(self) -> str:
        return f"{self.rung}: {self.grounds}"


class Sweep(models.Model):
    """When each watchdog last swept: its heartbeat."""

    name = models.CharField(primary_key=True, max_length=200)
    swept_at = models.DateTimeField(db_default=ClockTimestamp())

    def __str__(self) -> str:
        return self.name
