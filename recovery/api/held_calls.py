"""Holds: which calls may not run before something is known, or before a person lets them."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from ledger import ids
from ledger.api.auth import KeyOrLogin, reader_of
from ledger.api.pages import NEWEST, given_in, page
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant
from ledger.filters import Keep, narrowed
from ledger.holds import NAME
from ledger.models import Interrupt, ToolCall
from recovery.api.filters import OfTheInbox
from recovery.incident_filters import HOLD_NEEDS_ANSWER, HOLDS

router = Router(tags=["holds"])
READ = KeyOrLogin("calls:read")
FILTERS: dict[str, Keep] = {
    **HOLDS,
    "needs_answer": lambda text: HOLD_NEEDS_ANSWER,
}


class Filters(OfTheInbox):
    """Those filters of the console's inbox that can be about a hold, by its names."""


@router.get("", auth=READ, response=PageOut)
def index(
    request: HttpRequest,
    asked: Query[Filters],
    sort: str = NEWEST,
    limit: int = 50,
    cursor: str = "",
) -> dict[str, Any]:
    """List held calls, the newest call first or with `sort=oldest` the other way.

    `needs_answer` keeps those that only a person lets run, as the inbox does. `from`, `until` and
    `age_min` are about when the hold began, `overdue` about its expiry. Nobody takes a hold, is
    assigned to one or sets it aside; `kind=hold` keeps all of them, another kind none.
    """
    given, reader = given_in(asked), reader_of(request.auth)  # type: ignore[attr-defined]
    # Open holds are bounded by what people leave lying, so they are found first.
    held = Interrupt.objects.filter(workspace=reader.workspace_id, name=NAME, ended_at=None)
    kept = narrowed(held, given, FILTERS)
    rows = reader.calls.filter(id__in=kept.values("call"))
    found, next_cursor = page(rows, filters=given, limit=limit, cursor=cursor, sort=sort)
    of_call = {row.call_id: row for row in held.filter(call__in=[call.id for call in found])}
    items = [shape(call, of_call[call.id]) for call in found if call.id in of_call]
    return {"items": items, "next_cursor": next_cursor}


def shape(call: ToolCall, row: Interrupt) -> dict[str, Any]:
    """A hold: of which call, why, what it waits for, since when and until when."""
    return {
        "call": ids.shown("call", call.id),
        "tool": call.tool,
        "session": call.session_id and ids.shown("session", call.session_id),
        "reason": row.reason,
        "waits_for": row.waits_for_id and ids.shown("call", row.waits_for_id),
        "asked_at": instant(row.asked_at),
        "expires_at": instant(row.expires_at),
    }
