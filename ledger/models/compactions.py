"""Compactions: what is shown from then on in place of earlier messages. Nothing is removed."""

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models.fields import ClockTimestamp, append_only, moment
from ledger.models.sessions import Session
from ledger.models.workspaces import Workspace

KEEPS_OPEN_CALLS = pgtrigger.Trigger(
    name="compaction_keeps_open_calls",
    when=pgtrigger.After,
    operation=pgtrigger.Insert,
    declare=[("lost", "uuid")],
    func="""
        SELECT coalesce(c.id, u.id) INTO lost FROM (
          SELECT c.id FROM ledger_toolcall c LEFT JOIN ledger_handoff h ON h.id = c.handed_off_id
           WHERE c.settled_at IS NULL AND (c.session_id = NEW.session_id AND h.id IS NULL
             OR c.handed_off_id IN (SELECT t.id FROM ledger_handoff t
               WHERE t.to_session_id = NEW.session_id AND t.ended_as = 'accepted'))
        ) c FULL JOIN unnest(NEW.unresolved) AS u(id) ON u.id = c.id
         WHERE c.id IS NULL OR u.id IS NULL LIMIT 1;
        IF FOUND OR cardinality(NEW.unresolved) <> jsonb_array_length(NEW.carry_over) THEN
            RAISE EXCEPTION 'compaction % does not carry over the open calls of its session: %',
                NEW.id, lost USING ERRCODE = 'CH007';
        END IF;
        RETURN NULL;
    """,
)
"""Unresolved before = carry-over = unresolved after; the session and the calls are locked."""


class Compaction(models.Model):
    """A summary that stands for every message up to a place, and the calls carried over (R107).

    The place is (turn number, position of its last message). `carry_over` are the lines for the
    model, `unresolved` the calls they stand for, both as at the commit, in the same transaction.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="compactions")
    number = models.PositiveIntegerField()
    through_turn = models.PositiveIntegerField()
    through_position = models.PositiveIntegerField()
    summary = models.TextField()
    summary_sha256 = models.CharField(max_length=64)
    carry_over = models.JSONField(default=list)
    unresolved = ArrayField(models.UUIDField(), default=list)
    version_before = models.PositiveBigIntegerField()
    version = models.PositiveBigIntegerField()
    key = models.CharField(max_length=255, blank=True)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("compaction_append_only"), KEEPS_OPEN_CALLS]
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="compaction_number"),
            models.UniqueConstraint(
                fields=["session", "version_before"], name="one_compaction_a_version"
            ),
            models.UniqueConstraint(
                fields=["session", "key"], condition=~Q(key=""), name="compaction_key_once"
            ),
        ]

    def __str__(self) -> str:
        return f"compaction {self.number}"


class CompactionCheck(models.Model):
    """What an agent's own transcript still told of the calls that a compaction carried over (R107).

    `missing` are the calls whose lines it had lost, of those still unresolved; `taken_up_at` is
    when recovery made an incident of it, or closed the one that it ends. Of the transcript only
    the digest is kept.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    compaction = models.ForeignKey(Compaction, on_delete=models.PROTECT, related_name="checks")
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    transcript_sha256 = models.CharField(max_length=64)
    missing = ArrayField(models.UUIDField(), default=list)
    at = models.DateTimeField(db_default=ClockTimestamp())
    taken_up_at = moment()

    class Meta:
        indexes = [
            models.Index(
                fields=["id"], name="check_to_take_up", condition=Q(taken_up_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"{len(self.missing)} missing after {self.compaction}"
