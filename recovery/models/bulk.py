"""Bulk runs: one decision over a frozen list of incidents, each row with its own outcome."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models import ToolCall, Workspace
from ledger.models.fields import ClockTimestamp, WordField, moment
from ledger.vocabulary import ResolutionAnswer
from recovery.models.incidents import Incident


class BulkRun(models.Model):
    """The decision, who made it, and how far it has come. Its rows never change their ids."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    answer = WordField(ResolutionAnswer, max_length=20)
    then = models.CharField(max_length=10, blank=True)
    grounds = models.TextField()
    level = models.IntegerField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=200)
    login_age_s = models.FloatField(default=0.0)
    frozen_at = models.DateTimeField(db_default=ClockTimestamp())
    expires_at = models.DateTimeField()
    started_at = moment()
    stopped_at = moment()
    finished_at = moment()

    class Meta:
        indexes = [
            models.Index(
                fields=["started_at"],
                name="bulk_run_under_way",
                condition=Q(started_at__isnull=False, finished_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return ids.shown("bulk_run", self.id)


class BulkRow(models.Model):
    """One incident of a run: what was frozen, whether it may run and why not, what became of it.

    `told` is what the model will read, by the ruling at freezing; `size_bytes` that of the
    arguments.
    """

    run = models.ForeignKey(BulkRun, on_delete=models.PROTECT, related_name="rows")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="+")
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="+", db_index=False)
    place = models.IntegerField()
    decision_version = models.IntegerField()
    evidence_ids = ArrayField(models.UUIDField(), default=list)
    eligibility = models.CharField(max_length=20)
    detail = models.TextField(blank=True)
    told = models.TextField(blank=True)
    size_bytes = models.IntegerField(default=0)
    outcome = models.CharField(max_length=20, blank=True)
    done_at = moment()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "incident"], name="incident_once_in_run"),
        ]

    def __str__(self) -> str:
        return f"row {self.place} of {self.run_id}"
