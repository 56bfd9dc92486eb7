"""What admins do with people and keys: each deed checks, changes, and keeps a row of the audit.

The workspace's row is locked first, so that two admins who remove each other leave one. A password
or a key is returned once and written nowhere; a person of another workspace keeps what is theirs.
"""

import secrets as random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from dashboard.logins import end_all
from dashboard.models import Profile, WorkspaceChange
from dashboard.people import need
from ledger import keys
from ledger.errors import Invalid, LedgerError, NotFound
from ledger.models import Agent, ApiKey, Membership, Workspace
from ledger.permissions import Person, Right

ONE_TIME = timedelta(days=7)
"""How long a password that an admin has seen may be used for its change."""


class LastAdmin(LedgerError):
    """A workspace keeps one admin who can sign in: nobody else could make another."""

    code = "last_admin"
    sentence = (
        "{name} is the last admin of this workspace who can sign in. Nothing was changed. Make "
        "somebody else an admin first."
    )


class NameTaken(LedgerError):
    """Names of logins are unique in the whole installation."""

    code = "name_taken"
    sentence = "There is a login of the name {name!r}. Nothing was made. Take another name."


class BelongsElsewhere(LedgerError):
    """A login of two workspaces is not one admin's to end or to open."""

    code = "belongs_elsewhere"
    sentence = (
        "{name} belongs to another workspace too. Nothing was changed. Remove the roles here, or "
        "ask whoever runs this installation."
    )


@dataclass(frozen=True, slots=True)
class Invited:
    """A new login, and the password that its admin may read once."""

    person_id: int
    password: str


def one_of(workspace_id: UUID, person_id: int) -> User:
    """A person of this workspace, or of its past. Raises NotFound."""
    found = User.objects.filter(pk=person_id, memberships__workspace=workspace_id).first()
    if found is None:
        raise NotFound(noun="person")
    return found


@transaction.atomic
def invite(*, name: str, roles: list[str], grounds: str, by: Person) -> Invited:
    """Make a login with a password for one use. Raises NameTaken, Invalid, PermissionMissing."""
    _begin(by)
    _need_roles(roles)
    password = _password()
    try:
        with transaction.atomic():
            person = User.objects.create_user(name, password=password)
    except IntegrityError:
        raise NameTaken(name=name) from None
    _for_one_use(person)
    _hold(by.workspace_id, person, roles)
    _note("invited", name, grounds, by, after=", ".join(sorted(roles)))
    return Invited(person.pk, password)


@transaction.atomic
def change_roles(*, person_id: int, roles: list[str], grounds: str, by: Person) -> str:
    """Let a person hold exactly these roles here, and end their logins; the name.

    Raises LastAdmin, Invalid, NotFound, PermissionMissing.
    """
    _begin(by)
    _need_roles(roles)
    person = one_of(by.workspace_id, person_id)
    before = sorted(_roles(by.workspace_id, person))
    if sorted(roles) == before:
        raise Invalid(detail="These are the roles held already. Nothing was changed.")
    if "admin" in before and "admin" not in roles:
        _need_another_admin(by.workspace_id, person)
    Membership.objects.filter(workspace=by.workspace_id, person=person).delete()
    _hold(by.workspace_id, person, roles)
    end_all(person)
    _note("roles_changed", person.username, grounds, by,
          before=", ".join(before), after=", ".join(sorted(roles)))  # fmt: skip
    return person.username


@transaction.atomic
def renew_password(*, person_id: int, grounds: str, by: Person) -> Invited:
    """Give a person a new password for one use. Raises BelongsElsewhere, NotFound."""
    _begin(by)
    person = _own(by, person_id)
    password = _password()
    person.set_password(password)
    person.save(update_fields=["password"])
    _for_one_use(person)
    _note("password_renewed", person.username, grounds, by)
    return Invited(person.pk, password)


