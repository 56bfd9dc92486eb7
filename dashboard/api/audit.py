"""The audit over the API: the same lines as its page, for whoever keeps them elsewhere too."""

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from dashboard import audit
from ledger import masking
from ledger.api.auth import KeyOrLogin
from ledger.api.pages import check_limit, given_in
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant

router = Router(tags=["audit"])
READ = KeyOrLogin("export:read")


class Filters(Schema):
    """The filters of the page."""

    actor: str = ""
    target: str = ""
    from_: str = Field("", alias="from")
    to: str = ""


@router.get("", auth=READ, response=PageOut)
def index(
    request: HttpRequest, asked: Query[Filters], limit: int = 50, cursor: str = ""
) -> dict[str, Any]:
    """List what people decided and changed in the workspace, newest first; secrets are masked.

    `actor` is a name, `target` a part of what the deed was about, `from` and `to` are days in
    UTC, both included. `actor` is null where nobody was signed in: on the command line.
    """
    check_limit(limit)
    kept = audit.filters_of(given_in(asked))
    found = audit.read(request.auth.workspace_id, kept, cursor, limit)  # type: ignore[attr-defined]
    return {
        "items": [masking.masked(_line(each)) for each in found.lines],
        "next_cursor": found.more or None,
    }


def _line(line: audit.Line) -> dict[str, Any]:
    return {
        "at": instant(line.at),
        "actor": line.actor or None,
        "deed": line.said,
        "target": line.target,
        "grounds": line.grounds,
    }
