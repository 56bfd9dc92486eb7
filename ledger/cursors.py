"""Cursors: where a page of a list ended, opaque to who asks, and good for its filters alone."""

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

from ledger.errors import Invalid

BOUND_BYTES = 8
FOREIGN = "This cursor belongs to another list or other filters. Start without one."


def written(place: tuple[object, ...], filters: Mapping[str, Any]) -> str:
    """The cursor of what comes after `place`; no part of it may have a line break."""
    raw = _bound(filters) + "\n".join(map(str, place)).encode()
    return urlsafe_b64encode(raw).decode().rstrip("=")


def read(cursor: str, filters: Mapping[str, Any], *kinds: Callable[[str], Any]) -> list[Any]:
    """The place after which to go on, each part made by its kind, which raises ValueError.

    Raises Invalid for a cursor of another list or other filters, or none of ours.
    """
    try:
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        parts = raw[BOUND_BYTES:].decode().split("\n")
        if raw[:BOUND_BYTES] == _bound(filters):
            return [kind(part) for kind, part in zip(kinds, parts, strict=True)]
    except ValueError:
        pass
    raise Invalid(detail=FOREIGN)


def word(part: str) -> str:
    """A part that is text. Raises ValueError for a character that PostgreSQL has none of."""
    if "\0" in part:
        raise ValueError("A text without zero characters was expected.")
    return part


def _bound(filters: Mapping[str, Any]) -> bytes:
    text = json.dumps(filters, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).digest()[:BOUND_BYTES]
