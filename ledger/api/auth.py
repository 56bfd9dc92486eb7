"""Who asks: an agent by its key, or a person by a login (security, sections 5 and 6).

A key is accepted in `Authorization: Bearer` only; twice, in the query or in a cookie it is
refused with 400. No key decides, approves or changes a policy: those operations take a login.
"""

import contextlib
import time
from typing import Any
from urllib.parse import unquote_plus

from django.conf import settings
from django.http import HttpRequest
from ninja.security.apikey import APIKeyCookie
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from ledger import keys
from ledger.api import quotas
from ledger.api.quotas import QuotaSpent
from ledger.calls import Reader
from ledger.errors import Invalid, LedgerError, PermissionMissing
from ledger.filters import refuse_nul
from ledger.keys import KeyRefused, Principal
from ledger.models import Membership
from ledger.permissions import Person


class KeyMisplaced(LedgerError):
    """A key came where keys do not belong, so it must be taken as leaked."""

    code = "key_misplaced"
    http = 400
    sentence = (
        "A key came twice, in the address or in a cookie. Nothing was done. Send it once, in "
        "'Authorization: Bearer', and replace the key: it may stand in a log now."
    )


class LoginNeeded(LedgerError):
    """No login came with the request, and no key may do this (S7)."""

    code = "authentication_required"
    http = 401
    sentence = "This takes a person's login; no API key may do it. Nothing was done. Log in first."


class TokenMissing(PermissionMissing):
    """A change came with a login and without the token that proves the page it came from."""

    sentence = (
        "The CSRF token is missing or not the login's. Nothing was done. Send the cookie "
        "'csrftoken' back in the header 'X-CSRFToken'."
    )


def bearer_of(authorization: str | None, query: str, cookie: str) -> str:
    """The key of a request's headers. Raises KeyMisplaced or KeyRefused."""
    refuse_misplaced(query, cookie)
    if not authorization:
        raise KeyRefused()
    scheme, _, key = authorization.partition(" ")
    if "," in authorization:
        raise KeyMisplaced()
    if scheme.lower() != "bearer":
        raise KeyRefused()
    return key


def principal_of(key: str, network: str) -> Principal:
    """Whom a key speaks for. Raises KeyRefused, or QuotaSpent where too many were refused there.

    A key that was right before is not held up: nobody may lock another out by guessing.
    """
    if not keys.was_known(key):
        quotas.OF_REFUSED_KEYS.look(network)
    try:
        return keys.principal_of(key)
    except KeyRefused:
        with contextlib.suppress(QuotaSpent):
            quotas.OF_REFUSED_KEYS.spend(network)
        raise


def refuse_misplaced(query: str, cookie: str) -> None:
    """Raise KeyMisplaced for a key in the address, escaped or not, or in a cookie."""
    if "clh_" in cookie or (query and "clh_" in unquote_plus(query)):
        raise KeyMisplaced()


def need_scope(principal: Principal, scope: str) -> None:
    """Raise PermissionMissing unless the key has the scope."""
    if scope not in principal.scopes:
        raise PermissionMissing(needed=f"the scope {scope}")


def reader_of(caller: Any) -> Reader:
    """What a caller may read: an agent its own calls, a person the workspace's."""
    agent_id = caller.agent_id if isinstance(caller, Principal) else None
    return Reader(caller.workspace_id, agent_id)


class Key(AuthBase):
    """An agent's key with a scope; `request.auth` is its Principal."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.openapi_bearerFormat = "clh_<env>_<id>_<secret>_<check>"
        super().__init__()

    def __call__(self, request: HttpRequest) -> Principal:
        spending = quotas.spending_of(request)
        key = bearer_of(request.headers.get("Authorization"), *_elsewhere(request))
        principal = principal_of(key, spending.network)
        spending.as_caller(principal.key_id, principal.workspace_id)
        need_scope(principal, self.scope)
        refuse_nul(request.GET)
        return principal


def _elsewhere(request: HttpRequest) -> tuple[str, str]:
    """Where a key does not belong: the query and the cookies, as sent."""
    return request.META.get("QUERY_STRING", ""), request.headers.get("Cookie", "")


LOGGED_IN_AT = "logged_in_at"
"""Where a login keeps the second in which it began, on the web's clock."""


def note_login(sender: object, request: HttpRequest, **_: object) -> None:
    """Remember when this login began: a decision about a side effect wants a fresh one (S7)."""
    request.session[LOGGED_IN_AT] = time.time()


def _age_of(request: HttpRequest) -> float:
    began = request.session.get(LOGGED_IN_AT)
    return time.time() - began if isinstance(began, int | float) else float("inf")


WORKSPACE = "workspace"
"""Where a login keeps the id of the workspace that its person has chosen."""


def person_of(request: HttpRequest) -> Person:
    """The signed-in person in the workspace chosen for this login, or in the first one.

    Raises PermissionMissing for somebody who is a member of none.
    """
    user: Any = request.user
    found = list(
        Membership.objects.filter(person=user).order_by("id").values_list("workspace_id", "role")
    )
    if not found:
        raise PermissionMissing(needed="membership of a workspace")
    chosen = request.session.get(WORKSPACE)
    present = [workspace for workspace, _ in found]
    workspace_id = next((each for each in present if each.hex == chosen), present[0])
    held = frozenset(role for workspace, role in found if workspace == workspace_id)
    return Person(user.pk, user.get_username(), workspace_id, held, _age_of(request))


class Login(APIKeyCookie):
    """A person's login with one of these roles, and its CSRF token on every change."""

    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self, *roles: str) -> None:
        self.roles = frozenset(roles)
        super().__init__()

    def __call__(self, request: HttpRequest) -> Person:
        refuse_misplaced(*_elsewhere(request))
        if "Authorization" in request.headers:
            raise PermissionMissing(needed="a person's login: no key may do it")
        return self.authenticate(request, None)

    def authenticate(self, request: HttpRequest, key: str | None) -> Person:
        """The person of Django's login; its cookie is Django's to read, so `key` is unused."""
        user: Any = request.user
        if not user.is_authenticated:
            raise LoginNeeded()
        # Every ninja view is exempt from Django's own check, so it is made here or nowhere.
        if check_csrf(request) is not None:
            raise TokenMissing()
        person = person_of(request)
        quotas.spending_of(request).as_caller(f"person {person.id}", person.workspace_id)
        if self.roles and not person.roles & self.roles:
            raise PermissionMissing(needed=f"the role {' or '.join(sorted(self.roles))}")
        refuse_nul(request.GET)
        return person


class KeyOrLogin(Key):
    """Either: an agent's key where one is sent, else a login."""

    def __init__(self, scope: str, *roles: str) -> None:
        super().__init__(scope)
        self._login = Login(*roles)

    def __call__(self, request: HttpRequest) -> Any:
        if "Authorization" in request.headers:
            return super().__call__(request)
        try:
            return self._login(request)
        except LoginNeeded:
            raise KeyRefused from None


def idempotency_key_of(header: str | None) -> str | None:
    """The header's key exactly as sent: 1 to 255 characters. Raises Invalid."""
    if header is None:
        return None
    if not 1 <= len(header) <= 255 or "\x00" in header:
        raise Invalid(detail="An Idempotency-Key has 1 to 255 characters.")
    return header
