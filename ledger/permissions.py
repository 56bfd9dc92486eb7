"""What each role may do, as data (R150). No key has a role, so no key decides (S7).

Stating evidence and deciding are rights of their own: a `witness` says what was found outside
and leaves the decision to others. So is seeing what is masked: a `revealer` may, nobody else.
Nothing here reads a row.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from ledger.errors import LoginStale


class Right(StrEnum):
    """One thing that a person may do in a workspace."""

    READ = "read"
    """See calls, incidents and what was decided."""

    STATE_EVIDENCE = "state_evidence"
    """Say what was found outside, and put documents on a call's file."""

    DECIDE = "decide"
    """Record a resolution or a correction, take one back, say that a machine is off."""

    APPROVE = "approve"
    """Be the second person of a resolution that somebody else recorded."""

    REVEAL = "reveal"
    """See one masked field of a call, with grounds, for a minute. Not even an admin has it."""

    ADMINISTER = "administer"
    """Change tools, policies, people and keys; grant more of a retry budget."""


R = Right
RIGHTS: dict[str, frozenset[Right]] = {
    "viewer": frozenset({R.READ}),
    "witness": frozenset({R.READ, R.STATE_EVIDENCE}),
    "revealer": frozenset({R.READ, R.REVEAL}),
    "operator": frozenset({R.READ, R.STATE_EVIDENCE, R.DECIDE}),
    "approver": frozenset({R.READ, R.STATE_EVIDENCE, R.DECIDE, R.APPROVE}),
    "admin": frozenset(Right) - {R.REVEAL},
}
"""The rights of each role; a person has those of all roles held in the workspace."""

FRESH_LOGIN_S = 15 * 60
"""How old the login may be that decides about a side effect, in seconds (S7)."""


def roles_with(right: Right) -> tuple[str, ...]:
    """The roles that have a right."""
    return tuple(role for role, rights in RIGHTS.items() if right in rights)


@dataclass(frozen=True, slots=True)
class Person:
    """A logged-in person in one workspace, with the roles held there and the login's age."""

    id: int
    name: str
    workspace_id: UUID
    roles: frozenset[str]
    login_age_s: float = 0.0

    def may(self, right: Right) -> bool:
        return any(right in RIGHTS.get(role, frozenset()) for role in self.roles)

    @property
    def login_is_fresh(self) -> bool:
        return self.login_age_s <= FRESH_LOGIN_S


def need_fresh_login(by: Person) -> None:
    """Raise LoginStale where the login is older than that."""
    if not by.login_is_fresh:
        raise LoginStale(minutes=FRESH_LOGIN_S // 60)
