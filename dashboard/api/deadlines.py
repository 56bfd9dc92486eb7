"""Everything that is waited for, over the API: the same rows as its page."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from dashboard import deadlines
from dashboard.deadlines import Wait
from ledger import clock, masking
from ledger.api.auth import KeyOrLogin
from ledger.api.pages import check_limit
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant

router = Router(tags=["deadlines"])
READ = KeyOrLogin("export:read")


@router.get("", auth=READ, response=PageOut)
def index(request: HttpRequest, limit: int = 50, cursor: str = "") -> dict[str, Any]:
    """List what the workspace waits for, until when and what happens then, soonest first.

    It takes a login of any role, or a key with `export:read`, for most of it is not the agent's
    own. `of` is the noun that waits and `id` its id, null for a gate, which goes by its `name`;
    `state` is that of a call. `is_late`: the date passed longer ago than sweeps need. A trial is
    never late: it waits for the next call.
    """
    check_limit(limit)
    workspace_id = request.auth.workspace_id  # type: ignore[attr-defined]
    found = deadlines.read(workspace_id, clock.now(), cursor, limit)
    return {
        "items": [masking.masked(_wait(each)) for each in found.waits],
        "next_cursor": found.more or None,
    }


def _wait(wait: Wait) -> dict[str, Any]:
    return {
        "due_at": instant(wait.at),
        "deadline": wait.what,
        "of": wait.noun,
        "id": wait.shown or None,
        "name": wait.name,
        "state": wait.state or None,
        "then": wait.then,
        "has_passed": wait.has_passed,
        "is_late": wait.is_late,
    }
