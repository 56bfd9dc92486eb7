"""Sessions, what each is bound to, and their turns."""

from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models.fields import ClockTimestamp, WordField, append_only, moment
from ledger.models.workspaces import Agent, Workspace
from ledger.vocabulary import Actor, TurnEventKind


class Session(models.Model):
    """One conversation of one agent, and its binding (R110). `epoch` fences stale resumers.

    `version` is that of the transcript: each message, turn, compaction and hand-off raises it.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="sessions")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="sessions")
    label = models.CharField(max_length=200, blank=True)
    key = models.CharField(max_length=255, blank=True)
    working_directory = models.TextField(blank=True)
    host = models.CharField(max_length=255, blank=True)
    model = models.CharField(max_length=255, blank=True)
    epoch = models.PositiveIntegerField(default=1)
    version = models.PositiveBigIntegerField(default=0)
    stopped_at = moment()
    created_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "id"], name="session_in_workspace"),
            models.UniqueConstraint(
                fields=["agent", "key"], condition=~Q(key=""), name="session_key_once"
            ),
        ]

    def __str__(self) -> str:
        return self.label or str(self.id)


class SessionChange(models.Model):
    """A person stopped a session, let it go on or bound it anew: who, when, on what grounds.

    Stops are those of R50, re-binds of R112; `facts` say what a re-bind changed, and what became of
    the calls that were open.
    """

    KINDS = ("stopped", "resumed", "rebound")

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="changes")
    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in KINDS])
    by_id = models.CharField(max_length=64)
    by_name = models.CharField(max_length=200)
    grounds = models.TextField()
    facts = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("session_change_append_only")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.by_name}"


class Turn(models.Model):
    """One user request and all model steps that answer it; at most one open per session (I34).

    From `interrupted_at` on it takes no calls; it closes by `grace_until` at the latest.
    """

    CLOSED_AS = ("answered", "interrupted", "generation_failed", "handed_off", "stopped")

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="turns")
    session = models.ForeignKey(Session, on_delete=models.PROTECT, related_name="turns")
    number = models.PositiveIntegerField()
    key = models.CharField(max_length=255, blank=True)
    model = models.CharField(max_length=255, blank=True)
    opened_at = models.DateTimeField(db_default=ClockTimestamp())
    interrupted_at = moment()
    grace_until = moment()
    closed_at = moment()
    closed_as = models.CharField(max_length=20, blank=True, choices=[(c, c) for c in CLOSED_AS])

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "id"], name="turn_in_workspace"),
            models.UniqueConstraint(fields=["session", "number"], name="turn_number"),
            models.UniqueConstraint(
                fields=["session"], condition=Q(closed_at__isnull=True), name="one_open_turn"
            ),
            models.UniqueConstraint(
                fields=["session", "key"], condition=~Q(key=""), name="turn_key_once"
            ),
            models.CheckConstraint(
                name="an_interrupted_turn_has_a_grace",
                condition=Q(interrupted_at__isnull=True, grace_until__isnull=True)
                | Q(interrupted_at__isnull=False, grace_until__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                fields=["grace_until"],
                name="turn_in_grace",
                condition=Q(interrupted_at__isnull=False, closed_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"turn {self.number}"

    @property
    def takes_calls(self) -> bool:
        """Whether its agent may go on in it."""
        return self.closed_at is None and self.interrupted_at is None


class TurnEvent(models.Model):
    """What happened to a turn, to whom it is owed, and what it concerned (R102). Never changed.

    `facts` name calls and messages by their ids as the API shows them; no text of anybody's.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    turn = models.ForeignKey(Turn, on_delete=models.PROTECT, related_name="events")
    kind = WordField(TurnEventKind, max_length=30)
    by = WordField(Actor, max_length=20)
    by_id = models.CharField(max_length=64, blank=True)
    facts = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("turn_event_append_only")]

    def __str__(self) -> str:
        return f"{self.kind} in {self.turn_id}"
