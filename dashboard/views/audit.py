"""The audit: a page of it, and all that its filters keep as a file; the file is audited itself."""

from typing import Any

from django.db import DatabaseError
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from dashboard import audit, csvs, curls, exports
from dashboard.audit import Filters
from dashboard.people import Visit, page
from ledger import clock
from ledger.errors import LedgerError

COLUMNS = ("at", "actor", "deed", "target", "grounds")


@require_safe
@page
def index(request: Visit) -> HttpResponse:
    """What people did, newest first."""
    shown: dict[str, Any] = {"now": clock.now(), "typed": request.GET, "kept": Filters()}
    try:
        kept = audit.filters_of(request.GET)
        found = audit.read(request.person.workspace_id, kept, request.GET.get("cursor", ""))
    except LedgerError as refusal:
        shown["refusal"] = refusal
        return render(request, "dashboard/audit/index.html", shown, status=refusal.http)
    except DatabaseError:
        return render(request, "dashboard/audit/index.html", shown, status=503)
    return render(
        request,
        "dashboard/audit/index.html",
        shown | {"kept": kept, "audit": found, "curls": curls.of_audit(kept)},
    )


@page
@require_POST
def export(request: Visit) -> HttpResponse:
    """All that the filters keep, at most ten thousand lines, as a CSV file in UTC."""
    kept = audit.filters_of(request.POST)
    person = request.person
    found = audit.read(person.workspace_id, kept, limit=audit.EXPORTED_MAX)
    words = ", ".join(f"{name} {value}" for name, value in kept.words().items()) or "no filter"
    exports.noted(person, "the audit", target="audit", grounds=f"{len(found.lines)} lines, {words}")
    lines = [[f"{each.at:%Y-%m-%dT%H:%M:%S.%fZ}", each.actor, each.said, each.target, each.grounds]
             for each in found.lines]  # fmt: skip
    return csvs.file(f"audit-{clock.now():%Y%m%dT%H%M%SZ}.csv", COLUMNS, lines)
