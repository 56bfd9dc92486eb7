"""Payloads as files, and as a page of their own where they are looked at raw."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.payloads import Payload


def given(body: bytes, name: str) -> HttpResponse:
    """A download that no browser opens or sniffs."""
    answer = HttpResponse(body, content_type="application/octet-stream")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


def is_raw(request: HttpRequest) -> bool:
    """Whether the address asks for the page instead of the file."""
    return request.GET.get("view") == "raw"


def raw(request: HttpRequest, payload: Payload, back: str) -> HttpResponse:
    """The payload as text, bounded as on every page; `back` shows it as a tree."""
    return render(request, "dashboard/parts/raw.html", {"payload": payload, "back": back})
