"""Interrupts: pauses around a tool, each with the snapshot that an answer is given to.

One table for every kind of pause (semantics, section 12); a hold is the interrupt that the
ledger itself raises and, for most reasons, answers. A row is written once; while it is unanswered
only its expiry and the call it waits for may move, and once ended it never changes.
"""

import json
from typing import Any

import pgtrigger
from django.db import models
from django.db.models import Q

from ledger.models.calls import ToolCall
from ledger.models.fields import ClockTimestamp, WordField, moment
from ledger.models.workspaces import Workspace
from ledger.vocabulary import InterruptEnd, Phase

GUARD = pgtrigger.Trigger(
    name="interrupt_guard",
    when=pgtrigger.Before,
    operation=pgtrigger.Update | pgtrigger.Delete,
    func="""
        IF TG_OP = 'DELETE' OR OLD.ended_at IS NOT NULL OR (NEW.id, NEW.workspace_id, NEW.call_id,
            NEW.phase, NEW.name, NEW.round, NEW.reason, NEW.snapshot, NEW.snapshot_sha256,
            NEW.asked_at) IS DISTINCT FROM (OLD.id, OLD.workspace_id, OLD.call_id, OLD.phase,
            OLD.name, OLD.round, OLD.reason, OLD.snapshot, OLD.snapshot_sha256, OLD.asked_at) THEN
            RAISE EXCEPTION 'interrupt % is a record: it ends once and keeps what was asked',
                OLD.id USING ERRCODE = 'CH006';
        END IF;
        RETURN NEW;
    """,
)


class Interrupt(models.Model):
    """One question around a tool call, open until it is answered, expires or is withdrawn.

    `snapshot` is canonical JSON without its hash, which stands beside it. `left_s` are the
    seconds of schedule-to-close that the call had left when it was paused.
    """

    id = models.CharField(primary_key=True, max_length=255)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    call = models.ForeignKey(
        ToolCall, on_delete=models.PROTECT, related_name="interrupts", db_constraint=False
    )
    phase = WordField(Phase, max_length=20)
    name = models.CharField(max_length=200)
    round = models.IntegerField(default=1)
    reason = models.CharField(max_length=40)
    waits_for = models.ForeignKey(
        ToolCall,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    snapshot = models.TextField()
    snapshot_sha256 = models.CharField(max_length=64)
    left_s = models.FloatField()
    asked_at = models.DateTimeField(db_default=ClockTimestamp())
    expires_at = models.DateTimeField()
    ended_at = moment()
    ended_as = WordField(InterruptEnd, max_length=10, blank=True)
    answer = models.CharField(max_length=20, blank=True)
    answered_by = models.CharField(max_length=20, blank=True)
    answered_by_id = models.CharField(max_length=64, blank=True)
    grounds = models.TextField(blank=True)

    class Meta:
        triggers = [GUARD]
        constraints = [
            models.CheckConstraint(
                name="interrupt_ends_by_one_of_three",
                condition=Q(ended_at__isnull=True, ended_as="")
                | Q(ended_at__isnull=False, ended_as__in=list(InterruptEnd)),
            ),
        ]
        indexes = [
            models.Index(
                fields=["waits_for"], name="interrupt_waits", condition=Q(ended_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def is_pending(self) -> bool:
        return self.ended_at is None

    @property
    def snapshot_json(self) -> dict[str, Any]:
        """The snapshot with its hash: every key present, null where there is nothing."""
        return dict(json.loads(self.snapshot)) | {"hash": self.snapshot_sha256}
