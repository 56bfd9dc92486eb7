"""Disputes: a decision that a second person does not believe, kept beside their own."""

from django.conf import settings
from django.db import models

from ledger import ids
from ledger.models import ToolCall, Workspace
from ledger.models.fields import ClockTimestamp, WordField
from ledger.vocabulary import ResolutionAnswer
from recovery.models.incidents import Incident
from recovery.models.resolutions import Resolution


class Dispute(models.Model):
    """Two answers about one call: what was recorded, and what somebody else says instead.

    `incident` is the one that it keeps open or opened again; `decision` what a third person or an
    admin recorded about it, None while nobody has.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="disputes")
    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="disputes")
    resolution = models.OneToOneField(Resolution, on_delete=models.PROTECT, related_name="dispute")
    answer = WordField(ResolutionAnswer, max_length=20)
    then = models.CharField(max_length=10, blank=True)
    grounds = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=200)
    at = models.DateTimeField(db_default=ClockTimestamp())
    decision = models.ForeignKey(
        Resolution, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )

    def __str__(self) -> str:
        return f"{self.by_name} disputes {self.resolution_id}"
