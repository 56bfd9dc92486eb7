"""The list of calls, beside the ledger's operations on each: its filters ask recovery too."""

from typing import Any

from django.http import HttpRequest
from ninja import Query

from ledger import filters, partials
from ledger.api import masks, shapes
from ledger.api.auth import reader_of
from ledger.api.calls import READ, router
from ledger.api.pages import NEWEST, given_in, page
from ledger.api.schemas import PageOut
from ledger.calls import Fetchable
from recovery import call_filters
from recovery.api.filters import OfCalls
from recovery.call_filters import CALLS

__all__ = ["router"]


class Filters(OfCalls):
    """The filters of the console's list, by its names, and a turn."""

    recovery_class: str = ""
    cause: str = ""
    turn: str = ""
    q: str = ""
    bulk: str = ""
    repeats: str = ""
    no_settled_result: bool = False


@router.get("", auth=READ, response=PageOut)
def index(
    request: HttpRequest,
    asked: Query[Filters],
    sort: str = NEWEST,
    limit: int = 50,
    cursor: str = "",
) -> dict[str, Any]:
    """List calls, newest first or with `sort=oldest` the other way; filters are the console's.

    Words stand together with commas. `class` and `recovery_class` are the same. `saw` is what the
    model was shown last, `basis` what a settled call rests on, `policy` a version, `taken` a
    person's name, `nobody` or `somebody`, `q` any name or id, `repeats` days. `from` and `until`
    are dates, or dates and times, in UTC unless they have an offset. `no_settled_result` keeps
    those nobody has an outcome for (R131), `overdue` those whose deadline nobody acted on.

    A page looks at ten thousand calls at most: with filters it may hold fewer than `limit`, or
    none, while `next_cursor` goes on; the list is over where that is null.
    """
    given = given_in(asked)
    among = call_filters.among(reader_of(request.auth).calls, given)  # type: ignore[attr-defined]
    found, next_cursor = page(
        filters.narrowed(among, given, CALLS),
        filters=given,
        limit=limit,
        cursor=cursor,
        among=None if call_filters.have_index(given) else among,
        sort=sort,
    )
    unfinished = partials.read([row.id for row in found if partials.may_have(row)])
    items = [shapes.call(Fetchable(row, None, unfinished.get(row.id))) for row in found]
    items = masks.calls_given_to(request.auth, items)  # type: ignore[attr-defined]
    return {"items": items, "next_cursor": next_cursor}
