"""What the settings pages show: people with their roles, keys with their last use."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.postgres.aggregates import ArrayAgg

from dashboard.models import WorkspaceChange
from ledger.models import ApiKey
from ledger.permissions import RIGHTS

PEOPLE_MAX = 500
KEYS_MAX = 200
CHANGES_MAX = 20

TABS = (
    ("settings", "You", "settings"),
    ("settings-people", "People and roles", "settings-pe"),
    ("settings-keys", "API keys", "settings-ke"),
    ("settings-channels", "Notifications", "settings-ch"),
)
"""The parts of the settings: address, word, and how the names of its pages begin."""


@dataclass(frozen=True, slots=True)
class Member:
    """One person of a workspace, as the list shows them."""

    id: int
    name: str
    roles: tuple[str, ...]
    last_login: datetime | None
    standing: str
    """`active`, `deactivated`, or `password not changed yet`."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its public front and its life, never its secret."""

    id: str
    agent: str
    scopes: tuple[str, ...]
    made_at: datetime
    last_used_at: datetime | None
    expires_at: datetime
    standing: str
    """`valid`, `expired` or `revoked`."""

    @property
    def can_be_revoked(self) -> bool:
        return self.standing == "valid"


def people_of(workspace_id: UUID) -> list[Member]:
    """Everybody who holds a role here, by name."""
    return [_member(person) for person in _people(workspace_id)[:PEOPLE_MAX]]


def member_of(workspace_id: UUID, person_id: int) -> Member | None:
    """One person of the list; None for a stranger."""
    found = _people(workspace_id).filter(pk=person_id).first()
    return _member(found) if found else None


def _people(workspace_id: UUID) -> Any:
    return (
        User.objects.filter(memberships__workspace=workspace_id)
        .annotate(held=ArrayAgg("memberships__role", order_by=["memberships__role"]))
        .select_related("profile")
        .order_by("username")
    )


def _member(person: Any) -> Member:
    profile = getattr(person, "profile", None)
    standing = "active"
    if not person.is_active:
        standing = "deactivated"
    elif profile is not None and profile.one_time_until:
        standing = "password not changed yet"
    return Member(person.pk, person.username, tuple(person.held), person.last_login, standing)


def keys_of(workspace_id: UUID, now: datetime) -> list[Key]:
    """The keys of a workspace, the valid ones first, then the newest."""
    rows = ApiKey.objects.filter(workspace=workspace_id).select_related("agent")
    found = [_key(row, now) for row in rows.order_by("revoked_at", "-created_at")[:KEYS_MAX]]
    return sorted(found, key=lambda key: not key.can_be_revoked)


def key_of(workspace_id: UUID, key_id: str, now: datetime) -> Key | None:
    """One key of the list; None for a foreign one."""
    rows = ApiKey.objects.filter(workspace=workspace_id, id=key_id)
    found = rows.select_related("agent").first()
    return _key(found, now) if found else None


def _key(row: ApiKey, now: datetime) -> Key:
    standing = "revoked" if row.revoked_at else "expired" if row.expires_at <= now else "valid"
    return Key(
        row.id, row.agent.name, tuple(row.scopes), row.created_at, row.last_used_at,
        row.expires_at, standing,
    )  # fmt: skip


def changes_of(workspace_id: UUID, *, about: str = "", keys: bool = False) -> list[WorkspaceChange]:
    """The newest changes of people, or of keys, by admins."""
    rows = WorkspaceChange.objects.filter(workspace=workspace_id)
    rows = rows.filter(what__startswith="key_") if keys else rows.exclude(what__startswith="key_")
    if about:
        rows = rows.filter(about=about)
    return list(rows.order_by("-id")[:CHANGES_MAX])


ROLE_MEANINGS = {
    "viewer": "reads; payloads masked",
    "witness": "says what was found outside, and decides nothing",
    "revealer": "sees one masked field at a time, with grounds; nothing else shows it",
    "operator": "decides about incidents, answers questions",
    "approver": "as operator, and is the second person",
    "admin": "everything here, and people, keys, tools, policies and grants",
}
assert ROLE_MEANINGS.keys() == RIGHTS.keys()  # noqa: S101 a new role must be explained

SCOPE_MEANINGS = {
    "calls:submit": "submit calls, cancel its own before the boundary",
    "calls:read": "read its own calls, results and verdicts",
    "turns:write": "open and close turns, compact, hand off, acknowledge",
    "worker": "claim and run attempts; for executors elsewhere",
    "interrupts:answer": "answer what policy addresses to the agent's own user",
    "export:read": "export transcripts and audit of the workspace",
}
