"""Incidents, read-only here: what was found, what was tried, and whose turn it is."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router

from ledger import ids
from ledger.api.auth import KeyOrLogin, reader_of
from ledger.api.pages import page
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant
from ledger.errors import NotFound
from recovery.models import Incident

router = Router(tags=["incidents"])
READ = KeyOrLogin("calls:read")


def shape(row: Incident) -> dict[str, Any]:
    """An incident with its timeline."""
    return {
        "id": ids.shown("incident", row.id),
        "call": ids.shown("call", row.call_id),
        "kind": row.kind,
        "state": row.state,
        "number": row.number,
        "cause": row.cause or None,
        "failure_point": row.failure_point or None,
        "exhausted_because": row.reason or None,
        "decision_version": row.decision_version,
        "opened_at": instant(row.opened_at),
        "closed_at": instant(row.closed_at),
        "steps": [
            {
                "at": instant(step.at),
                "rung": step.rung,
                "taken": step.taken,
                "rule": step.rule or None,
                "grounds": step.grounds,
            }
            for step in row.steps.order_by("id")
        ],
    }


def _readable(request: HttpRequest) -> "QuerySet[Incident]":
    """The incidents of the calls that the caller may read."""
    reader = reader_of(request.auth)  # type: ignore[attr-defined]
    of_workspace = Incident.objects.filter(workspace=reader.workspace_id)
    return of_workspace.filter(call__agent=reader.agent_id) if reader.agent_id else of_workspace


@router.get("", auth=READ, response=PageOut)
def index(
    request: HttpRequest,
    open: bool | None = None,
    call: str = "",
    limit: int = 50,
    cursor: str = "",
) -> dict[str, Any]:
    """List incidents, newest first."""
    rows = _readable(request)
    if open is not None:
        rows = rows.filter(closed_at__isnull=open)
    if call:
        rows = rows.filter(call=ids.read("call", call))
    filters = {"open": open, "call": call}
    found, next_cursor = page(rows, filters=filters, limit=limit, cursor=cursor)
    return {"items": [shape(row) for row in found], "next_cursor": next_cursor}


@router.get("/{incident_id}", auth=READ)
def detail(request: HttpRequest, incident_id: str) -> dict[str, Any]:
    """One incident."""
    row = _readable(request).filter(id=ids.read("incident", incident_id)).first()
    if row is None:
        raise NotFound(noun="incident")
    return shape(row)
