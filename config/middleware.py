"""Middleware of our own: the request id that a problem document and the logs share.

What is the same for every answer of Django's is set here too: nothing is kept by a cache
unless the view says so (S37), and a wrong method is answered with a problem document.
"""

import re
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

from config import problems
from ledger import ids

_ACCEPTABLE = re.compile(r"[A-Za-z0-9_.:-]{1,128}\Z")


def request_id_from(sent: str | None) -> str:
    """The caller's id where it is one, else a fresh one."""
    return sent if sent and _ACCEPTABLE.match(sent) else ids.new().hex


def _completed(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if response.status_code == 405:
        response = problems.method_not_allowed(request, response.get("Allow", ""))
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
            request.request_id = request_id_from(request.headers.get("X-Request-Id"))  # type: ignore[attr-defined]
            return _completed(request, await get_response(request))

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponse:
        request.request_id = request_id_from(request.headers.get("X-Request-Id"))  # type: ignore[attr-defined]
        return _completed(request, get_response(request))  # type: ignore[arg-type]

    return synchronous
