"""Where a figure leads: the page that lists exactly what was counted, as data."""

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
