"""Workspaces, the agents and people in them, and the keys of agents."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from ledger import ids
from ledger.models.fields import ClockTimestamp, moment
from ledger.permissions import RIGHTS


class Workspace(models.Model):
    """The tenant: agents, tools, policies, people and sessions belong to one."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=ClockTimestamp())

    def __str__(self) -> str:
        return self.slug


class Agent(models.Model):
    """A principal that submits calls, with API keys."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="agents")
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="agent_name"),
            models.UniqueConstraint(fields=["workspace", "id"], name="agent_in_workspace"),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A role of a person in a workspace; what each may do is in `ledger/permissions.py` (R150)."""

    ROLES = tuple(RIGHTS)

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="memberships")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="memberships"
    )
    role = models.CharField(max_length=20, choices=[(role, role) for role in ROLES])

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "person", "role"], name="membership_once"),
        ]

    def __str__(self) -> str:
        return f"{self.person} is {self.role} in {self.workspace}"


class ApiKey(models.Model):
    """An agent's key: its public id and the keyed hash of its secret, never the secret (S10)."""

    id = models.CharField(primary_key=True, max_length=12)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="api_keys")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="api_keys")
    secret_hmac = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=40))
    created_at = models.DateTimeField(db_default=ClockTimestamp())
    expires_at = models.DateTimeField()
    revoked_at = moment()
    last_used_at = moment()

    def __str__(self) -> str:
        return f"key {self.id} of {self.agent_id}"
