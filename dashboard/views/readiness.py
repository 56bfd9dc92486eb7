"""The page that says whether this installation keeps its promises."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import readiness
from dashboard.people import Visit, page
from ledger import clock


@require_safe
@page
def index(request: Visit) -> HttpResponse:
    """Every promise, asked now; `?invariants` asks the ledger's too, which may take seconds."""
    now = clock.now()
    asked = readiness.read(request.person.workspace_id, now, invariants="invariants" in request.GET)
    shown = {"now": now, "readiness": asked}
    return render(request, "dashboard/readiness/index.html", shown)
