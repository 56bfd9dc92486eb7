"""The one NinjaAPI object: strict bodies in, problem documents out, every router by its noun."""

import logging
from functools import cached_property
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI, Swagger
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.parser import Parser
from ninja.renderers import JSONRenderer

from config import bodies, openapi, problems
from dashboard.api import approvals, audit, budget_audits, deadlines, drills, sweeps, workers
from ledger import foreign, strictjson
from ledger.api import (
    compactions,
    deliveries,
    events,
    handoffs,
    holds,
    masks,
    sessions,
    tools,
    transcript_bodies,
    transcripts,
    turns,
)
from ledger.errors import LedgerError
from ledger.keys import KeyRefused
from ledger.strictjson import NotStrict
from recovery.api import (
    bindings,
    breakers,
    budgets,
    bulk,
    calls,
    corrections,
    evidence,
    held_calls,
    imports,
    incidents,
    policies,
    resolutions,
    stops,
)

log = logging.getLogger(__name__)


class StrictParser(Parser):
    """Every JSON body passes the one strict reader (S12)."""

    def parse_body(self, request: HttpRequest) -> Any:
        strictjson.check_media_type(
            request.headers.get("Content-Type", ""), request.headers.get("Content-Encoding", "")
        )
        if request.path in bodies.TRANSCRIPTS_AT:
            return transcript_bodies.parsed(request.body)
        return strictjson.parse(request.body)


class Masking(JSONRenderer):
    """Every body that a person's login is given is masked (S9)."""

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> Any:
        shown = masks.given_to(getattr(request, "auth", None), data)
        return super().render(request, shown, response_status=response_status)


class Api(NinjaAPI):
    """The API, described completely, and once for each process."""

    def create_response(self, request: HttpRequest, data: Any, **more: Any) -> HttpResponse:
        """The answer; a page of a list names the next one in its head too (RFC 8288)."""
        response = super().create_response(request, data, **more)
        cursor = data.get("next_cursor") if isinstance(data, dict) else None
        if cursor:
            query = request.GET.copy()
            query["cursor"] = cursor
            response["Link"] = f'<{request.path}?{query.urlencode()}>; rel="next"'
        return response

    def get_openapi_schema(self, **options: Any) -> Any:
        return self._description

    @cached_property
    def _description(self) -> Any:
        return openapi.completed(super().get_openapi_schema())


api = Api(
    title="Clearhouse",
    version="1",
    description="The clearing house for the tool calls of AI agents.",
    urls_namespace="api",
    parser=StrictParser(),
    renderer=Masking(),
    docs=Swagger(settings={"persistAuthorization": False}),
)
api.add_router("/calls", calls.router)
api.add_router("/calls", holds.router)
api.add_router("/sessions", sessions.router)
api.add_router("/sessions", turns.router)
api.add_router("/sessions", stops.router)
api.add_router("/sessions", deliveries.of_sessions)
api.add_router("/deliveries", deliveries.router)
api.add_router("/transcripts", transcripts.router)
api.add_router("/sessions", compactions.router)
api.add_router("/sessions", handoffs.of_sessions)
api.add_router("/handoffs", handoffs.router)
api.add_router("/sessions", bindings.router)
api.add_router("/events", events.router)
api.add_router("/tools", tools.router)
api.add_router("/policies", policies.router)
api.add_router("/incidents", incidents.router)
api.add_router("/holds", held_calls.router)
api.add_router("/evidence", evidence.router)
api.add_router("/resolutions", resolutions.router)
api.add_router("/calls", corrections.router)
api.add_router("/bulk-resolutions", bulk.router)
api.add_router("/calls", budgets.of_calls)
api.add_router("/budgets", budget_audits.router)
api.add_router("/budgets", budgets.router)
api.add_router("/breakers", breakers.router)
api.add_router("/imports", imports.router)
api.add_router("/audit", audit.router)
api.add_router("/approvals", approvals.router)
api.add_router("/deadlines", deadlines.router)
api.add_router("/drills", drills.router)
api.add_router("/workers", workers.router)
api.add_router("/sweeps", sweeps.router)


@api.exception_handler(LedgerError)
def _refused(request: HttpRequest, error: LedgerError) -> HttpResponse:
    foreign.note(error, getattr(request, "auth", None))
    return problems.refusal(request, error)


@api.exception_handler(NotStrict)
def _not_strict(request: HttpRequest, error: NotStrict) -> HttpResponse:
    return problems.not_strict(request, error)


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = [
        {"pointer": _pointer(each["loc"]), "detail": str(each["msg"])[:300]}
        for each in error.errors[:20]
    ]
    detail = f"The request does not fit: {errors[0]['pointer'] or '/'}: {errors[0]['detail']}."
    return problems.response(request, 422, "validation", detail, errors=errors)


def _pointer(place: tuple[str | int, ...]) -> str:
    # A body is named by its parameter, ("body", "body", "label"); a query is not.
    within = place[2:] if place[0] == "body" else place[1:]
    return "".join(f"/{part}" for part in within)[:512]


@api.exception_handler(AuthenticationError)
def _unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return problems.refusal(request, KeyRefused())


@api.exception_handler(HttpError)
def _http(request: HttpRequest, error: HttpError) -> HttpResponse:
    # Whatever a parser raises comes wrapped; the refusal of its own says more.
    if isinstance(error.__cause__, NotStrict):
        return problems.not_strict(request, error.__cause__)
    if isinstance(error.__cause__, LedgerError):
        return problems.refusal(request, error.__cause__)
    code = {405: "method_not_allowed", 404: "not_found"}.get(error.status_code, "validation")
    return problems.response(request, error.status_code, code, str(error))


@api.exception_handler(Http404)
def _absent(request: HttpRequest, error: Http404) -> HttpResponse:
    return problems.not_found(request, error)


@api.exception_handler(OperationalError)
@api.exception_handler(InterfaceError)
def _away(request: HttpRequest, error: Exception) -> HttpResponse:
    log.warning("api.database_away error=%s", type(error).__name__)
    return problems.database_away(request)


@api.exception_handler(Exception)
def _broken(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("api.failed request=%s", getattr(request, "request_id", ""), exc_info=error)
    return problems.server_error(request)
