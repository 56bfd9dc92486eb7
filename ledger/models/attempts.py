"""Workers and the attempts they hold, with the partial output that survives them."""

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from ledger import ids, traces
from ledger.models.calls import ToolCall
from ledger.models.fields import ClockTimestamp, WordField, moment
from ledger.models.workspaces import Workspace
from ledger.vocabulary import AttemptKind, Cause, FenceKind, Meaning, ProofOfDeath

BREAKS = ("hang", "connection_lost", "gateway_timeout", "server_error")
"""Causes that speak against the outside: what a breaker counts (semantics, section 9)."""


class Worker(models.Model):
    """One executing process. It is alive while its session advisory lock (`number`) is held."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    number = models.IntegerField(unique=True)
    name = models.CharField(max_length=200)
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    queues = ArrayField(models.CharField(max_length=10))
    slots = models.IntegerField(default=1)
    fence_kind = WordField(FenceKind, max_length=10)
    started_at = models.DateTimeField(db_default=ClockTimestamp())
    locked_at = models.DateTimeField(db_default=ClockTimestamp())
    seen_at = models.DateTimeField(db_default=ClockTimestamp())
    stopped_at = moment()
    stopped_as = models.CharField(max_length=20, blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["seen_at"], name="worker_running", condition=Q(stopped_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return self.name


class Attempt(models.Model):
    """One execution of a call by one worker. Its number is its fence (R5)."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    call = models.ForeignKey(
        ToolCall, on_delete=models.PROTECT, related_name="attempts", db_index=False,
        db_constraint=False,
    )  # fmt: skip
    fence = models.IntegerField()
    kind = WordField(AttemptKind, max_length=10)
    worker = models.ForeignKey(
        Worker, on_delete=models.PROTECT, related_name="attempts", db_index=False
    )
    fence_kind = WordField(FenceKind, max_length=10)
    effect_key = models.CharField(max_length=300)
    granted_by = models.CharField(max_length=60)
    claimed_at = models.DateTimeField(db_default=ClockTimestamp())
    crossed_at = moment()
    lease_until = models.DateTimeField()
    fence_lost_at = moment()
    ended_at = moment()
    outcome = models.CharField(max_length=20, blank=True)
    cause = WordField(Cause, blank=True)
    means = WordField(Meaning, blank=True)
    error_type = models.CharField(max_length=200, blank=True)
    error_message = models.TextField(blank=True)
    cursor = models.TextField(null=True)  # noqa: DJ001 null: none was reported
    finding = models.CharField(max_length=20, blank=True)
    dead_proof = WordField(ProofOfDeath, blank=True)
    dead_at = moment()
    unlocks_at = moment()
    disproved_at = moment()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["call", "fence"], name="attempt_fence_once"),
            models.UniqueConstraint(
                fields=["call"], condition=Q(ended_at__isnull=True), name="one_live_attempt"
            ),
        ]
        indexes = [
            models.Index(
                fields=["worker"], name="attempt_open_of_worker", condition=Q(ended_at__isnull=True)
            ),
            # Asked at every sweep: without it, each would read all attempts there ever were.
            models.Index(
                fields=["lease_until"],
                name="attempt_not_proven_dead",
                condition=Q(outcome="lost", dead_proof=""),
            ),
            # Partial: an attempt that ended well never enters it.
            models.Index(
                fields=["ended_at"],
                name="attempt_ended_badly",
                condition=Q(cause__in=BREAKS),
            ),
            # Block ranges: rows come in the order of their claims, so it costs an insert nothing.
            BrinIndex(fields=["claimed_at"], name="attempt_by_time", pages_per_range=16),
        ]

    def __str__(self) -> str:
        return f"attempt {self.fence} of {self.call_id}"

    @property
    def traceparent(self) -> str | None:
        """What this attempt sends on, if its call has a trace."""
        return traces.of_attempt(self.call.traceparent, self.id)

    def lease_is_live(self, now: datetime) -> bool:
        return self.ended_at is None and self.lease_until > now


class Chunk(models.Model):
    """A piece of partial output, stored as it arrived (R11)."""

    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="chunks")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    at = models.DateTimeField(db_default=ClockTimestamp())
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"{len(self.body)} bytes of {self.attempt_id}"
