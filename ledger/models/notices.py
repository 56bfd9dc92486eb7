"""What a call's agent is told in place of a result: fixed when it is written, never rendered again.

Only texts that need more than the call's row are kept here: a person's statement, a probe's
answer, a correction. The others are chosen anew from the row (`ledger/notices.py`).
"""

from django.db import models

from ledger.models.calls import ToolCall
from ledger.models.fields import ClockTimestamp, append_only
from ledger.models.workspaces import Workspace


class Notice(models.Model):
    """A text by template and version, and the event it came with.

    A correction keeps beside its text (`text`, what is known now) the one it corrects and the
    sentence for an agent that has read that one.
    """

    pk = models.CompositePrimaryKey("call_id", "seq")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    call = models.ForeignKey(
        ToolCall, on_delete=models.PROTECT, related_name="notices", db_index=False,
        db_constraint=False,
    )  # fmt: skip
    seq = models.IntegerField()
    kind = models.CharField(max_length=20)
    template = models.CharField(max_length=40)
    version = models.IntegerField()
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    answer = models.CharField(max_length=20, blank=True)
    earlier = models.TextField(blank=True)
    correction = models.TextField(blank=True)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("notice_append_only")]

    def __str__(self) -> str:
        return f"{self.template} for {self.call_id}"

    @property
    def corrects(self) -> bool:
        return bool(self.correction)
