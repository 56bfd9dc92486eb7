"""Who looks at a page: the person in the workspace chosen for this login, and what they may do."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache

from dashboard import zones
from dashboard.logins import profile_of, to_login
from dashboard.views import problems
from ledger.api.auth import person_of
from ledger.errors import LedgerError, LoginStale, PermissionMissing
from ledger.filters import NUL, HasNul, refuse_nul
from ledger.models import Membership
from ledger.permissions import Person, Right, roles_with

HOLDERS_SHOWN = 5
P = ParamSpec("P")
Page = Callable[Concatenate[HttpRequest, P], HttpResponse]


class Visit(HttpRequest):
    """A request of a person who is a member of a workspace; for the type checker only."""

    person: Person


def page(view: Callable[Concatenate[Any, P], HttpResponse]) -> Page[P]:
    """A page for members: signed in, never kept by a cache, with `request.person` set.

    What the ledger refuses is shown as a page: the sentence, what it means, the way out. No view
    is given a NUL character, in its path, its query or its fields.
    """

    @wraps(view)
    def shown(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_authenticated:
            return signed_out(request)
        of_browser = request.COOKIES.get(zones.COOKIE, "")
        zone = zones.chosen(profile_of(request.user).zone, of_browser)
        with timezone.override(ZoneInfo(zone)):
            return _shown(view, request, *args, **kwargs)

    return never_cache(shown)


def _shown(
    view: Callable[Concatenate[Any, P], HttpResponse],
    request: HttpRequest,
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> HttpResponse:
    try:
        request.person = person_of(request)  # type: ignore[attr-defined]
    except PermissionMissing:
        # A page that is open says so itself; its parts must not be replaced by this one.
        status = 403 if "HX-Request" in request.headers else 200
        return render(request, "dashboard/not_a_member.html", status=status)
    try:
        refuse_nul(request.GET, request.POST, path=request.path)
        return view(request, *args, **kwargs)
    except LedgerError as refusal:
        return refused(request, refusal)


def signed_out(request: HttpRequest) -> HttpResponse:
    """A page asked for without a login: the way there; a form sent without one: 401, nothing done.

    The form's typed text stays in its tab (static/app.js), so the sign-in opens in another one.
    """
    if request.method in ("GET", "HEAD") and "HX-Request" not in request.headers:
        return to_login(request)
    return render(request, "dashboard/logged_out.html", {"back": came_from(request)}, status=401)


def came_from(request: HttpRequest) -> str:
    """The page of ours that a form stood on, as a path; the overview where that is not known."""
    found = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(found, {request.get_host()}):
        return reverse("home")
    parts = urlsplit(found)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def refused(request: HttpRequest, refusal: LedgerError) -> HttpResponse:
    """A page that says what was refused and what can be done."""
    page = {"refusal": refusal, "next_step": problems.NEXT_STEPS.get(refusal.http, "")}
    if isinstance(refusal, LoginStale):
        page |= {"again": again(came_from(request)), "next_step": ""}
    if isinstance(refusal, HasNul) and request.GET and NUL not in request.path:
        page["without_nul"] = f"{request.path}?{_without_nul(request.GET)}"
    return render(request, "dashboard/refused.html", page, status=refusal.http)


def _without_nul(query: QueryDict) -> str:
    """The same query with everything else that was typed."""
    return urlencode([
        (name.replace(NUL, ""), text.replace(NUL, ""))
        for name, texts in query.lists() for text in texts
    ])  # fmt: skip


def again(back: str) -> str:
    """The address at which a person signs in afresh and comes back, to decide a side effect."""
    return f"{reverse('login-again')}?{urlencode({'next': back}, safe='/')}"


def need(person: Person, right: Right) -> None:
    """Raise PermissionMissing unless the person has this right here."""
    if not person.may(right):
        raise PermissionMissing(needed=f"the role {' or '.join(roles_with(right))}")


def holders(person: Person, right: Right) -> list[str]:
    """The names of those in this workspace who have a right, for whoever has it not."""
    return list(_names_with(person, right)[:HOLDERS_SHOWN])


def how_many_hold(person: Person, right: Right) -> int:
    """How many people in this workspace have a right and can sign in."""
    return _names_with(person, right).count()


def _names_with(person: Person, right: Right) -> "QuerySet[Membership, str]":
    rows = Membership.objects.filter(
        workspace=person.workspace_id, role__in=roles_with(right), person__is_active=True
    )
    names = rows.order_by("person__username").values_list("person__username", flat=True)
    return names.distinct()
