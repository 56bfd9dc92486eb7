"""One masked field of a call: asked for with grounds, shown once, gone after a minute."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard import calls, deeds, reveals
from dashboard.people import Visit, page
from ledger import clock, ids
from ledger.errors import LedgerError, LoginStale
from ledger.models import ToolCall


@page
@require_http_methods(["GET", "HEAD", "POST"])
def reveal(request: Visit, call_id: str) -> HttpResponse:
    """The fields that are masked; after a press, one of them as it is."""
    call = calls.get(request.person, call_id)
    if request.method != "POST":
        return _shown(request, call, {})
    try:
        return _revealed(request, call)
    except LedgerError as refusal:
        more = {"refusal": refusal, "is_stale": isinstance(refusal, LoginStale)}
        return _shown(request, call, more, status=refusal.http)


def _revealed(request: Visit, call: ToolCall) -> HttpResponse:
    pointer = request.POST.get("field", "")

    def deed() -> dict[str, Any]:
        made = reveals.record(call, pointer, request.POST.get("grounds", ""), request.person)
        return {"deed": made.id.hex}

    made = deeds.pressed(request, deed)
    left_s = reveals.left_s(UUID(made["deed"]))
    more = {"secret": reveals.secret_at(call, pointer), "left_s": left_s,
            "until": clock.now() + reveals.SHOWN_FOR}  # fmt: skip
    answer = _shown(request, call, more)
    # Leaves the page by itself, with or without scripts.
    answer["Refresh"] = f"{left_s}; url={reverse('calls-detail', args=[_id(call)])}"
    return answer


def _shown(
    request: Visit, call: ToolCall, more: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    shown = {
        "call": call,
        "shown": _id(call),
        "secrets": reveals.secrets_of(call),
        "field": request.POST.get("field", request.GET.get("field", "")),
        "grounds": "" if "secret" in more else request.POST.get("grounds", ""),
    }
    return render(request, "dashboard/calls/reveal.html", shown | more, status=status)


def _id(call: ToolCall) -> str:
    return ids.shown("call", call.id)
