"""Conversations that came from elsewhere: the original as received, and what was made of it."""

import pgtrigger
from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models.fields import ClockTimestamp, moment
from ledger.models.sessions import Session
from ledger.models.workspaces import Agent, Workspace


class Import(models.Model):
    """A broken transcript that became a session (R92, R93). `body` never changes.

    `reverted_at`: the repaired projection is not shown any more; `discarded_at`: the whole import
    is undone, which is possible until the session's next turn.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    session = models.OneToOneField(Session, on_delete=models.PROTECT, related_name="imported")
    key = models.CharField(max_length=255)
    format = models.CharField(max_length=40)
    body = models.BinaryField()
    sha256 = models.CharField(max_length=64)
    report = models.JSONField()
    at = models.DateTimeField(db_default=ClockTimestamp())
    reverted_at = moment()
    discarded_at = moment()

    class Meta:
        triggers = [
            pgtrigger.Protect(name="import_stays", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(
                name="import_as_received",
                fields=["workspace", "agent", "session", "key", "format", "body", "sha256"],
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "sha256"],
                condition=Q(discarded_at__isnull=True),
                name="a_file_is_imported_once",
            ),
            models.UniqueConstraint(fields=["agent", "key"], name="import_key_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="import_in_workspace"),
        ]

    def __str__(self) -> str:
        return f"{self.format} import {self.sha256[:12]}"
