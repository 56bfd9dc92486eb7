"""The page of workers and sweeps, and its live part."""

from typing import Any

from django.db import DatabaseError
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import curls, live, workers
from dashboard.people import Visit, page
from ledger import clock


@require_safe
@page
def index(request: Visit) -> HttpResponse:
    """Every worker of the last day, and when the sweeps ran."""
    return render(request, "dashboard/workers/index.html", _shown())


@require_safe
@page
def part(request: Visit) -> HttpResponse:
    """The same without its frame."""
    shown = _shown()
    return live.part(request, "dashboard/workers/_workers.html", shown, [repr(shown["workers"])])


def _shown() -> dict[str, Any]:
    now = clock.now()
    shown: dict[str, Any] = {"now": now, "curls": curls.UNFILTERED["workers"]}
    try:
        return shown | {"workers": workers.read(now)}
    except DatabaseError:
        return shown | {"workers": None}
