"""The start page: how many calls stand where, and the latest."""

from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import access
from ledger.models import ToolCall
from ledger.vocabulary import CallState

LATEST = 25


@require_safe
@login_required
def index(request: HttpRequest) -> HttpResponse:
    """Counts by state, each a list in the API, and the latest calls of the person's workspace."""
    calls = ToolCall.objects.filter(workspace__in=access.workspaces_of(request.user))
    counted = dict(calls.values_list("state").annotate(Count("id")))
    states = [(state, counted.get(state, 0)) for state in CallState]
    return render(
        request,
        "dashboard/home.html",
        {
            "states": states,
            "waiting": counted.get("ambiguous", 0) + counted.get("paused", 0),
            "calls": calls.order_by("-id")[:LATEST],
            "total": sum(counted.values()),
        },
    )
