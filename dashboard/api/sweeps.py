"""When each watchdog swept last, over the API: the same rows as on the page of workers."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from dashboard import workers
from ledger import clock
from ledger.api.auth import Login
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant

router = Router(tags=["workers"])


@router.get("", auth=Login(), response=PageOut)
def index(request: HttpRequest) -> dict[str, Any]:
    """List the watchdogs that swept in the last 24 hours, the last sweep first, at most 20.

    It takes a login of any role, as the page of workers does. `is_late` says that one has not swept
    for a minute; where that holds for all of them, deadlines pass without anything happening.
    """
    swept = workers.read(clock.now()).sweeps
    items = [
        {"watchdog": each.name, "swept_at": instant(each.swept_at), "is_late": each.is_late}
        for each in swept
    ]
    return {"items": items, "next_cursor": None}
