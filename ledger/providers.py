"""Who stands behind a tool: declared with it, else the host that its HTTP requests go to.

A breaker of a provider holds for all its tools, whatever they are called (R50).
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit


def provider_of(declared: str, config: Mapping[str, Any]) -> str:
    """The provider in lower case; empty where nothing says who it is."""
    if declared:
        return declared.lower()
    url = config.get("url")
    if not isinstance(url, str):
        return ""
    try:
        return (urlsplit(url).hostname or "").lower()[:255]
    except ValueError:
        return ""
