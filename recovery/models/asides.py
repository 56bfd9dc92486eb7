"""What people agree on about an open incident: set aside until later, assigned to somebody.

Neither is part of the file: the decision version never moves with them. Each change is a line on
the incident's timeline.
"""

from django.conf import settings
from django.db import models

from ledger.models import Workspace
from ledger.models.fields import ClockTimestamp
from recovery.models.incidents import Incident


class Aside(models.Model):
    """An incident set aside until a moment. It comes back by itself, so nothing sweeps it.

    `level` is how often the incident had been escalated then: one more brings it back at once.
    """

    incident = models.OneToOneField(
        Incident, primary_key=True, on_delete=models.PROTECT, related_name="aside"
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    until = models.DateTimeField()
    level = models.IntegerField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=200)
    at = models.DateTimeField(db_default=ClockTimestamp())

    def __str__(self) -> str:
        return f"{self.incident_id} set aside until {self.until}"


class Assignment(models.Model):
    """The person whose work an incident is, and who said so. It lasts until it is changed."""

    incident = models.OneToOneField(
        Incident, primary_key=True, on_delete=models.PROTECT, related_name="assignment"
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    to = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    to_name = models.CharField(max_length=200)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=200)
    at = models.DateTimeField(db_default=ClockTimestamp())

    def __str__(self) -> str:
        return f"{self.incident_id} assigned to {self.to_name}"
