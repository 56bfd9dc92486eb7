"""The page of everything that is waited for."""

from typing import Any

from django.db import DatabaseError
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import curls, deadlines, live
from dashboard.people import Visit, page
from ledger import clock
from recovery import health
from recovery.health import late_before


@require_safe
@page
def index(request: Visit) -> HttpResponse:
    """A page of it, soonest first."""
    return render(request, "dashboard/deadlines/index.html", _shown(request))


@require_safe
@page
def part(request: Visit) -> HttpResponse:
    """The same without its frame."""
    shown = _shown(request)
    numbers = [repr(shown["waits"]), f"{shown['now']:%H:%M}"]
    return live.part(request, "dashboard/deadlines/_waits.html", shown, numbers)


def _shown(request: Visit) -> dict[str, Any]:
    now, cursor = clock.now(), request.GET.get("cursor", "")
    shown: dict[str, Any] = {
        "now": now,
        "late_before": late_before(now),
        "cursor": cursor,
        "curls": curls.UNFILTERED["deadlines"],
    }
    try:
        waits = deadlines.read(request.person.workspace_id, now, cursor)
        return shown | {"waits": waits, "swept_s": health.check().get("seconds_since_last_sweep")}
    except DatabaseError:
        return shown | {"waits": None}
