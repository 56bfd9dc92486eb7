"""The pages of drills: start one, watch it, read what it found. Admins start; members read."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import curls, deeds, drills, live
from dashboard.models import Deed
from dashboard.people import Visit, need, page
from ledger import clock
from ledger.errors import LedgerError
from ledger.permissions import Right


@require_http_methods(["GET", "HEAD", "POST"])
@page
def index(request: Visit) -> HttpResponse:
    """The drill under way and those before; a POST starts one and leaves at once."""
    if request.method != "POST":
        return render(request, "dashboard/drills/index.html", _shown())
    kind = request.POST.get("kind", "")
    try:
        need(request.person, Right.DECIDE)
        deeds.pressed(request, lambda: _started(request, kind))
    except LedgerError as refusal:
        shown = _shown() | {"refusal": refusal, "kind": kind}
        return render(request, "dashboard/drills/index.html", shown, status=refusal.http)
    return deeds.told(request, "The drill has begun, on servers of its own.", reverse("drills"))


def _started(request: Visit, kind: str) -> dict[str, Any]:
    run = drills.start(kind, by=request.person.name)
    _note(request, f"started a drill: {run.kind}")
    return {"pid": run.pid}


@page
@require_POST
def stop(request: Visit) -> HttpResponse:
    """Ask the drill under way to end."""
    need(request.person, Right.DECIDE)
    run = drills.stop()
    _note(request, f"stopped a drill: {run.kind}")
    told = "The drill was asked to end; its servers go with it."
    return deeds.told(request, told, reverse("drills"))


@require_safe
@page
def part(request: Visit) -> HttpResponse:
    """The drill under way; without its trigger once it has ended."""
    shown = _shown()
    run = shown["run"]
    numbers = [run, run and run.is_alive, run and len(run.said), len(shown["history"])]
    return live.part(request, "dashboard/drills/_run.html", shown, numbers)


@require_safe
@page
def report(request: Visit, name: str) -> HttpResponse:
    """What one drill found, row by row."""
    found, whole = drills.report(name)
    shown = {"now": clock.now(), "drill": found, "report": whole}
    return render(request, "dashboard/drills/report.html", shown)


def _shown() -> dict[str, Any]:
    return {
        "now": clock.now(),
        "run": drills.latest(),
        "history": drills.history(),
        "kinds": drills.KINDS,
        "curls": curls.UNFILTERED["drills"],
    }


def _note(request: Visit, deed: str) -> None:
    person = request.person
    Deed.objects.create(
        workspace_id=person.workspace_id, person_id=person.id, person_name=person.name,
        deed=deed, target="drill",
    )  # fmt: skip
