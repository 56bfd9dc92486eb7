"""The pages of requests for a second person: the list, and one with its preview and its answer."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard import addresses, approvals, calls, curls, deeds, live
from dashboard.people import Visit, page
from ledger import clock, ids, masks
from ledger.conditions import Seen
from ledger.errors import Invalid, LedgerError
from ledger.models import Evidence
from ledger.numbers import whole
from recovery import requests, resolutions
from recovery.api import decision_shapes
from recovery.models import Resolution

GROUNDS_MAX = 2_000


@require_safe
@page
def index(request: Visit) -> HttpResponse:
    """Requests of others, my own, and the last that ended."""
    return render(request, "dashboard/approvals/index.html", _listed(request))


@require_safe
@page
def part(request: Visit) -> HttpResponse:
    """The list without its frame."""
    shown = _listed(request)
    numbers = [repr(shown["approvals"])]
    return live.part(request, "dashboard/approvals/_list.html", shown, numbers)


def _listed(request: Visit) -> dict[str, Any]:
    return {
        "now": clock.now(),
        "approvals": approvals.read(request.person),
        "curls": curls.UNFILTERED["approvals"],
    }


@require_http_methods(["GET", "HEAD", "POST"])
@page
def detail(request: Visit, resolution_id: str) -> HttpResponse:
    """What a yes would do, in four boxes; a POST says yes or no. What was typed stays."""
    id_ = ids.read("resolution", resolution_id)
    if request.method != "POST":
        return render(request, "dashboard/approvals/detail.html", _shown(request, id_))
    try:
        return answered(request, id_, reverse("approvals"))
    except LedgerError as refusal:
        shown = _shown(request, id_) | {"refusal": refusal, "typed": request.POST}
        return render(request, "dashboard/approvals/detail.html", shown, status=refusal.http)


def answered(request: Visit, id_: UUID, back: str) -> HttpResponse:
    """Record a second person's yes, which starts the delay, or no, and lead back. May refuse."""
    deeds.pressed(request, lambda: _answer(request, id_))
    yes = request.POST.get("answer") == "yes"
    told = "You approved it." if yes else "You declined it: nothing is carried out."
    return deeds.told(request, told, back)


def _answer(request: Visit, id_: UUID) -> dict[str, Any]:
    answer, grounds = request.POST.get("answer"), request.POST.get("grounds", "").strip()
    seen = Seen(version=whole(request.POST.get("version")))
    if answer not in ("yes", "no"):
        raise Invalid(detail="Say yes or no: nothing was recorded.")
    if not grounds or len(grounds) > GROUNDS_MAX:
        raise Invalid(
            detail="Say in one sentence why, also for a yes: grounds have 1 to "
            f"{GROUNDS_MAX} characters. Nothing was recorded."
        )
    row = resolutions.approve(
        resolution_id=id_, yes=answer == "yes", grounds=grounds, seen=seen, by=request.person
    )
    return decision_shapes.resolution(row)


def _shown(request: Visit, id_: UUID) -> dict[str, Any]:
    found = requests.look(resolution_id=id_, by=request.person)
    row = found.resolution
    incident, hidden = row.incident, masks.of(row.call)
    return {
        "now": clock.now(),
        "asked": found,
        "row": row,
        "shown": ids.shown("resolution", row.id),
        "sentence": approvals.sentence(row),
        "boxes": approvals.boxes(found),
        "until": incident.pending_until if incident and incident.pending_id == row.id else None,
        "incident": addresses.of("incident", row.incident_id),
        "call_at": addresses.of("call", row.call_id),
        "session_at": addresses.of("session", row.call.session_id),
        "arguments": calls.arguments_of(row.call, hidden),
        "hidden": hidden,
        "findings": approvals.FINDINGS,
        "backing": _backing(row),
        "events": row.events.order_by("at"),
    }


def _backing(row: Resolution) -> "QuerySet[Evidence]":
    rows = Evidence.objects.filter(id__in=row.backing.values("evidence_id"))
    return rows.order_by("at").defer("body")
