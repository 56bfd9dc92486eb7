"""Hand-offs: a session's unresolved calls offered to another session, taken or declined."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger import acceptances, faults, handoffs, ids
from ledger.api.auth import Key, idempotency_key_of
from ledger.api.epochs import epoch_in
from ledger.api.replays import status_of
from ledger.api.schemas import AcceptanceIn, HandOffIn, RefusalIn
from ledger.api.shapes import instant
from ledger.handoffs import Offer, Receiver
from ledger.models import HandOff

of_sessions = Router(tags=["hand-offs"])
router = Router(tags=["hand-offs"])
WRITE, READ = Key("turns:write"), Key("calls:read")


@of_sessions.post("/{session_id}/handoffs", auth=WRITE, response={201: dict, 200: dict})
def offer(
    request: HttpRequest, response: HttpResponse, session_id: str, body: HandOffIn
) -> tuple[int, dict[str, Any]]:
    """Offer the session's unresolved calls; it keeps them until the receiver accepts."""
    principal = request.auth  # type: ignore[attr-defined]
    row, new = handoffs.offer(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        session_id=ids.read("session", session_id),
        wanted=Offer(
            agent=body.to.agent,
            session_id=_session_id(body.to.session),
            model=body.to.model,
            grounds=body.grounds,
            key=body.key or idempotency_key_of(request.headers.get("Idempotency-Key")) or "",
            epoch=epoch_in(request),
        ),
    )
    return status_of(response, new=new), shown(row)


def _session_id(text: str | None) -> UUID | None:
    return None if text is None else ids.read("session", text)


@router.get("/{hand_off_id}", auth=READ)
def detail(request: HttpRequest, hand_off_id: str) -> dict[str, Any]:
    """One hand-off, for its sender and its receiver, with one line for each unresolved call."""
    principal = request.auth  # type: ignore[attr-defined]
    return shown(
        handoffs.get(
            workspace_id=principal.workspace_id,
            agent_id=principal.agent_id,
            hand_off_id=ids.read("hand_off", hand_off_id),
        )
    )


def _receiver(request: HttpRequest, body: AcceptanceIn | None = None) -> Receiver:
    principal = request.auth  # type: ignore[attr-defined]
    return Receiver(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        scopes=principal.scopes,
        session_id=_session_id(body.session) if body else None,
        epoch=epoch_in(request, body.epoch if body else None),
    )


@router.post("/{hand_off_id}/acceptance", auth=WRITE, response={201: dict, 200: dict})
def accept(
    request: HttpRequest, hand_off_id: str, body: AcceptanceIn
) -> tuple[int, dict[str, Any]]:
    """Take over every unresolved call of the sender, under the same ids. Twice is once."""
    faults.point("before_handoff")
    row, new = acceptances.accept(
        hand_off_id=ids.read("hand_off", hand_off_id), by=_receiver(request, body)
    )
    faults.point("after_handoff")
    return 201 if new else 200, shown(row)


@router.post("/{hand_off_id}/refusal", auth=WRITE, response={201: dict, 200: dict})
def refuse(request: HttpRequest, hand_off_id: str, body: RefusalIn) -> tuple[int, dict[str, Any]]:
    """Decline an offer: its sender keeps the calls, and an operator is told."""
    row, new = handoffs.refuse(
        hand_off_id=ids.read("hand_off", hand_off_id), by=_receiver(request), why=body.why
    )
    return 201 if new else 200, shown(row)


def shown(row: HandOff) -> dict[str, Any]:
    """A hand-off: `calls` are fixed by its acceptance, `lines` tell the unresolved ones."""
    return {
        "id": ids.shown("hand_off", row.id),
        "state": row.ended_as or "offered",
        "from_session": ids.shown("session", row.from_session_id),
        "to": {
            "agent": row.to_agent.name,
            "session": row.to_session_id and ids.shown("session", row.to_session_id),
            "model": row.to_model or None,
        },
        "grounds": row.grounds,
        "calls": [ids.shown("call", each) for each in row.calls],
        "lines": handoffs.set_of(row),
        "offered_at": instant(row.offered_at),
        "expires_at": instant(row.expires_at),
        "ended_at": instant(row.ended_at),
        "ended_why": row.ended_why or None,
    }
