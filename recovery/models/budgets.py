"""The account of repeats: what each cost, what was refused, what people granted. Only ever added.

Given back is no row: a repeat that was never claimed before its call settled without a possible
effect costs nothing, and the call's own row says so (`recovery/standings.py`).
"""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from ledger import ids
from ledger.models import Session, ToolCall, Turn, Workspace
from ledger.models.fields import ClockTimestamp, WordField, append_only, moment
from ledger.vocabulary import BudgetScope, Cause


def _kept(model: Any, **options: Any) -> "models.ForeignKey[Any, Any]":
    return models.ForeignKey(model, on_delete=models.PROTECT, related_name="+", **options)


class Repeat(models.Model):
    """One line of the account: a repeat was scheduled, by which rule, and what it left (R49).

    It costs one in each scope, and `wait_s` plus its run in the turn's time. `*_left` is what
    the scope has left after it; NULL where the call has no such scope. `granted_by` is the
    person whose resolution it carries out; such a one passes turn and session.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = _kept(Workspace, db_index=False)
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="repeats")
    session = _kept(Session, null=True, db_index=False)
    turn = _kept(Turn, null=True, db_index=False)
    tool = models.CharField(max_length=128)
    number = models.IntegerField()
    rule = models.CharField(max_length=60)
    cause = WordField(Cause, blank=True)
    grounds = models.TextField()
    wait_s = models.FloatField()
    call_left = models.IntegerField()
    turn_left = models.IntegerField(null=True)
    session_left = models.IntegerField(null=True)
    tool_left = models.IntegerField()
    granted_by = _kept(settings.AUTH_USER_MODEL, null=True, db_index=False)
    granted_by_name = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("repeat_append_only")]
        constraints = [
            models.UniqueConstraint(fields=["call", "number"], name="repeat_once"),
            models.CheckConstraint(
                # The first attempt of an imported call repeats what was made elsewhere.
                name="repeat_has_a_number",
                condition=Q(number__gte=1, wait_s__gte=0),
            ),
        ]
        indexes = [
            models.Index(fields=["turn"], name="repeat_of_turn", condition=Q(turn__isnull=False)),
            models.Index(
                fields=["session", "at"],
                name="repeat_of_session",
                condition=Q(session__isnull=False),
            ),
            models.Index(fields=["workspace", "tool", "at"], name="repeat_of_tool"),
        ]

    def __str__(self) -> str:
        return f"repeat {self.number} of {self.call_id}"


class Refusal(models.Model):
    """A repeat that a spent scope refused."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = _kept(Workspace, db_index=False)
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="refusals")
    tool = models.CharField(max_length=128)
    scope = WordField(BudgetScope, max_length=10)
    grounds = models.TextField()
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("refusal_append_only")]
        indexes = [models.Index(fields=["workspace", "tool", "at"], name="refusal_of_tool")]

    def __str__(self) -> str:
        return f"{self.scope} refused {self.call_id}"


class Grant(models.Model):
    """What a person added to one scope, on which grounds, and until when (NULL: for life)."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = _kept(Workspace, db_index=False)
    scope = WordField(BudgetScope, max_length=10)
    call = models.ForeignKey(ToolCall, null=True, on_delete=models.PROTECT, related_name="grants")
    session = _kept(Session, null=True)
    turn = _kept(Turn, null=True)
    tool = models.CharField(max_length=128, blank=True)
    attempts = models.IntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    person = _kept(settings.AUTH_USER_MODEL, db_index=False)
    person_name = models.CharField(max_length=200)
    grounds = models.TextField()
    key = models.CharField(max_length=255, blank=True)
    at = models.DateTimeField(db_default=ClockTimestamp())
    until = moment()

    class Meta:
        triggers = [append_only("grant_append_only")]
        constraints = [
            models.UniqueConstraint(
                fields=["person", "key"], condition=~Q(key=""), name="grant_key_once"
            ),
            models.CheckConstraint(
                name="grant_names_its_scope",
                condition=Q(scope="call", call__isnull=False, turn=None, session=None, tool="")
                | Q(scope="turn", turn__isnull=False, call=None, session=None, tool="")
                | Q(scope="session", session__isnull=False, call=None, turn=None, tool="")
                | (Q(scope="tool", call=None, turn=None, session=None) & ~Q(tool="")),
            ),
            models.CheckConstraint(
                name="grant_adds_something",
                condition=Q(attempts__gte=0, seconds__gte=0)
                & (Q(attempts__gt=0) | Q(seconds__gt=0)),
            ),
        ]
        indexes = [
            models.Index(
                fields=["workspace", "tool", "at"], name="grant_of_tool", condition=~Q(tool="")
            )
        ]

    def __str__(self) -> str:
        return f"{self.attempts} for {self.scope}"
