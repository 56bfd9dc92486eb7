"""Payloads as files."""

from django.http import HttpResponse


def given(body: bytes, name: str) -> HttpResponse:
    """A download that no browser opens or sniffs."""
    answer = HttpResponse(body, content_type="application/octet-stream")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer
