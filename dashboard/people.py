"""Who looks at a page: the person in the workspace chosen for this login, and what they may do."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from dashboard.models import Profile
from dashboard.views import problems
from ledger.api.auth import person_of
from ledger.errors import LedgerError, PermissionMissing
from ledger.models import Membership
from ledger.permissions import Person, Right, roles_with

P = ParamSpec("P")
Page = Callable[Concatenate[HttpRequest, P], HttpResponse]


class Visit(HttpRequest):
    """A request of a person who is a member of a workspace; for the type checker only."""

    person: Person


def page(view: Callable[Concatenate[Any, P], HttpResponse]) -> Page[P]:
    """A page for members: signed in, never kept by a cache, with `request.person` set.

    What the ledger refuses is shown as a page: the sentence, what it means, the way out.
    """

    @wraps(view)
    def shown(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            request.person = person_of(request)  # type: ignore[attr-defined]
        except PermissionMissing:
            return render(request, "dashboard/not_a_member.html")
        try:
            return view(request, *args, **kwargs)
        except LedgerError as refusal:
            return refused(request, refusal)

    return never_cache(login_required(shown))


def refused(request: HttpRequest, refusal: LedgerError) -> HttpResponse:
    """A page that says what was refused and what can be done."""
    page = {"refusal": refusal, "next_step": problems.NEXT_STEPS.get(refusal.http, "")}
    return render(request, "dashboard/refused.html", page, status=refusal.http)


def need(person: Person, right: Right) -> None:
    """Raise PermissionMissing unless the person has this right here."""
    if not person.may(right):
        raise PermissionMissing(needed=f"the role {' or '.join(roles_with(right))}")


def profile_of(user: Any) -> Profile:
    """What this person has chosen, or the defaults."""
    found = Profile.objects.filter(person=user).first()
    return found or Profile(person=user)


def holders(person: Person, right: Right) -> list[str]:
    """The names of those in this workspace who have a right, for whoever has it not."""
    return list(
        Membership.objects.filter(workspace=person.workspace_id, role__in=roles_with(right))
        .order_by("person__username")
        .values_list("person__username", flat=True)
        .distinct()[:5]
    )
