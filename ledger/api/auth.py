"""Who asks: an agent by its key, or a person by a login (security, sections 5 and 6).

A key is accepted in `Authorization: Bearer` only; twice, in the query or in a cookie it is
refused with 400. No key decides, approves or changes a policy: those operations take a login.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja.security.apikey import APIKeyCookie
from ninja.security.base import AuthBase

from ledger import keys
from ledger.errors import Invalid, LedgerError, PermissionMissing
from ledger.keys import KeyRefused, Principal
from ledger.models import Membership


class KeyMisplaced(LedgerError):
    """A key came where keys do not belong, so it must be taken as leaked."""

    code = "key_misplaced"
    http = 400
    sentence = (
        "A key came twice, in the address or in a cookie. Nothing was done. Send it once, in "
        "'Authorization: Bearer', and replace the key: it may stand in a log now."
    )


def bearer_of(authorization: str | None, query: str, cookie: str) -> str:
    """The key of a request's headers. Raises KeyMisplaced or KeyRefused."""
    if "clh_" in query or "clh_" in cookie:
        raise KeyMisplaced()
    if not authorization:
        raise KeyRefused()
    scheme, _, key = authorization.partition(" ")
    if "," in authorization:
        raise KeyMisplaced()
    if scheme.lower() != "bearer":
        raise KeyRefused()
    return key.strip()


def need_scope(principal: Principal, scope: str) -> None:
    """Raise PermissionMissing unless the key has the scope."""
    if scope not in principal.scopes:
        raise PermissionMissing(needed=f"the scope {scope}")


class Key(AuthBase):
    """An agent's key with a scope; `request.auth` is its Principal."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.openapi_bearerFormat = "clh_<env>_<id>_<secret>_<check>"
        super().__init__()

    def __call__(self, request: HttpRequest) -> Principal:
        principal = keys.principal_of(
            bearer_of(
                request.headers.get("Authorization"),
                request.META.get("QUERY_STRING", ""),
                request.headers.get("Cookie", ""),
            )
        )
        need_scope(principal, self.scope)
        return principal


@dataclass(frozen=True, slots=True)
class Person:
    """A logged-in person in one workspace, with the roles held there."""

    id: int
    name: str
    workspace_id: UUID
    roles: frozenset[str]


class Login(APIKeyCookie):
    """A person's login with one of these roles, and its CSRF token on every change."""

    param_name = "clearhouse_login"

    def __init__(self, *roles: str) -> None:
        self.roles = frozenset(roles)
        super().__init__(csrf=True)

    def authenticate(self, request: HttpRequest, key: str | None) -> Person | None:
        user: Any = request.user
        if not user.is_authenticated:
            return None
        found = list(Membership.objects.filter(person=user).values_list("workspace_id", "role"))
        if not found:
            raise PermissionMissing(needed="membership of a workspace")
        workspace_id = found[0][0]
        held = frozenset(role for workspace, role in found if workspace == workspace_id)
        if self.roles and not held & self.roles:
            raise PermissionMissing(needed=f"the role {' or '.join(sorted(self.roles))}")
        return Person(user.pk, user.get_username(), workspace_id, held)

    def _get_key(self, request: HttpRequest) -> str | None:
        return "login"


class KeyOrLogin(Key):
    """Either: an agent's key where one is sent, else a login."""

    def __init__(self, scope: str, *roles: str) -> None:
        super().__init__(scope)
        self._login = Login(*roles)

    def __call__(self, request: HttpRequest) -> Any:
        if "Authorization" in request.headers:
            return super().__call__(request)
        person = self._login(request)
        if person is None:
            raise KeyRefused()
        return person


def idempotency_key_of(header: str | None) -> str | None:
    """The header's key exactly as sent: 1 to 255 characters. Raises Invalid."""
    if header is None:
        return None
    if not 1 <= len(header) <= 255 or "\x00" in header:
        raise Invalid(detail="An Idempotency-Key has 1 to 255 characters.")
    return header
