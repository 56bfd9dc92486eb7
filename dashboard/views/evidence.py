"""The page of one piece of evidence, and its body as a file."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import evidence
from dashboard.people import Visit, page
from dashboard.views import downloads
from ledger import ids, masks


@require_safe
@page
def detail(request: Visit, evidence_id: str) -> HttpResponse:
    """Where it came from, what it says, and its body."""
    piece = evidence.page_of(evidence.get(request.person, evidence_id))
    return render(request, "dashboard/incidents/evidence.html", {"piece": piece})


@require_safe
@page
def body(request: Visit, evidence_id: str) -> HttpResponse:
    """The body as a file: text is masked, bytes that are no text are as they came."""
    row = evidence.get(request.person, evidence_id)
    hidden, shown = masks.of(row.call), ids.shown("evidence", row.id)
    if downloads.is_raw(request):
        payload = evidence.body_of(row, hidden, raw=True)
        return downloads.raw(request, payload, reverse("inbox-evidence", args=[shown]))
    return downloads.given(evidence.whole_of(row, hidden), f"{shown}.txt")
