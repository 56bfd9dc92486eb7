"""Trials: what a policy would have decided, kept with what it was tried on. Only ever added.

The trials of a policy version are those of its document on the version before it: that is a
question about these rows, and no column.
"""

from django.conf import settings
from django.db import models

from ledger import ids
from ledger.models import Tool, Workspace
from ledger.models.fields import ClockTimestamp, append_only


class Trial(models.Model):
    """One candidate tried on the last calls of a tool.

    `counts` has a number for each column of `recovery.trials.Column`; `rows` one list for each
    call that is not the same: column, call in hex, sentence, seconds measured or null.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="trials", db_index=False)
    based_on = models.PositiveIntegerField()
    document = models.JSONField()
    document_sha256 = models.CharField(max_length=64)
    calls = models.IntegerField()
    counts = models.JSONField()
    rows = models.JSONField()
    took_ms = models.IntegerField()
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    person_name = models.CharField(max_length=200)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("trial_append_only")]
        indexes = [models.Index(fields=["tool", "document_sha256"], name="trial_of_document")]

    def __str__(self) -> str:
        return ids.shown("trial", self.id)
