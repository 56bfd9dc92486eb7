"""Lists: cursor pages, opaque, bound to filters and order, newest first by id unless asked."""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from ninja import Schema

from ledger.errors import Invalid

LIMIT_MAX = 200
WINDOW = 10_000
"""Among how many rows a page looks for what no index finds; the next page goes on from there."""

NEWEST, OLDEST = "newest", "oldest"


class Order(NamedTuple):
    """How rows are sorted, which come after a cursor, and up to where a page looks."""

    by: str
    beyond: str
    up_to: str


ORDERS = {NEWEST: Order("-id", "id__lt", "id__gte"), OLDEST: Order("id", "id__gt", "id__lte")}


def given_in(asked: Schema) -> dict[str, str]:
    """The filters of an address that were given, by their names there; an empty one is none."""
    found = asked.model_dump(by_alias=True, exclude_defaults=True)
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in found.items()
    }


def check_limit(limit: int) -> None:
    """Raise Invalid for a limit that no page has."""
    if not 1 <= limit <= LIMIT_MAX:
        raise Invalid(detail=f"limit is between 1 and {LIMIT_MAX}.")


def page(
    rows: "QuerySet[Any]",
    *,
    filters: Mapping[str, Any],
    limit: int,
    cursor: str,
    among: "QuerySet[Any] | None" = None,
    sort: str = NEWEST,
) -> tuple[list[Any], str | None]:
    """One page of rows and the cursor of the next. Raises Invalid for a foreign cursor.

    `among` are the rows before the filters, where no index serves these: no page looks at more
    than WINDOW of them, so that it may hold fewer than `limit` rows, or none, and have a next.
    """
    check_limit(limit)
    if sort not in ORDERS:
        raise Invalid(detail=f"sort is {' or '.join(ORDERS)}.")
    bound = _bound({**filters, "sort": sort} if sort != NEWEST else filters)
    place = _read(cursor, bound) if cursor else None
    kept, edge = looked_at(rows, among, sort=sort, place=place)
    found = list(kept.order_by(ORDERS[sort].by)[: limit + 1])
    last = found[limit - 1].id if len(found) > limit else edge
    return found[:limit], _write(last, bound) if last else None


def looked_at(
    rows: "QuerySet[Any]", among: "QuerySet[Any] | None", *, sort: str, place: UUID | None
) -> tuple["QuerySet[Any]", UUID | None]:
    """The rows that a page after `place` looks at, and the last of them if more come after it."""
    order = ORDERS[sort]
    beyond = {order.beyond: place} if place else {}
    edge = _edge_of(among.filter(**beyond).order_by(order.by)) if among is not None else None
    return rows.filter(**beyond, **({order.up_to: edge} if edge else {})), edge


def _edge_of(ordered: "QuerySet[Any]") -> UUID | None:
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
