"""What was shown of a call, to whom: the third question of the verdict."""

from django.db import models

from ledger.models.calls import ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.models.workspaces import Workspace


class Fetch(models.Model):
    """A settled call as a reader fetched it: first and last time, and the digest."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    call = models.ForeignKey(
        ToolCall, on_delete=models.PROTECT, related_name="fetches", db_index=False,
        db_constraint=False,
    )  # fmt: skip
    reader = models.CharField(max_length=64)
    state = models.CharField(max_length=20)
    effect = models.CharField(max_length=20)
    sha256 = models.CharField(max_length=64, blank=True)
    event_seq = models.IntegerField()
    first_at = models.DateTimeField(db_default=ClockTimestamp())
    last_at = models.DateTimeField(db_default=ClockTimestamp())
    times = models.IntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["call", "reader", "state", "sha256"], name="fetch_once_each"
            )
        ]

    def __str__(self) -> str:
        return f"{self.reader} fetched {self.call_id}"
