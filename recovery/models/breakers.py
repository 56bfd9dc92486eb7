"""Breakers: one for each tool and provider that ever failed in numbers, and its changes."""

from django.conf import settings
from django.db import models

from ledger import ids
from ledger.models import Workspace
from ledger.models.fields import ClockTimestamp, WordField, append_only
from ledger.vocabulary import BreakerState, GateKind


class Breaker(models.Model):
    """Where the breaker of a tool or a provider stands. While it is not closed it has a gate.

    `openings` counts the trials that failed in a row: each doubles the time until the next.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    kind = WordField(GateKind, max_length=10)
    name = models.CharField(max_length=255)
    state = WordField(BreakerState, max_length=10, default=BreakerState.CLOSED)
    since = models.DateTimeField(db_default=ClockTimestamp())
    openings = models.IntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "kind", "name"], name="breaker_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="breaker_in_workspace"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.state}"


class BreakerChange(models.Model):
    """One change of a breaker: by a rule or a person, why, when, and the figures. Only added."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    breaker = models.ForeignKey(Breaker, on_delete=models.PROTECT, related_name="changes")
    source = WordField(BreakerState, max_length=10)
    target = WordField(BreakerState, max_length=10)
    rule = models.CharField(max_length=60, blank=True)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    person_name = models.CharField(max_length=200, blank=True)
    grounds = models.TextField()
    figures = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("breaker_change_append_only")]

    def __str__(self) -> str:
        return f"{self.breaker_id}: {self.source} to {self.target}"
