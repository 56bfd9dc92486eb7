"""Hand-offs: unresolved calls passed to another session or agent, under the same ids (R108)."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models.fields import ClockTimestamp, WordField, moment
from ledger.models.sessions import Session
from ledger.models.workspaces import Agent, Workspace
from ledger.vocabulary import HandOffEnd


class HandOff(models.Model):
    """An offer to take over a session's unresolved calls; the sender owns them until acceptance.

    `calls` is empty until the receiver accepts, which fixes the set.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    from_session = models.ForeignKey(
        Session, on_delete=models.PROTECT, related_name="hand_offs_given"
    )
    to_agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    to_session = models.ForeignKey(
        Session, null=True, on_delete=models.PROTECT, related_name="hand_offs_taken"
    )
    to_model = models.CharField(max_length=255, blank=True)
    key = models.CharField(max_length=255, blank=True)
    grounds = models.TextField()
    calls = ArrayField(models.UUIDField(), default=list)
    offered_at = models.DateTimeField(db_default=ClockTimestamp())
    expires_at = models.DateTimeField()
    ended_at = moment()
    ended_as = WordField(HandOffEnd, max_length=10, blank=True)
    ended_why = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["from_session"],
                condition=Q(ended_at__isnull=True),
                name="one_open_hand_off",
            ),
            models.UniqueConstraint(
                fields=["from_session", "key"], condition=~Q(key=""), name="hand_off_key_once"
            ),
            models.CheckConstraint(
                name="hand_off_ends_one_way",
                condition=Q(ended_at__isnull=True, ended_as="")
                | Q(ended_at__isnull=False, ended_as__in=list(HandOffEnd)),
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], name="hand_off_due", condition=Q(ended_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"hand-off to {self.to_agent_id}"
