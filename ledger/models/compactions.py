"""Compactions: what is shown from then on in place of earlier messages. Nothing is removed."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from ledger import ids
from ledger.models.fields import ClockTimestamp, append_only
from ledger.models.sessions import Session
from ledger.models.workspaces import Workspace


class Compaction(models.Model):
    """A summary that stands for every message up to a place, and the calls carried over (R107).

    The place is (turn number, position of its last message). `carry_over` are the lines for the
    model, `unresolved` the calls they stand for, both as at the commit, in the same transaction.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="compactions")
    number = models.PositiveIntegerField()
    through_turn = models.PositiveIntegerField()
    through_position = models.PositiveIntegerField()
    summary = models.TextField()
    summary_sha256 = models.CharField(max_length=64)
    carry_over = models.JSONField(default=list)
    unresolved = ArrayField(models.UUIDField(), default=list)
    version_before = models.PositiveBigIntegerField()
    version = models.PositiveBigIntegerField()
    key = models.CharField(max_length=255, blank=True)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("compaction_append_only")]
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="compaction_number"),
            models.UniqueConstraint(
                fields=["session", "version_before"], name="one_compaction_a_version"
            ),
        ]

    def __str__(self) -> str:
        return f"compaction {self.number}"
