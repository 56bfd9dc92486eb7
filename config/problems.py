"""Every refusal over HTTP is a problem document (RFC 9457): code, sentence, next step, its id.

A browser that asks for a page is given the same as a page."""

import json
import sys
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from ledger.errors import LedgerError
from ledger.strictjson import NotStrict
from ledger.vocabulary import spoken

TITLES = {
    "authentication_required": "A valid key or login is needed",
    "fence_lost": "The attempt lost its fence",
    "key_reused": "The idempotency key names another intent",
    "media_type": "The body is not JSON in UTF-8",
    "method_not_allowed": "This address does not take that method",
    "not_found": "Not found",
    "payload_too_large": "The body is too large",
    "permission_missing": "Not permitted",
    "rate_limited": "Try again later",
    "internal": "Clearhouse itself failed",
    "validation": "The request does not have the shape it must have",
}


def title_of(code: str) -> str:
    """The short title of a problem code."""
    return TITLES.get(code, spoken(code).capitalize())


def document(
    *, status: int, code: str, detail: str, instance: str, request_id: str, **extra: Any
) -> dict[str, Any]:
    """The members of RFC 9457 and ours: `code`, `request_id` and what the refusal adds."""
    return {
        "type": f"/problems/{code}",
        "title": title_of(code),
        "status": status,
        "detail": detail,
        "instance": instance,
        "code": code,
        "request_id": request_id,
    } | extra


def response(
    request: HttpRequest,
    status: int,
    code: str,
    detail: str,
    *,
    headers: dict[str, str] | None = None,
    **extra: Any,
) -> HttpResponse:
    """A problem document as an answer to this request, or a page where a browser asked for one."""
    body = document(
        status=status,
        code=code,
        detail=detail,
        instance=request.path,
        request_id=getattr(request, "request_id", ""),
        **extra,
    )
    kept = {"Cache-Control": "no-store"} | (headers or {})
    if _wants_page(request):
        return HttpResponse(_page(body), status=status, headers=kept)
    return HttpResponse(
        json.dumps(body, default=str),
        status=status,
        content_type="application/problem+json",
        headers=kept,
    )


TO_PEOPLE = {
    "database_away": "The ledger's database does not answer at present. Wait a moment and load the "
    "page again. If you sent a form, go back: what you typed is still there, and sent again it "
    "is recorded once.",
    "internal": "Clearhouse failed while it worked on this. What was recorded before stands. If "
    "you sent a form, go back and send it again: it is recorded once. If it stays, give an admin "
    "the id below.",
    "not_found": "There is no page at this address. It may have been cut when it was copied.",
}
"""What is said otherwise to a person than to a program."""


def _wants_page(request: HttpRequest) -> bool:
    """Whether a browser asked for a page of the console: not the API, not a part of a page."""
    is_part = "HX-Request" in request.headers
    named = "text/html" in request.headers.get("Accept", "")
    return named and not is_part and not request.path.startswith("/api/")


def _page(body: dict[str, Any]) -> str:
    """The problem as a page; without a request, for nothing may be asked of the database."""
    shown = body | {"detail": TO_PEOPLE.get(body["code"], body["detail"])}
    return render_to_string("dashboard/failed.html", shown)


def of_refusal(error: LedgerError) -> tuple[int, str, str, dict[str, str], dict[str, Any]]:
    """Status, code, sentence, headers and further members of a refusal by the ledger."""
    headers = {}
    if "retry_after_s" in error.facts:
        headers["Retry-After"] = str(error.facts["retry_after_s"])
    if error.http == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="clearhouse"'
    more = ("errors", "current")
    extra: dict[str, Any] = {name: error.facts[name] for name in more if name in error.facts}
    return error.http, error.code, str(error), headers, extra


def refusal(request: HttpRequest, error: LedgerError) -> HttpResponse:
    """The ledger's refusal as a problem document."""
    status, code, detail, headers, extra = of_refusal(error)
    return response(request, status, code, detail, headers=headers, **extra)


Refusal = tuple[int, str, str, dict[str, str], dict[str, Any]]
"""Status, code, sentence, headers and further members of a refusal."""


def of_not_strict(error: NotStrict) -> Refusal:
    """The strict reader's refusal, with a pointer to what it refused."""
    errors = [{"pointer": error.pointer, "detail": str(error.code)}]
    return error.http, error.problem, f"{error} Nothing was recorded.", {}, {"errors": errors}


def not_strict(request: HttpRequest, error: NotStrict) -> HttpResponse:
    """The strict reader's refusal as a problem document."""
    status, code, detail, headers, extra = of_not_strict(error)
    return response(request, status, code, detail, headers=headers, **extra)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """What a form without its token is answered."""
    return response(
        request, 403, "permission_missing",
        "The form came without its token, so nothing was done: perhaps you signed in again in "
        "another tab. Load the page again and repeat.",
    )  # fmt: skip


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What an address that does not exist is answered."""
    return response(
        request, 404, "not_found",
        "There is nothing at this address. The API's addresses are listed at /api/v1/docs.",
    )  # fmt: skip


def method_not_allowed(request: HttpRequest, allow: str) -> HttpResponse:
    """What a method is answered that the address does not take."""
    methods = ", ".join(sorted(each.strip() for each in allow.split(",")))
    return response(
        request, 405, "method_not_allowed",
        f"This address takes {methods}, not {request.method}. Nothing was done.",
        headers={"Allow": methods},
    )  # fmt: skip


AWAY = (
    "The ledger's database does not answer at present, so nothing is known to be recorded. "
    "Repeat the request with the same Idempotency-Key: if it was recorded, the same call is given."
)
AWAY_RETRY_S = 2


def database_away(request: HttpRequest) -> HttpResponse:
    """What a request is answered while PostgreSQL restarts or is out of reach."""
    headers = {"Retry-After": str(AWAY_RETRY_S)}
    return response(request, 503, "database_away", AWAY, headers=headers)


INTERNAL = (
    "Clearhouse failed while it worked on this request. What was committed before stands; "
    "repeat the request with the same Idempotency-Key, or read the call again."
)


def server_error(request: HttpRequest) -> HttpResponse:
    """What a fault of our own is answered; the log holds the rest under the request id."""
    # Pages come here with any exception: a database that is away is no fault of ours.
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return database_away(request)
    return response(request, 500, "internal", INTERNAL)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What a request that Django itself refuses is answered."""
    return response(
        request, 400, "validation",
        "The request could not be read: its host, address or form is malformed.",
    )  # fmt: skip


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What a person without the right is answered."""
    return response(request, 403, "permission_missing", "This login may not do that.")
