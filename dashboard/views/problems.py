"""The page that a problem document's `type` points to: what the code means and what to do."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import reference


@require_safe
def detail(request: HttpRequest, code: str) -> HttpResponse:
    """One error code."""
    entry = reference.errors().get(code)
    if entry is None:
        raise Http404
    return render(request, "dashboard/problem.html", {"entry": entry})
