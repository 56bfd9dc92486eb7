"""What a person's Idempotency-Key was answered, so that a double press is one deed."""

from django.conf import settings
from django.db import models

from ledger.models import Workspace
from ledger.models.fields import ClockTimestamp, append_only


class PersonsIntent(models.Model):
    """One recorded answer, by person, address and key; kept in the deed's own transaction."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    address = models.CharField(max_length=300)
    key = models.CharField(max_length=255)
    body_sha256 = models.CharField(max_length=64)
    status = models.IntegerField()
    answer = models.TextField()
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("persons_intent_append_only")]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "person", "address", "key"], name="persons_intent_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} at {self.address}"
