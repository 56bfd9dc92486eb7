"""Lists: cursor pages, opaque, bound to the filters, newest first by id; and words as filters."""

import base64
import binascii
import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from ledger.errors import Invalid

LIMIT_MAX = 200
WINDOW = 10_000
"""Among how many rows a page looks for what no index finds; the next page goes on from there."""


def page(
    rows: "QuerySet[Any]",
    *,
    filters: Mapping[str, Any],
    limit: int,
    cursor: str,
    among: "QuerySet[Any] | None" = None,
) -> tuple[list[Any], str | None]:
    """One page of rows and the cursor of the next. Raises Invalid for a foreign cursor.

    `among` are the rows before the filters, where no index serves these: no page looks at more
    than WINDOW of them, so that it may hold fewer than `limit` rows, or none, and have a next.
    """
    if not 1 <= limit <= LIMIT_MAX:
        raise Invalid(detail=f"limit is between 1 and {LIMIT_MAX}.")
    bound = _bound(filters)
    after = {"id__lt": _read(cursor, bound)} if cursor else {}
    edge = edge_of(among.filter(**after).order_by("-id")) if among is not None else None
    if edge:
        after["id__gte"] = edge
    found = list(rows.filter(**after).order_by("-id")[: limit + 1])
    last = found[limit - 1].id if len(found) > limit else edge
    return found[:limit], _write(last, bound) if last else None


def edge_of(ordered: "QuerySet[Any]") -> UUID | None:
    """The last row that a page looks at; None where it can look at all of them."""
    found = list(ordered.values_list("id", flat=True)[WINDOW - 1 : WINDOW + 1])
    return found[0] if len(found) == 2 else None


def _bound(filters: Mapping[str, Any]) -> str:
    text = json.dumps(filters, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write(id_: UUID, bound: str) -> str:
    return base64.urlsafe_b64encode(id_.bytes + bytes.fromhex(bound)).decode()


def cursor_of(id_: UUID, filters: Mapping[str, Any]) -> str:
    """The cursor after a row, good for these filters alone."""
    return _write(id_, _bound(filters))


def place_of(cursor: str, filters: Mapping[str, Any]) -> UUID:
    """The row after which a cursor goes on. Raises Invalid for one of other filters."""
    return _read(cursor, _bound(filters))


def _read(cursor: str, bound: str) -> UUID:
    try:
        raw = base64.urlsafe_b64decode(cursor)
    except (ValueError, binascii.Error):
        raw = b""
    if len(raw) != 24 or raw[16:].hex() != bound:
        raise Invalid(
            detail="This cursor belongs to another list or other filters. Start without one."
        )
    return UUID(bytes=raw[:16])


def words_of(name: str, words: Collection[str], text: str) -> list[str]:
    """The values of a filter, which come with commas between them. Raises Invalid."""
    given = text.split(",")
    unknown = set(given) - set(words)
    if unknown:
        raise Invalid(
            detail=f"{name} has no value {sorted(unknown)[0][:40]!r}; it is one of "
            f"{', '.join(words)}."
        )
    return given
