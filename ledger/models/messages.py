"""What people and models said. Results are no messages: they are rendered from calls (R89).

A reply keeps its parts in the neutral form, with each call as its place only; the calls
themselves are rows of their own, found by turn, model step and position.
"""

import json
from typing import Any

from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models.fields import ClockTimestamp, append_only
from ledger.models.sessions import Session, Turn
from ledger.models.workspaces import Workspace


class Message(models.Model):
    """One message of a turn, by its position. Its role is never `tool`.

    `parts` are neutral parts as JSON text, since reasoning must go back unchanged; in it
    `{"call": n}` stands for the call at position n of the reply. `refused` are calls of a reply
    that could not be recorded, each with the text that answers it. `format` is the one it was
    received in; reasoning in `parts` belongs to it.
    """

    ROLES = ("system", "user", "assistant")

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="messages")
    turn = models.ForeignKey(Turn, on_delete=models.PROTECT, related_name="messages")
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=10, choices=[(role, role) for role in ROLES])
    model_step = models.PositiveIntegerField(null=True)
    key = models.CharField(max_length=255, blank=True)
    format = models.CharField(max_length=40)
    parts = models.TextField()
    refused = models.JSONField(default=list)
    model = models.CharField(max_length=255, blank=True)
    stop_reason = models.CharField(max_length=60, blank=True)
    failed = models.BooleanField(default=False)
    sha256 = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("message_append_only")]
        constraints = [
            models.UniqueConstraint(fields=["turn", "position"], name="message_position"),
            models.UniqueConstraint(
                fields=["turn", "model_step"],
                condition=Q(model_step__isnull=False),
                name="one_reply_a_step",
            ),
            models.UniqueConstraint(
                fields=["turn", "key"], condition=~Q(key=""), name="message_key_once"
            ),
            models.CheckConstraint(
                name="a_message_is_never_a_result",
                condition=Q(role__in=["system", "user"], model_step__isnull=True)
                | Q(role="assistant", model_step__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role}, message {self.position} of its turn"

    @property
    def parts_json(self) -> list[dict[str, Any]]:
        """Its parts, members in the order they were received."""
        return list(json.loads(self.parts))
