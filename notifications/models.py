"""What notifications keep: channels, what was noticed, messages, and the log of their tries.

`Occurrence` is written by a sweep over what stands in the ledger and in recovery, once for each
key; `Line` is the outbox, once for each channel and occurrence; a `Message` carries one line or
many, with the bytes that every try of it sends; a `Delivery` is one try.
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models import Workspace
from ledger.models.fields import ClockTimestamp, WordField, append_only, moment
from notifications.vocabulary import ChannelKind, Dropped, Event, MessageState

ANSWER_BYTES_MAX = 1024
"""What is kept of a receiver's answer (security, section 10)."""


class Channel(models.Model):
    """Where a workspace is told, and what of: empty `tools` or `classes` mean all of them.

    `target` (an address with its path, or mail addresses) and the secrets lie encrypted: the
    address of a Slack hook is a secret itself. `shown` is what pages may show of it. The old
    secret signs beside the new one until `old_secret_until`. Quiet hours are wall-clock times in
    `zone`; both empty means none.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    kind = WordField(ChannelKind, max_length=10)
    name = models.CharField(max_length=100)
    target = models.BinaryField()
    shown = models.CharField(max_length=400)
    may_be_local = models.BooleanField(default=False)
    secret = models.BinaryField(null=True)
    old_secret = models.BinaryField(null=True)
    old_secret_until = moment()
    events = ArrayField(models.CharField(max_length=30))
    tools = ArrayField(models.CharField(max_length=128), default=list)
    classes = ArrayField(models.CharField(max_length=20), default=list)
    least_age_s = models.FloatField(default=0.0)
    quiet_from = models.TimeField(null=True)
    quiet_to = models.TimeField(null=True)
    zone = models.CharField(max_length=64, blank=True)
    is_on = models.BooleanField(default=True)
    made_at = models.DateTimeField(db_default=ClockTimestamp())
    taken_at = moment()
    """When a receiver last took a message."""
    disabled_at = moment()
    disabled_why = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="channel_name"),
            models.UniqueConstraint(fields=["workspace", "id"], name="channel_in_workspace"),
            models.CheckConstraint(
                name="channel_has_both_quiet_hours_or_none",
                condition=Q(quiet_from__isnull=True, quiet_to__isnull=True)
                | Q(quiet_from__isnull=False, quiet_to__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return ids.shown("channel", self.id)


class Occurrence(models.Model):
    """Something that people may be told of, noticed once: `key` tells it from every other.

    `thread` joins what belongs together: everything on one incident. `is_open` marks the alarms
    whose all-clear has not been noticed yet. `facts` are ids, states, effects and counts: never
    arguments, results or evidence.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    event = WordField(Event, max_length=30)
    key = models.CharField(max_length=300)
    thread = models.CharField(max_length=300)
    subject = models.CharField(max_length=300, blank=True)
    """What its page is found by: an incident, an interrupt, a bulk run."""
    tool = models.CharField(max_length=128, blank=True)
    recovery_class = models.CharField(max_length=20, blank=True)
    facts = models.JSONField(default=dict)
    since = models.DateTimeField()
    is_open = models.BooleanField(default=False)
    at = models.DateTimeField(db_default=ClockTimestamp(), db_index=True)
    routed_at = moment()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "key"], name="occurrence_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="occurrence_in_workspace"),
        ]
        indexes = [
            models.Index(
                fields=["id"], name="occurrence_to_route", condition=Q(routed_at__isnull=True)
            ),
            models.Index(fields=["subject"], name="occurrence_open", condition=Q(is_open=True)),
            models.Index(fields=["workspace", "thread"], name="occurrence_thread"),
        ]

    def __str__(self) -> str:
        return f"{self.event}: {self.key}"


class Message(models.Model):
    """What one channel is told at once. Its id and its bytes are the same in every try.

    `next_try_at` is also the claim: who tries moves it on first, so that a sender that was killed
    leaves a message that is due again. `tries` counts since a person last asked for it.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    channel = models.ForeignKey(
        Channel, on_delete=models.PROTECT, related_name="messages", db_index=False
    )
    event = models.CharField(max_length=30)
    thread = models.CharField(max_length=300)
    title = models.CharField(max_length=300)
    body = models.TextField()
    lines_count = models.IntegerField(default=1)
    state = WordField(MessageState, max_length=10, default=MessageState.WAITING)
    tries = models.IntegerField(default=0)
    is_asked = models.BooleanField(default=False)
    """A person asked for it: it is tried although the channel is off."""
    made_at = models.DateTimeField(db_default=ClockTimestamp())
    next_try_at = moment()
    ended_at = moment()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "id"], name="message_in_workspace_told"),
            models.CheckConstraint(
                name="message_waits_for_a_try",
                condition=Q(state="waiting", next_try_at__isnull=False, ended_at__isnull=True)
                | Q(~Q(state="waiting"), next_try_at__isnull=True, ended_at__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                fields=["channel", "next_try_at"],
                name="message_to_try",
                condition=Q(state="waiting"),
            ),
            models.Index(fields=["channel", "-made_at"], name="message_newest"),
        ]

    def __str__(self) -> str:
        return ids.shown("notification", self.id)


class Line(models.Model):
    """The outbox: one occurrence for one channel, from when it is due until it is in a message."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="lines")
    occurrence = models.ForeignKey(Occurrence, on_delete=models.CASCADE, related_name="lines")
    message = models.ForeignKey(Message, null=True, on_delete=models.PROTECT, related_name="lines")
    due_at = models.DateTimeField()
    dropped = WordField(Dropped, max_length=10, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "occurrence"], name="line_once"),
        ]
        indexes = [
            models.Index(
                fields=["channel", "due_at"],
                name="line_to_tell",
                condition=Q(message__isnull=True, dropped=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.occurrence_id} for {self.channel_id}"


class Delivery(models.Model):
    """One try of a message: when it began, how it ended, at most 1 KiB of the answer.

    Without `ended_at` nobody knows its end: the notifier was stopped in it, and tried again.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    message = models.ForeignKey(Message, on_delete=models.PROTECT, related_name="deliveries")
    number = models.IntegerField()
    began_at = models.DateTimeField(db_default=ClockTimestamp())
    ended_at = moment()
    was_taken = models.BooleanField(default=False)
    status = models.IntegerField(null=True)
    answer = models.TextField(blank=True)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["message", "number"], name="delivery_number"),
        ]

    def __str__(self) -> str:
        return f"try {self.number} of {self.message_id}"


class ChannelChange(models.Model):
    """What an admin did to a channel, on which grounds, for the audit. Only added; no secret."""

    WHAT = ("made", "changed", "secret_renewed", "switched_on", "switched_off", "tested", "resent")

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    channel = models.ForeignKey(
        Channel, on_delete=models.PROTECT, related_name="changes", db_index=False
    )
    what = models.CharField(max_length=20, choices=[(word, word) for word in WHAT])
    about = models.CharField(max_length=100)
    after = models.CharField(max_length=1000, blank=True)
    grounds = models.CharField(max_length=500)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    by_name = models.CharField(max_length=200)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("channel_change_append_only")]
        indexes = [models.Index(fields=["workspace", "-id"], name="channel_change_newest")]

    def __str__(self) -> str:
        return f"{self.by_name} {self.what} {self.about}"
