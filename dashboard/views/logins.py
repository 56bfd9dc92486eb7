"""Signing in, afresh and out. A refusal never tells which of the two was wrong (S14)."""

import time
from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from dashboard import throttle
from dashboard.logins import profile_of
from dashboard.people import page
from dashboard.throttle import TooManyTries
from ledger.api.auth import LOGGED_IN_AT
from ledger.permissions import FRESH_LOGIN_S

REFUSED = (
    "This name and password belong to no login that may sign in. "
    "Check both, then try again, or ask an admin of your workspace for a new password."
)
NOT_YOURS = "This is not your password. Nothing was changed. Check it, then try again."


def address_of(request: HttpRequest) -> str:
    """The connection's address, which the server takes from known proxies only."""
    return str(request.META.get("REMOTE_ADDR") or "unknown")


class LoginForm(AuthenticationForm):
    """Name and password; one sentence for every refusal."""

    error_messages = {"invalid_login": REFUSED, "inactive": REFUSED}

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        until = profile_of(user).one_time_until
        if until and until < timezone.now():
            raise ValidationError(REFUSED, code="invalid_login")


class SignIn(LoginView):
    """The sign-in page; who has signed in already is sent on. Tries are counted."""

    template_name = "dashboard/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        name = request.POST.get("username", "")
        try:
            throttle.take(name, address_of(request))
        except TooManyTries as refusal:
            return self._wait(refusal)
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        throttle.succeeded(form.data.get("username", ""), address_of(self.request))
        return super().form_valid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"ended": self.request.GET.get("ended") == "1"}

    def _wait(self, refusal: TooManyTries) -> HttpResponse:
        form = LoginForm(self.request, initial={"username": self.request.POST.get("username", "")})
        shown = self.get_context_data(form=form, waits=str(refusal))
        return _to_wait(render(self.request, self.template_name, shown), refusal)


def _to_wait(answer: HttpResponse, refusal: TooManyTries) -> HttpResponse:
    answer.status_code = 429
    answer["Retry-After"] = str(refusal.wait_s)
    return answer


class PasswordForm(forms.Form):
    """One's own password, once more."""

    password = forms.CharField(strip=False, max_length=4096, label="Password")


@page
def again(request: HttpRequest) -> HttpResponse:
    """Ask for the password once more and go back: who decides about a side effect is present."""
    back = _back(request)
    shown: dict[str, Any] = {"next": back, "minutes": FRESH_LOGIN_S // 60}
    if request.method != "POST":
        return render(request, "dashboard/login_again.html", shown)
    try:
        refusal = _why_not(request)
    except TooManyTries as wait:
        told = render(request, "dashboard/login_again.html", shown | {"refusal": str(wait)})
        return _to_wait(told, wait)
    if refusal:
        shown["refusal"] = refusal
        return render(request, "dashboard/login_again.html", shown, status=422)
    request.session[LOGGED_IN_AT] = time.time()
    request.session.cycle_key()
    return HttpResponseRedirect(back)


def _why_not(request: HttpRequest) -> str:
    """Nothing where the password is right, else the sentence. Raises TooManyTries."""
    name, address = request.user.get_username(), address_of(request)
    throttle.take(name, address)
    typed = PasswordForm(request.POST)
    password = typed.cleaned_data["password"] if typed.is_valid() else ""
    if authenticate(request, username=name, password=password) != request.user:
        return NOT_YOURS
    throttle.succeeded(name, address)
    return ""


def _back(request: HttpRequest) -> str:
    """The page of ours to come back to (S37)."""
    asked = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(asked, {request.get_host()}, request.is_secure())
    return asked if ours else reverse("home")
