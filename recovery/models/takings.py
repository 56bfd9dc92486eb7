"""Takings: who works on an incident. A courtesy that warns and never locks (console, section 9)."""

from django.conf import settings
from django.db import models

from ledger.models import Workspace
from ledger.models.fields import ClockTimestamp
from recovery.models.incidents import Incident


class Taking(models.Model):
    """One person at work on one incident, since `taken_at`; last seen at it at `active_at`.

    It runs out by itself, so nothing sweeps it. It is no part of the file: the decision version
    never moves with it.
    """

    incident = models.OneToOneField(
        Incident, primary_key=True, on_delete=models.PROTECT, related_name="taking"
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=200)
    taken_at = models.DateTimeField(db_default=ClockTimestamp())
    active_at = models.DateTimeField(db_default=ClockTimestamp())

    def __str__(self) -> str:
        return f"{self.incident_id} taken by {self.by_name}"
