"""Who lives in the demo: the first workspace, its agents, and the people of an office."""

from dataclasses import dataclass
from functools import cached_property

from django.contrib.auth.models import User

from dashboard import members
from ledger import keys
from ledger.models import Agent, Membership, Workspace
from ledger.permissions import Person

GROUNDS = "For the demo: an office with more than one person in it."
OFFICE = {
    "anna": ["admin"],
    "olga": ["operator"],
    "omar": ["operator", "approver"],
    "vera": ["viewer"],
    "will": ["witness"],
}
AGENTS = ("ada", "ben", "cleo")


class NobodyThere(RuntimeError):
    """There is no workspace with an admin yet."""


@dataclass(frozen=True)
class House:
    """The workspace of the demo and everybody in it."""

    workspace: Workspace

    def person(self, name: str) -> Person:
        """A person as the verbs take one, freshly signed in."""
        user = self.user(name)
        held = Membership.objects.filter(workspace=self.workspace, person=user)
        return Person(
            id=user.pk,
            name=name,
            workspace_id=self.workspace.id,
            roles=frozenset(held.values_list("role", flat=True)),
        )

    def user(self, name: str) -> User:
        return User.objects.get(username=name)

    def agent(self, name: str) -> Agent:
        return Agent.objects.get(workspace=self.workspace, name=name)

    @cached_property
    def owner(self) -> Person:
        """The admin who was here before the demo."""
        admins = Membership.objects.filter(workspace=self.workspace, role="admin")
        return self.person(admins.earliest("id").person.username)


def furnished() -> House:
    """The first workspace with its agents and people; those it has already stay as they are.

    Passwords and keys are made and told to nobody: an admin renews what somebody wants to use.
    """
    workspace = Workspace.objects.order_by("created_at").first()
    if not Membership.objects.filter(workspace=workspace, role="admin").exists():
        raise NobodyThere("There is no workspace with an admin yet. Run `manage.py up` first.")
    assert workspace is not None  # noqa: S101 it has a member
    house = House(workspace)
    for name, roles in OFFICE.items():
        if not User.objects.filter(username=name).exists():
            members.invite(name=name, roles=roles, grounds=GROUNDS, by=house.owner)
    for name in AGENTS:
        if not Agent.objects.filter(workspace=workspace, name=name).exists():
            members.make_key(
                agent=name, scopes=list(keys.AGENT_SCOPES), grounds=GROUNDS, by=house.owner
            )
    return house
