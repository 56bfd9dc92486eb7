"""Middleware of our own: the request id that a problem document and the logs share.

What is the same for every answer of Django's is set here too: nothing is kept by a cache
unless the view says so (S37), and a wrong method is answered with a problem document.
"""

import re
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

from config import headers, problems
from ledger import ids

BY_ANY_NAME = frozenset({"/healthz", "/readyz"})
"""Whoever watches asks a program by its address; these say nothing that depends on the host."""

_ACCEPTABLE = re.compile(r"[A-Za-z0-9_.:-]{1,128}\Z")


def request_id_from(sent: str | None) -> str:
    """The caller's id where it is one, else a fresh one."""
    return sent if sent and _ACCEPTABLE.match(sent) else ids.new().hex


def _begun(request: HttpRequest) -> HttpResponse | None:
    """Give the request its id; an answer where it is for a host that is not ours (S15)."""
    request.request_id = request_id_from(request.headers.get("X-Request-Id"))  # type: ignore[attr-defined]
    try:
        if request.path not in BY_ANY_NAME:
            request.get_host()
    except DisallowedHost as refusal:
        return problems.bad_request(request, refusal)
    return None


def _completed(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if response.status_code == 405:
        response = problems.method_not_allowed(request, response.get("Allow", ""))
    for name, value in headers.BESIDE_DJANGOS.items():
        response[name] = value
    response.setdefault("Cache-Control", "no-store")
    response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]
    return response


@sync_and_async_middleware
def request_id(
    get_response: Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]],
) -> Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]:
    """Take `X-Request-Id` or make one, and return it with the answer."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponse:
            return _completed(request, _begun(request) or await get_response(request))

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponse:
        return _completed(request, _begun(request) or get_response(request))  # type: ignore[arg-type]

    return synchronous
