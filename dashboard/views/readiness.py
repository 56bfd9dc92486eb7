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
    """Every promise, asked now; it takes as long as its bounds allow and changes nothing."""
    now = clock.now()
    shown = {"now": now, "readiness": readiness.read(request.person.workspace_id, now)}
    return render(request, "dashboard/readiness/index.html", shown)
