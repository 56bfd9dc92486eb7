"""The audit: what somebody asked for that is another's (R110)."""

from django.db import models

from ledger.models.fields import ClockTimestamp
from ledger.models.workspaces import Workspace


class ForeignAsk(models.Model):
    """Somebody asked for a session or a call of another workspace or agent, and was told 404.

    `workspace` is the owner's, who alone reads it. One row for each thing and asker; `times` and
    `last_at` count on.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )
    noun = models.CharField(max_length=20)
    about = models.UUIDField()
    by_id = models.CharField(max_length=64)
    times = models.IntegerField()
    first_at = models.DateTimeField(db_default=ClockTimestamp())
    last_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["about", "by_id"], name="foreign_ask_once"),
        ]

    def __str__(self) -> str:
        return f"{self.noun} {self.about} by {self.by_id}"
