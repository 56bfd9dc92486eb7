"""What came back: results, evidence and handles. Bodies are kept as received."""

from django.conf import settings
from django.db import models

from ledger import ids
from ledger.models.attempts import Attempt
from ledger.models.calls import ToolCall
from ledger.models.fields import ClockTimestamp, WordField, append_only, moment
from ledger.models.workspaces import Workspace
from ledger.vocabulary import LateMeaning


class Body(models.Model):
    """Bytes as received, and what they are. `why_not_json` is empty where `body` is strict JSON."""

    media_type = models.CharField(max_length=200, blank=True)
    body = models.BinaryField()
    sha256 = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    truncated = models.BooleanField(default=False)
    why_not_json = models.CharField(max_length=300, blank=True)

    class Meta:
        abstract = True


class Result(Body):
    """The one result of a settled call, and the event and attempt it came by (I13, I14)."""

    call = models.OneToOneField(
        ToolCall,
        primary_key=True,
        on_delete=models.PROTECT,
        related_name="result",
        db_constraint=False,
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    fence = models.IntegerField()
    event_seq = models.IntegerField()
    is_error = models.BooleanField(default=False)

    class Meta:
        triggers = [append_only("result_append_only")]

    def __str__(self) -> str:
        return f"result of {self.call_id}"


class Evidence(Body):
    """What a probe, a late result or a person found. Only ever added."""

    KINDS = ("late_result", "probe", "tool_error", "statement", "document", "checked")

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="evidence")
    attempt = models.ForeignKey(
        Attempt, null=True, on_delete=models.PROTECT, related_name="evidence", db_index=False
    )
    kind = models.CharField(max_length=20, choices=[(k, k) for k in KINDS])
    finding = models.CharField(max_length=20, blank=True)
    message = models.TextField(blank=True)
    adoptable = models.BooleanField(default=False)
    reference = models.TextField(blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    by_name = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("evidence_append_only")]
        constraints = [
            models.UniqueConstraint(
                fields=["attempt", "kind", "sha256", "finding"], name="evidence_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.call_id}"


class Examination(models.Model):
    """That a late answer has come, and what it means for its call once that is settled.

    `meaning` is empty until recovery has looked; the partial index holds those only.
    """

    evidence = models.OneToOneField(
        Evidence, primary_key=True, on_delete=models.PROTECT, related_name="examination"
    )
    meaning = WordField(LateMeaning, max_length=20, blank=True)
    at = moment()

    class Meta:
        indexes = [
            models.Index(
                fields=["evidence"], name="late_unexamined", condition=models.Q(meaning="")
            )
        ]

    def __str__(self) -> str:
        return f"{self.evidence_id}: {self.meaning or 'not examined yet'}"


class Handle(models.Model):
    """How a long job is found again. One handle, one call; its value is encrypted."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="handles")
    fence = models.IntegerField()
    kind = models.CharField(max_length=20)
    endpoint = models.TextField(blank=True)
    value_encrypted = models.BinaryField()
    value_hmac = models.BinaryField(max_length=32)
    poll_after_s = models.FloatField(null=True)
    polls = models.IntegerField(default=0)
    expires_at = moment()
    lost_at = moment()
    ended_at = moment()
    stored_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "kind", "endpoint", "value_hmac"], name="one_handle_one_call"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} handle of {self.call_id}"
