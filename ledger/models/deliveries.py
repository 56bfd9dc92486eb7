"""What was shown of a call, to whom: the third question of the verdict."""

import pgtrigger
from django.db import models

from ledger import ids
from ledger.models.calls import ToolCall
from ledger.models.fields import ClockTimestamp, WordField, moment
from ledger.models.sessions import Session, Turn
from ledger.models.workspaces import Workspace
from ledger.vocabulary import CallState, DeliveryKind, DeliveryMode, Effect


class Fetch(models.Model):
    """A settled call as a reader fetched it: first and last time, and the digest."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    call = models.ForeignKey(
        ToolCall, on_delete=models.PROTECT, related_name="fetches", db_index=False,
        db_constraint=False,
    )  # fmt: skip
    reader = models.CharField(max_length=64)
    state = models.CharField(max_length=20)
    effect = models.CharField(max_length=20)
    sha256 = models.CharField(max_length=64, blank=True)
    event_seq = models.IntegerField()
    first_at = models.DateTimeField(db_default=ClockTimestamp())
    last_at = models.DateTimeField(db_default=ClockTimestamp())
    times = models.IntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["call", "reader", "state", "sha256"], name="fetch_once_each"
            )
        ]

    def __str__(self) -> str:
        return f"{self.reader} fetched {self.call_id}"


def _ends_once(noun: str, columns: str) -> pgtrigger.Trigger:
    """Refuse every change but the acknowledgement, and that a second time."""
    new, old = (", ".join(f"{row}.{name}" for name in columns.split()) for row in ("NEW", "OLD"))
    return pgtrigger.Trigger(
        name=f"{noun}_guard",
        when=pgtrigger.Before,
        operation=pgtrigger.Update | pgtrigger.Delete,
        func=f"""
        IF TG_OP = 'DELETE' OR OLD.acknowledged_at IS NOT NULL
           OR ({new}) IS DISTINCT FROM ({old}) THEN
            RAISE EXCEPTION '{noun} % is a record: it is acknowledged once, and stays',
                OLD.id USING ERRCODE = 'CH006';
        END IF;
        RETURN NEW;
    """,
    )


class Offer(models.Model):
    """What one turn is shown, offered to one consumer at once; delivered when that confirms it."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="offers")
    turn = models.ForeignKey(Turn, on_delete=models.PROTECT, related_name="offers")
    consumer = models.CharField(max_length=64)
    mode = WordField(DeliveryMode, max_length=20)
    offered_at = models.DateTimeField(db_default=ClockTimestamp())
    acknowledged_at = moment()

    class Meta:
        triggers = [
            _ends_once("offer", "id workspace_id session_id turn_id consumer mode offered_at")
        ]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "id"], name="offer_in_workspace"),
        ]

    def __str__(self) -> str:
        return f"offer to {self.consumer}"


class Delivery(models.Model):
    """What a turn was shown for one call (semantics, section 15): offered, then acknowledged.

    A notice keeps its text, because it is chosen from a row that moves on; a result is found by
    its digest. `event_seq` is the call's event that was shown.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    offer = models.ForeignKey(Offer, on_delete=models.PROTECT, related_name="deliveries")
    call = models.ForeignKey(
        ToolCall, on_delete=models.PROTECT, related_name="deliveries", db_constraint=False
    )
    turn = models.ForeignKey(Turn, on_delete=models.PROTECT, related_name="+", db_index=False)
    consumer = models.CharField(max_length=64)
    kind = WordField(DeliveryKind, max_length=20)
    template = models.CharField(max_length=40, blank=True)
    version = models.IntegerField(null=True)
    text = models.TextField(blank=True)
    sha256 = models.CharField(max_length=64)
    state = WordField(CallState, max_length=20)
    effect = WordField(Effect, max_length=20)
    event_seq = models.IntegerField()
    offered_at = models.DateTimeField(db_default=ClockTimestamp())
    acknowledged_at = moment()

    class Meta:
        triggers = [
            _ends_once(
                "delivery",
                "id workspace_id offer_id call_id turn_id consumer kind template version text "
                "sha256 state effect event_seq offered_at",
            )
        ]
        constraints = [
            models.UniqueConstraint(fields=["offer", "call"], name="delivery_once_each"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.call_id}"
