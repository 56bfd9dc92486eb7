"""The cast: Acme with its agents Ada and Ben, operator Olga and viewer Vera; Mallory of Globex.

Mallory must see nothing of Acme's, whether as an agent or as a person.
"""

from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.test import Client

from ledger.models import Agent, Membership, Workspace
from ledger.permissions import Person

PASSWORD = "correct horse battery staple"


@dataclass(frozen=True, slots=True)
class Acme:
    """The workspace of most tests, and who belongs to it."""

    workspace: Workspace
    ada: Agent
    ben: Agent
    olga: User
    vera: User


@dataclass(frozen=True, slots=True)
class Globex:
    """The neighbour: `mallory` is its agent, `mallory_herself` the person with every role there."""

    workspace: Workspace
    mallory: Agent
    mallory_herself: User


@cache
def _hashed() -> str:
    return make_password(PASSWORD)


def a_person(name: str, workspace: Workspace, *roles: str) -> User:
    """A person of a workspace, who logs in with PASSWORD."""
    person = User.objects.create(username=name, password=_hashed())
    for role in roles:
        Membership.objects.create(workspace=workspace, person=person, role=role)
    return person


def a_login(name: str) -> str:
    """The cookie of a fresh login of this person, without the form and its hash."""
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def an_agent(name: str, workspace: Workspace) -> Agent:
    return Agent.objects.create(workspace=workspace, name=name)


def found_acme() -> Acme:
    workspace = Workspace.objects.create(slug="acme", name="Acme")
    return Acme(
        workspace,
        ada=an_agent("ada", workspace),
        ben=an_agent("ben", workspace),
        olga=a_person("olga", workspace, "operator"),
        vera=a_person("vera", workspace, "viewer"),
    )


def found_globex() -> Globex:
    workspace = Workspace.objects.create(slug="globex", name="Globex")
    return Globex(
        workspace,
        mallory=an_agent("mallory", workspace),
        mallory_herself=a_person("mallory", workspace, *Membership.ROLES),
    )


def as_decider(person: User, *, login_age_s: float = 0.0) -> Person:
    """A person as the verbs of decisions take one: with the roles held in the first workspace."""
    held = list(Membership.objects.filter(person=person).order_by("id"))
    return Person(
        id=person.id,
        name=person.username,
        workspace_id=held[0].workspace_id,
        roles=frozenset(each.role for each in held),
        login_age_s=login_age_s,
    )
