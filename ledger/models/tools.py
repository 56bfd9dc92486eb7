"""Tools, their versions and policies. Versions are immutable: a call refers to its own."""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from ledger import ids
from ledger.models.fields import ClockTimestamp, WordField, append_only, moment
from ledger.models.workspaces import Workspace
from ledger.policies import CallPolicy, unlinted
from ledger.vocabulary import RecoveryClass


class Tool(models.Model):
    """A named capability of a workspace: which version and which policy hold now."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="tools")
    name = models.CharField(max_length=128)
    version = models.PositiveIntegerField(default=0)
    policy_version = models.PositiveIntegerField(default=0)
    switched_off_at = moment()
    switched_off_grounds = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="tool_name"),
            models.UniqueConstraint(fields=["workspace", "id"], name="tool_in_workspace"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def gives_handles(self) -> bool:
        """Whether its present version can be asked after by a handle; one query."""
        return self.versions.filter(number=self.version, handles=True).exists()


class Authored(models.Model):
    """Who wrote a version, when and on what grounds: every change has an author."""

    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    author_name = models.CharField(max_length=200)
    grounds = models.TextField()
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        abstract = True


class ToolVersion(Authored):
    """What a tool is: its executor, its input schema, and the untrusted hints it came with."""

    EXECUTORS = ("python", "http", "command")

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    executor = models.CharField(max_length=20, choices=[(e, e) for e in EXECUTORS])
    config = models.JSONField(default=dict)
    description = models.TextField(blank=True)
    input_schema = models.JSONField(default=dict)
    effect_kinds = ArrayField(models.CharField(max_length=20), default=list)
    annotations = models.JSONField(default=dict)
    handles = models.BooleanField(default=False)
    probes = models.BooleanField(default=False)
    provider = models.CharField(max_length=255, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tool", "number"], name="tool_version_number"),
            models.UniqueConstraint(fields=["workspace", "id"], name="tool_version_in_workspace"),
        ]
        triggers = [append_only("tool_version_append_only")]

    def __str__(self) -> str:
        return f"version {self.number} of {self.tool_id}"


class Policy(Authored):
    """One immutable version of a tool's policy. A call refers to it: that is its snapshot (R24)."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="policies")
    number = models.PositiveIntegerField()
    recovery_class = WordField(RecoveryClass)
    declared = models.BooleanField()
    document = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tool", "number"], name="policy_number"),
            models.UniqueConstraint(fields=["workspace", "id"], name="policy_in_workspace"),
        ]
        triggers = [append_only("policy_append_only")]

    def __str__(self) -> str:
        return f"policy {self.number} of {self.tool_id}"

    @property
    def call_policy(self) -> CallPolicy:
        """The policy as the frozen dataclass that the rules read."""
        return CallPolicy.from_json(self.document)

    @property
    def whole(self) -> dict[str, Any]:
        """The document with every knob of today; one younger than the version is at its preset."""
        return unlinted(self.document).to_json()
