"""Drifts: what somebody stated of a session that differs from its binding (R111)."""

from django.db import models
from django.db.models import Q

from ledger.models.fields import ClockTimestamp, moment
from ledger.models.sessions import Session
from ledger.models.workspaces import Workspace


class Drift(models.Model):
    """A field of a session's binding that differed: since when, how often, what was stated last.

    `blocked` says that it was refused at least once, so that a person must know: `told_at` is when
    recovery last wrote it on the session's incident. A drift of a remote tool is only noted.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="drifts")
    field = models.CharField(max_length=20)
    epoch = models.PositiveIntegerField()
    bound = models.TextField(blank=True)
    stated = models.TextField(blank=True)
    at = models.CharField(max_length=20)
    blocked = models.BooleanField()
    times = models.IntegerField()
    first_at = models.DateTimeField(db_default=ClockTimestamp())
    last_at = models.DateTimeField(db_default=ClockTimestamp())
    told_at = moment()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "field", "epoch"], name="drift_once"),
        ]
        indexes = [
            # The watchdog asks for it at each sweep.
            models.Index(
                fields=["id"],
                name="drift_to_tell",
                condition=Q(blocked=True, told_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.field} of {self.session_id}"
