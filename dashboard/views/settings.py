"""One's own settings: profile, workspace, password, the end of all logins."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import logout, update_session_auth_hash
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard import deeds, logins, throttle
from dashboard.forms import OwnPassword, ProfileForm
from dashboard.logins import profile_of
from dashboard.models import Profile
from dashboard.people import Visit, page
from dashboard.settings import ROLE_MEANINGS, TABS
from dashboard.views.logins import address_of
from ledger.api.auth import WORKSPACE
from ledger.errors import NotFound
from ledger.models import Workspace


@page
def index(request: Visit) -> HttpResponse:
    """What one has chosen, and who one is here."""
    if request.method == "POST":
        return _save(request)
    return _shown(request, ProfileForm(instance=profile_of(request.user)))


def _save(request: Visit) -> HttpResponse:
    form = ProfileForm(request.POST, instance=Profile(person_id=request.person.id))
    if not form.is_valid():
        return _shown(request, form, status=422)
    Profile.objects.update_or_create(person_id=request.user.pk, defaults=form.cleaned_data)
    return deeds.told(request, "Saved. Your pages look like this from now on.", reverse("settings"))


def _shown(request: Visit, form: ProfileForm, *, status: int = 200) -> HttpResponse:
    limits: Any = settings.ENVIRONMENT
    shown = {
        "form": form,
        "tabs": TABS,
        "roles": [(role, ROLE_MEANINGS[role]) for role in sorted(request.person.roles)],
        "idle_min": int(limits.login_idle_s // 60),
        "whole_h": round(limits.login_s / 3600, 1),
    }
    return render(request, "dashboard/settings/index.html", shown, status=status)


@page
@require_POST
def workspace(request: Visit) -> HttpResponse:
    """Look at another workspace of one's own from now on."""
    try:
        wanted = UUID(request.POST.get("workspace", ""))
    except ValueError:
        raise NotFound(noun="workspace") from None
    found = Workspace.objects.filter(memberships__person=request.person.id, pk=wanted).first()
    if found is None:
        raise NotFound(noun="workspace")
    request.session[WORKSPACE] = found.pk.hex
    request.session.cycle_key()
    return deeds.told(request, f"You are in {found.name} now.", reverse("home"))


@page
def password(request: HttpRequest) -> HttpResponse:
    """Change one's own password, which ends every other login."""
    user: Any = request.user
    form = OwnPassword(user)
    if request.method == "POST":
        try:
            throttle.take(request.user.get_username(), address_of(request))
        except throttle.TooManyTries as wait:
            return _password(request, form, refusal=wait)
        form = OwnPassword(user, request.POST)
        if form.is_valid():
            return _changed(request, form)
    return _password(request, form)


def _changed(request: HttpRequest, form: OwnPassword) -> HttpResponse:
    throttle.succeeded(request.user.get_username(), address_of(request))
    form.save()
    logins.end_all(request.user)
    Profile.objects.filter(person_id=request.user.pk).update(one_time_until=None)
    # This login goes on, under a new key, and counts from now.
    update_session_auth_hash(request, form.user)
    logins.begin(None, request)
    said = "Your password is changed. Every other login of yours has ended."
    return deeds.told(request, said, reverse("settings"))


def _password(
    request: HttpRequest, form: OwnPassword, *, refusal: throttle.TooManyTries | None = None
) -> HttpResponse:
    shown = {"form": form, "tabs": TABS, "refusal": str(refusal or ""),
             "first": profile_of(request.user).one_time_until}  # fmt: skip
    status = 429 if refusal else 422 if form.errors else 200
    answer = render(request, "dashboard/settings/password.html", shown, status=status)
    if refusal:
        answer["Retry-After"] = str(refusal.wait_s)
    return answer


@page
@require_POST
def ends(request: HttpRequest) -> HttpResponse:
    """End every login of one's own, this one too."""
    logins.end_all(request.user)
    logout(request)
    return HttpResponseRedirect(f"{reverse('login')}?ended=1")
