"""What every page shows around its content: where one is, who one is, what waits."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from dashboard import counters, zones
from dashboard.logins import profile_of
from ledger import clock
from ledger.models import Workspace

RAIL = (
    ("home", "Overview"),
    ("inbox", "Inbox"),
    ("calls", "Calls"),
    ("sessions", "Sessions"),
    ("tools", "Tools"),
    ("budgets", "Budgets"),
    ("bulk_runs", "Bulk runs"),
    ("approvals", "Approvals"),
    ("workers", "Workers"),
    ("audit", "Audit"),
    ("drills", "Drills"),
    ("settings", "Settings"),
)
"""The pages of the left rail: the name of each address, and its word."""
WAITING_MAX = 100
"""The rail counts what waits up to here."""


def console(request: HttpRequest) -> dict[str, Any]:
    """The frame of a page; nothing but the installation's name for who is not signed in."""
    person = getattr(request, "person", None)
    if person is None or not request.user.is_authenticated:
        return {}
    workspaces = Workspace.objects.filter(memberships__person=request.user).distinct()
    match = request.resolver_match
    now = clock.now()
    return {
        "person": person,
        "profile": profile_of(request.user),
        "workspaces": list(workspaces.order_by("name")),
        "rail": [_item(*item, here=match.url_name if match else "") for item in RAIL],
        "waiting": min(WAITING_MAX, counters.waiting(person.workspace_id)),
        "now": now,
        "zone": zones.shown(now),
    }


def _item(name: str, word: str, *, here: str | None) -> dict[str, Any]:
    section = (here or "").partition("-")[0]
    return {"name": name, "word": word, "address": reverse(name), "here": section == name}
