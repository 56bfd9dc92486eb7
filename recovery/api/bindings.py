"""Binding a session anew: a person's act, on grounds, on the epoch that was looked at (R112)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger import ids
from ledger.api import shapes
from ledger.api.auth import Login
from ledger.api.conditions import etag, seen_of
from ledger.api.schemas import BindingIn, PageOut
from ledger.api.shapes import instant
from ledger.errors import NotFound
from ledger.models import Session, SessionChange
from ledger.permissions import Person, Right, roles_with
from recovery import rebinds
from recovery.rebinds import Binding

router = Router(tags=["sessions"])
PERSON, DECIDER = Login(), Login(*roles_with(Right.DECIDE))
CHANGES_SHOWN = 200


@router.get("/{session_id}/binding", auth=PERSON)
def binding(request: HttpRequest, response: HttpResponse, session_id: str) -> dict[str, Any]:
    """What a session is bound to; its `ETag` is its epoch, which a re-bind sends back."""
    session = _session(request, session_id)
    response["ETag"] = etag(session.epoch)
    return shapes.session(session)


@router.post("/{session_id}/binding", auth=DECIDER)
def rebind(
    request: HttpRequest, response: HttpResponse, session_id: str, body: BindingIn
) -> dict[str, Any]:
    """Bind a session anew: the epoch rises, and whoever held it is fenced.

    `If-Match` or `epoch` names the epoch that was looked at: 428 without, 412 or 409 if another
    holds by now, saying who raised it. The same request again changes nothing.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    session = rebinds.rebind(
        workspace_id=person.workspace_id,
        session_id=ids.read("session", session_id),
        binding=Binding(working_directory=body.working_directory, host=body.host, model=body.model),
        grounds=body.grounds,
        seen=seen_of(request, body.epoch),
        by=person,
    )
    response["ETag"] = etag(session.epoch)
    return shapes.session(session)


@router.get("/{session_id}/changes", auth=PERSON, response=PageOut)
def changes(request: HttpRequest, session_id: str) -> dict[str, Any]:
    """Who stopped a session, let it go on or bound it anew, the last first: when, why, and what."""
    rows = _session(request, session_id).changes.order_by("-id")[:CHANGES_SHOWN]
    return {"items": [_change(row) for row in rows], "next_cursor": None}


def _session(request: HttpRequest, session_id: str) -> Session:
    person: Person = request.auth  # type: ignore[attr-defined]
    id_ = ids.read("session", session_id)
    found = Session.objects.filter(workspace=person.workspace_id, id=id_).first()
    if found is None:
        raise NotFound(noun="session", about=id_)
    return found


def _change(row: SessionChange) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "by": row.by_name,
        "grounds": row.grounds,
        "facts": row.facts,
        "at": instant(row.at),
    }
