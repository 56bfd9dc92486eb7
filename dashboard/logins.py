"""How long a login lasts (S14): an idle bound, an absolute one, and its end by a change of rights.

A login keeps the seconds of its beginning and of its last use, on the web's clock; the profile
says from when logins count. Parts that a page asks for by itself are no use: an open tab that
nobody looks at ends like any other. While the password is one that an admin has seen, nothing is
open but the page that changes it.
"""

import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.conf import settings
from django.contrib.auth import get_user, logout
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware

from dashboard.models import Profile

BEGAN = "login_began_at"
SEEN = "login_seen_at"
ENDED = "login_ended"
NOTED_EVERY_S = 60
"""A use is written at most this often; the idle bound is exact to it."""

Answer = HttpResponse | None


def begin(sender: object, request: HttpRequest, **_: object) -> None:
    """A login begins: its bounds count from now on."""
    request.session[BEGAN] = request.session[SEEN] = time.time()


def end_all(person: Any) -> None:
    """End every login of a person that has begun until now."""
    Profile.objects.update_or_create(person=person, defaults={"logins_from": timezone.now()})


def profile_of(user: Any) -> Profile:
    """What this person has chosen, or the defaults; read once for each request."""
    try:
        found: Profile = user.profile
    except Profile.DoesNotExist:
        found = Profile(person_id=user.pk)
    return found


def looked_up(key: str) -> HttpRequest | None:
    """A login by its key, as a request that somebody makes with it now; None where it has ended.

    For what stays open longer than a request: a stream. It is no use of the login.
    """
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    request.user = get_user(request)
    if not request.user.is_authenticated:
        return None
    profile = profile_of(request.user)
    if profile.one_time_until or _has_ended(request.session, profile, time.time()):
        return None
    return request


@sync_and_async_middleware
def bounds(
    get_response: Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]],
) -> Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]:
    """End what has lasted too long, before any view sees it; agents' requests pass by."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponse:
            answer = await sync_to_async(_bound)(request) if _has_login(request) else None
            return answer or await get_response(request)

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponse:
        answer = _bound(request) if _has_login(request) else None
        return answer or get_response(request)  # type: ignore[return-value]

    return synchronous


def _has_login(request: HttpRequest) -> bool:
    return settings.SESSION_COOKIE_NAME in request.COOKIES


def _bound(request: HttpRequest) -> Answer:
    if not request.user.is_authenticated:
        return None
    profile = profile_of(request.user)
    if _has_ended(request.session, profile, time.time()):
        logout(request)
        setattr(request, ENDED, True)
        return None
    _note_use(request)
    return _first_the_password(request) if profile.one_time_until else None


def _has_ended(session: Any, profile: Profile, now: float) -> bool:
    began, seen = session.get(BEGAN), session.get(SEEN)
    if not isinstance(began, int | float) or not isinstance(seen, int | float):
        return True
    if profile.logins_from and began < profile.logins_from.timestamp():
        return True
    limits = settings.ENVIRONMENT
    return now - began > limits.login_s or now - seen > limits.login_idle_s


def _note_use(request: HttpRequest) -> None:
    now = time.time()
    by_itself = request.path.startswith("/parts/")
    if not by_itself and now - request.session[SEEN] > NOTED_EVERY_S:
        request.session[SEEN] = now


def _first_the_password(request: HttpRequest) -> Answer:
    """Whose password somebody else has seen changes it, and does nothing before that."""
    if request.path in (reverse("settings-password"), reverse("logout"), reverse("login")):
        return None
    if request.path.startswith("/api/"):
        request.user = AnonymousUser()
        return None
    return HttpResponseRedirect(reverse("settings-password"))


def to_login(request: HttpRequest) -> HttpResponse:
    """The way to the sign-in page and back to where one was."""
    asked = {"next": request.get_full_path()}
    if getattr(request, ENDED, False):
        asked["ended"] = "1"
    return HttpResponseRedirect(f"{reverse('login')}?{urlencode(asked, safe='/')}")
