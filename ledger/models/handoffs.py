"""Hand-offs: unresolved calls passed to another session or agent, under the same ids (R108)."""

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models.fields import ClockTimestamp, WordField, moment
from ledger.models.sessions import Session
from ledger.models.workspaces import Agent, Workspace
from ledger.vocabulary import HandOffEnd

GUARD = pgtrigger.Trigger(
    name="hand_off_guard",
    when=pgtrigger.Before,
    operation=pgtrigger.Update | pgtrigger.Delete,
    func="""
        IF TG_OP = 'DELETE' OR (NEW.id, NEW.workspace_id, NEW.from_session_id, NEW.to_agent_id,
            NEW.to_model, NEW.key, NEW.grounds, NEW.offered_at) IS DISTINCT FROM (OLD.id,
            OLD.workspace_id, OLD.from_session_id, OLD.to_agent_id, OLD.to_model, OLD.key,
            OLD.grounds, OLD.offered_at)
            OR OLD.ended_at IS NOT NULL AND (NEW.to_session_id, NEW.calls, NEW.ended_at,
            NEW.ended_as, NEW.ended_why) IS DISTINCT FROM (OLD.to_session_id, OLD.calls,
            OLD.ended_at, OLD.ended_as, OLD.ended_why) THEN
            RAISE EXCEPTION 'hand-off % is a record: it ends once and keeps what was offered',
                OLD.id USING ERRCODE = 'CH006';
        END IF;
        IF NEW.ended_as = 'accepted' AND OLD.ended_at IS NULL AND EXISTS (
            SELECT FROM (SELECT c.id FROM ledger_toolcall c WHERE c.settled_at IS NULL
              AND (c.session_id = NEW.from_session_id AND c.handed_off_id IS NULL
                OR c.handed_off_id IN (SELECT t.id FROM ledger_handoff t
                  WHERE t.to_session_id = NEW.from_session_id AND t.ended_as = 'accepted'))
            ) c FULL JOIN unnest(NEW.calls) AS u(id) ON u.id = c.id
            WHERE c.id IS NULL OR u.id IS NULL) THEN
            RAISE EXCEPTION 'hand-off % does not take every open call of its sender', NEW.id
                USING ERRCODE = 'CH007';
        END IF;
        RETURN NEW;
    """,
)


class HandOff(models.Model):
    """An offer to take over a session's unresolved calls; the sender owns them until acceptance.

    `calls` is empty until the receiver accepts, which fixes the set; from then on
    `ToolCall.handed_off` of each names its latest acceptance, and so its owner of the day.
    `taken_up_at` is when recovery made an incident of an offer that nobody took.
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
    taken_up_at = moment()

    class Meta:
        triggers = [GUARD]
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
            ),
            models.Index(
                fields=["ended_at"],
                name="hand_off_to_take_up",
                condition=Q(ended_as__in=["declined", "expired"], taken_up_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"hand-off to {self.to_agent_id}"
