"""Requests for a second person over the API: the same rows as their page."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from dashboard import approvals
from dashboard.approvals import Asked
from ledger import ids
from ledger.api.auth import Login
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant

router = Router(tags=["approvals"])


@router.get("", auth=Login(), response=PageOut)
def index(request: HttpRequest) -> dict[str, Any]:
    """List the requests that wait, others' before your own, then the last 20 answers, on one page.

    It takes a login of any role, as the page does: which are your own is a question of a person.
    `stage` is `requested` for what waits until `request_ends_at`, else how it ended, at `ended_at`;
    `ended_by` is null where nobody answered.
    """
    found = approvals.read(request.auth)  # type: ignore[attr-defined]
    listed = [*found.others, *found.mine, *found.ended]
    return {"items": [_request(each) for each in listed], "next_cursor": None}


def _request(asked: Asked) -> dict[str, Any]:
    row = asked.row
    return {
        "id": asked.shown,
        "call": ids.shown("call", row.call_id),
        "tool": row.call.tool,
        "stage": asked.stage,
        "answer": row.answer,
        "then": row.then or None,
        "by": row.by_name,
        "at": instant(row.at),
        "level": row.level,
        "request_ends_at": instant(asked.until),
        "ended_by": asked.ended_by or None,
        "ended_at": instant(asked.ended_at),
    }
