"""Middleware of our own: the request id that a problem document and the logs share."""

import re
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

from ledger import ids

_ACCEPTABLE = re.compile(r"[A-Za-z0-9_.:-]{1,128}\Z")


def request_id_from(sent: str | None) -> str:
    """The caller's id where it is one, else a fresh one."""
    return sent if sent and _ACCEPTABLE.match(sent) else ids.new().hex


@sync_and_async_middleware
def request_id(
    get_response: Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]],
) -> Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]:
    """Take `X-Request-Id` or make one, and return it with the answer."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponse:
            request.request_id = request_id_from(request.headers.get("X-Request-Id"))  # type: ignore[attr-defined]
            response: HttpResponse = await get_response(request)  # type: ignore[misc]
            response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponse:
        request.request_id = request_id_from(request.headers.get("X-Request-Id"))  # type: ignore[attr-defined]
        response: HttpResponse = get_response(request)  # type: ignore[assignment]
        response["X-Request-Id"] = request.request_id  # type: ignore[attr-defined]
        return response

    return synchronous
