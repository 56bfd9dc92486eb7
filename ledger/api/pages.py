"""Lists: cursor pages, opaque, bound to filters and order, newest first by id unless asked."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from ninja import Schema

from ledger import cursors
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
    bound = {**filters, "sort": sort}
    place = place_of(cursor, bound)
    kept, edge = looked_at(rows, among, sort=sort, place=place)
    found = list(kept.order_by(ORDERS[sort].by)[: limit + 1])
    last = found[limit - 1].id if len(found) > limit else edge
    return found[:limit], cursor_of(last, bound) or None


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


def cursor_of(last: UUID | None, filters: Mapping[str, Any]) -> str:
    """The cursor after the last row of a page, good for these filters alone; empty without one."""
    return cursors.written((last.hex,), filters) if last else ""


def place_of(cursor: str, filters: Mapping[str, Any]) -> UUID | None:
    """The row after which a cursor goes on. Raises Invalid for one of other filters."""
    return cursors.read(cursor, filters, UUID)[0] if cursor else None