@transaction.atomic
def deactivate(*, person_id: int, grounds: str, by: Person) -> str:
    """Let a person sign in no more; what they decided stays theirs. Raises LastAdmin."""
    _begin(by)
    person = _own(by, person_id)
    if "admin" in _roles(by.workspace_id, person):
        _need_another_admin(by.workspace_id, person)
    return _switch(person, False, "deactivated", grounds, by)


@transaction.atomic
def activate(*, person_id: int, grounds: str, by: Person) -> str:
    """Let a person sign in again, with the roles and the password held before."""
    _begin(by)
    return _switch(_own(by, person_id), True, "activated", grounds, by)


def _switch(person: User, active: bool, what: str, grounds: str, by: Person) -> str:
    if person.is_active == active:
        raise Invalid(detail=f"{person.username} is {what} already. Nothing was changed.")
    person.is_active = active
    person.save(update_fields=["is_active"])
    end_all(person)
    _note(what, person.username, grounds, by)
    return person.username


@transaction.atomic
def make_key(*, agent: str, scopes: list[str], grounds: str, by: Person) -> str:
    """Make a key for an agent of this name, which is made where it is new; the key, once."""
    _begin(by)
    unknown = set(scopes) - set(keys.SCOPES)
    if unknown or not scopes:
        raise Invalid(detail="A key has at least one scope of those listed. Nothing was made.")
    known, _ = Agent.objects.get_or_create(workspace_id=by.workspace_id, name=agent)
    key = keys.issue(agent=known, scopes=tuple(scopes))
    _note("key_made", key.split("_")[2], grounds, by, after=f"{agent}: {', '.join(scopes)}"[:300])
    return key


@transaction.atomic
def revoke_key(*, key_id: str, grounds: str, by: Person) -> None:
    """End a key; it is refused everywhere within five seconds. Raises NotFound, Invalid."""
    _begin(by)
    found = ApiKey.objects.filter(workspace=by.workspace_id, id=key_id).first()
    if found is None:
        raise NotFound(noun="key")
    if found.revoked_at:
        raise Invalid(detail="This key is revoked already. Nothing was changed.")
    keys.revoke(key_id=key_id)
    _note("key_revoked", key_id, grounds, by)


def _begin(by: Person) -> None:
    need(by, Right.ADMINISTER)
    Workspace.objects.select_for_update().get(pk=by.workspace_id)


def _need_roles(roles: list[str]) -> None:
    if not roles or set(roles) - set(Membership.ROLES):
        raise Invalid(detail="A person holds at least one role of those listed. Nothing was done.")


def _own(by: Person, person_id: int) -> User:
    """A person who belongs to this workspace alone."""
    person = one_of(by.workspace_id, person_id)
    if Membership.objects.filter(person=person).exclude(workspace=by.workspace_id).exists():
        raise BelongsElsewhere(name=person.username)
    return person


def _roles(workspace_id: UUID, person: User) -> list[str]:
    held = Membership.objects.filter(workspace=workspace_id, person=person)
    return list(held.values_list("role", flat=True))


def _hold(workspace_id: UUID, person: User, roles: list[str]) -> None:
    for role in sorted(set(roles)):
        Membership.objects.create(workspace_id=workspace_id, person=person, role=role)


def _need_another_admin(workspace_id: UUID, person: User) -> None:
    admins = Membership.objects.filter(
        workspace=workspace_id, role="admin", person__is_active=True
    ).exclude(person=person)
    if not admins.exists():
        raise LastAdmin(name=person.username)


def _password() -> str:
    """Four times five characters, to be read aloud: 100 bits."""
    letters = "abcdefghijkmnpqrstuvwxyz23456789"
    return "-".join("".join(random.choice(letters) for _ in range(5)) for _ in range(4))


def _for_one_use(person: User) -> None:
    end_all(person)
    Profile.objects.filter(person=person).update(one_time_until=timezone.now() + ONE_TIME)


def _note(what: str, about: str, grounds: str, by: Person, **more: Any) -> None:
    WorkspaceChange.objects.create(
        workspace_id=by.workspace_id, what=what, about=about, grounds=grounds,
        by_id=by.id, by_name=by.name, **more,
    )  # fmt: skip
