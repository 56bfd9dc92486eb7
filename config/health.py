"""Health: `/healthz` says only that the web answers, `/readyz` what is missing."""

from django.http import HttpRequest, JsonResponse

from recovery import health


def healthz(request: HttpRequest) -> JsonResponse:
    """The web answers."""
    return JsonResponse({"ok": True})


def readyz(request: HttpRequest) -> JsonResponse:
    """Calls can be recorded, executed and recovered; 503 with what is missing otherwise."""
    found = health.check()
    return JsonResponse(found, status=200 if found["ready"] else 503)
