"""Rehearsals of failure over the API: the same rows as their page."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from dashboard import drills
from dashboard.drills import Reported
from ledger.api.auth import Login
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant

router = Router(tags=["drills"])


@router.get("", auth=Login(), response=PageOut)
def index(request: HttpRequest) -> dict[str, Any]:
    """List the last 30 drills of the installation, newest first, on one page; none under way.

    It takes a login of any role, as the page does: drills are of no workspace. `passed` is null
    where a drill ended without a report; then nothing was counted and `took_s` is null too.
    """
    return {"items": [_drill(each) for each in drills.history()], "next_cursor": None}


def _drill(drill: Reported) -> dict[str, Any]:
    return {
        "name": drill.name,
        "kind": drill.kind,
        "at": instant(drill.at),
        "passed": drill.passed,
        "tests": drill.rows,
        "failed": drill.failed,
        "findings": drill.findings,
        "took_s": drill.seconds,
    }
