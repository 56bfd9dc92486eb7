"""What is read: every address that answers GET, with ids of rows that exist, and lists filtered."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from bench.pages.installation import Installation
from dashboard.charts import CHARTS
from dashboard.counters import TILES
from dashboard.models import SavedView
from ledger import ids
from ledger.models import (
    ApiKey,
    Compaction,
    Evidence,
    HandOff,
    Import,
    Interrupt,
    Offer,
    Session,
    ToolCall,
)
from notifications.models import Channel
from recovery.models import Breaker, BulkRun, Incident, Resolution, Trial

FILTERED = (
    "/?zone=UTC",
    "/calls?state=succeeded", "/calls?state=failed,cancelled", "/calls?state=ambiguous",
    "/calls?tool=mail.send", "/calls?tool=none.such", "/calls?class=side_effect",
    "/calls?cause=validation", "/calls?agent=agent", "/calls?policy=1", "/calls?effect=possible",
    "/calls?no_settled_result=1", "/calls?overdue=1", "/calls?repeats=7", "/calls?q=toolu_1_1",
    "/calls?state=cancelled&tool=orders.lookup",
    "/audit?actor=operator", "/audit?target=call_", "/audit?from=2026-01-01&to=2026-12-31",
    "/budgets?all=1",
    "/go?q=toolu_1_1", "/go?q=nothing-like-it",
    "/api/v1/calls?state=succeeded", "/api/v1/calls?tool=none.such",
    "/api/v1/incidents?state=exhausted", "/api/v1/budgets?scope=tool&id=mail.send",
    "/api/v1/sessions/{session_id}/transcript?format=openai-chat",
    "/api/v1/sessions/{session_id}/transcript?format=anthropic",
    "/parts/calls/newer?since={call_id}", "/calls?session={session_id}",
    *(f"/parts/overview/{tile.name}" for tile in TILES),
)  # fmt: skip
"""Lists in other states than their own address shows; each state of a list is an address."""

NEWEST: dict[str, tuple[str, Any]] = {
    "evidence_id": ("evidence", Evidence),
    "resolution_id": ("resolution", Resolution),
    "delivery_id": ("delivery", Offer),
    "import_id": ("import", Import),
    "hand_off_id": ("hand_off", HandOff),
    "compaction_id": ("compaction", Compaction),
    "run_id": ("bulk_run", BulkRun),
    "breaker_id": ("breaker", Breaker),
    "trial_id": ("trial", Trial),
    "channel_id": ("channel", Channel),
}
"""The parameters of routes that stand for the newest row of a table: the noun and the table."""

LEFT_OUT = {
    "/api/v1/events": "a stream goes on until the reader hangs up",
    "/parts/bell": "a stream, too",
    "/api/v1/": "nothing is there",
    "/readyz": "no watchdog runs here, so it is never ready",
    "/logout": "it ends the login that reads",
}

_PARAMETER = re.compile(r"([\w-]+)/<(?:\w+:)?(\w+)>")


@dataclass(frozen=True, slots=True)
class Address:
    """One address to be read, by the name of its route."""

    route: str
    path: str


def every(installation: Installation) -> list[Address]:
    """All addresses of all routes, in the order of the table, each with rows that exist."""
    known = rows_of(installation)
    all_routes = dict.fromkeys(routes(get_resolver().url_patterns))
    found = [Address(route, f"/{path}") for route in all_routes for path in filled(route, known)]
    found = [each for each in found if each.path not in LEFT_OUT]
    one = {name: values[0] for name, values in known.items() if values}
    filtered = [path.format_map(one) for path in FILTERED]
    return found + [Address(path.partition("?")[0], path) for path in filtered]


def routes(patterns: Iterable[Any], before: str = "") -> Iterator[str]:
    """Every route of an address table, whole, with its parameters between angle brackets."""
    for each in patterns:
        route = f"{before}{each.pattern}"
        if isinstance(each, URLResolver):
            yield from routes(each.url_patterns, route)
        elif isinstance(each, URLPattern):
            yield route


def filled(route: str, known: Mapping[str, list[str]]) -> list[str]:
    """The route once for each row that stands for its parameters; none where none is known."""
    paths = [route]
    for noun, name in _PARAMETER.findall(route):
        values = known.get(f"{noun}/{name}") or known.get(name, [])
        paths = [_PARAMETER.sub(f"{noun}/{value}", path, count=1)
                 for path in paths for value in values]  # fmt: skip
    return paths


def rows_of(installation: Installation) -> dict[str, list[str]]:
    """The rows that pages are read of, by the name that routes have for them."""
    workspace = {"workspace": installation.agent.workspace_id}
    calls = ToolCall.objects.filter(**workspace)
    session = Session.objects.filter(**workspace, label__startswith="Ordinary").latest("id")
    one = calls.filter(session=session).earliest("id")
    ambiguous = calls.filter(state="ambiguous").latest("id")
    incident = Incident.objects.filter(call=ambiguous).latest("id")
    return {
        "call_id": [ids.shown("call", each.id) for each in (one, ambiguous)],
        "session_id": [ids.shown("session", session.id)],
        "turn_id": [ids.shown("turn", each) for each in [one.turn_id] if each],
        "incident_id": [ids.shown("incident", incident.id)],
        "interrupt_id": [each.id for each in Interrupt.objects.order_by("-asked_at")[:1]],
        "view_id": [str(each.id) for each in SavedView.objects.all()[:1]],
        **{name: [ids.shown(noun, each.id) for each in model.objects.order_by("-id")[:1]]
           for name, (noun, model) in NEWEST.items()},
        "number": ["1"],
        "tools/name": ["mail.send"],
        "policies/name": ["mail.send"],
        "overview/name": [*CHARTS],
        "person_id": [str(installation.person.id)],
        "key_id": [each.id for each in ApiKey.objects.all()[:1]],
        "problems/code": ["fence_lost"],
        "wanted": [ids.shown("call", one.id)],
    }  # fmt: skip
