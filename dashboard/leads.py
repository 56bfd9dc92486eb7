"""Where a figure leads: the page that lists exactly what was counted, as data."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import NoReverseMatch, reverse


def to(name: str, **query: Any) -> str:
    """The address of a page with these filters; empty where this console has no such page."""
    try:
        address = reverse(name)
    except NoReverseMatch:
        return ""
    return f"{address}?{urlencode(query)}" if query else address


def moment(at: datetime) -> str:
    """An instant as the filters `from` and `until` take it."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
