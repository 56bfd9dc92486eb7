"""The start page: how many calls stand where, and the latest; `?show=` keeps one view of them."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import access, overview
from dashboard.people import page
from ledger import clock

COLUMNS = (
    "Call", "Tool", "Agent", "Class", "State", "Effect", "Attempts", "Age", "Due"
)  # fmt: skip


@require_safe
@page
def index(request: HttpRequest) -> HttpResponse:
    """The figures and the latest calls of the person's workspaces."""
    calls, now = access.calls_of(request.user), clock.now()
    shown: dict[str, Any] = {
        "now": now,
        "late_before": overview.late_before(now),
        "columns": COLUMNS,
        "overview": overview.of(calls, now),
        "listed": overview.latest(calls, request.GET.get("show", ""), now),
        "any_call": calls.exists(),
        "api": request.build_absolute_uri("/api/v1/calls"),
    }
    return render(request, "dashboard/home.html", shown)
