"""Gates: why no new attempt begins now. A nearly empty table that claims and submits look at."""

from django.conf import settings
from django.db import models

from ledger import ids
from ledger.models.calls import ToolCall
from ledger.models.fields import ClockTimestamp, WordField, append_only, moment
from ledger.models.tools import Tool
from ledger.models.workspaces import Workspace
from ledger.vocabulary import GateKind, GateReason


class Gate(models.Model):
    """A tool, or a provider with all its tools, that takes no new attempt (R50).

    `trial_at`: from when one call may pass; NULL: none until a person lifts the gate.
    `trial_call` is the one that passes, admitted at `admitted_at`.
    """

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    kind = WordField(GateKind, max_length=10)
    name = models.CharField(max_length=255)
    why = WordField(GateReason, max_length=20)
    at = models.DateTimeField(db_default=ClockTimestamp())
    trial_at = moment()
    trial_call = models.ForeignKey(
        ToolCall, null=True, on_delete=models.PROTECT, related_name="+", db_index=False,
        db_constraint=False,
    )  # fmt: skip
    admitted_at = moment()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "kind", "name", "why"], name="gate_once"),
            models.CheckConstraint(
                name="gate_admits_at_an_instant",
                condition=models.Q(trial_call__isnull=True, admitted_at__isnull=True)
                | models.Q(trial_call__isnull=False, admitted_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.why}: {self.kind} {self.name}"


class Switch(models.Model):
    """One press of a tool's switch: on or off, who, why and when. Only ever added."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="switches")
    on = models.BooleanField()
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    person_name = models.CharField(max_length=200)
    grounds = models.TextField()
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        triggers = [append_only("switch_append_only")]

    def __str__(self) -> str:
        return f"{self.tool_id} {'on' if self.on else 'off'}"
