"""Sessions and turns."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema

from ledger import bindings, ids, sessions
from ledger.api import shapes
from ledger.api.auth import Key, KeyOrLogin, idempotency_key_of, reader_of
from ledger.api.conditions import etag
from ledger.api.epochs import epoch_in
from ledger.api.formats import prompt_in
from ledger.api.pages import given_in, page
from ledger.api.replays import status_of
from ledger.api.schemas import PageOut, ResumptionIn, SessionIn, TurnEndIn, TurnIn
from ledger.bindings import Stated
from ledger.errors import NotFound
from ledger.filters import narrowed
from ledger.models import Session, Turn
from ledger.session_filters import SESSIONS

router = Router(tags=["sessions"])
WRITE, READ = Key("turns:write"), Key("calls:read")
READ_MANY = KeyOrLogin("calls:read")


class Filters(Schema):
    """The filters of the console's list, by its names."""

    show: str = ""
    agent: str = ""
    q: str = ""


@router.get("", auth=READ_MANY, response=PageOut)
def index(
    request: HttpRequest, asked: Query[Filters], limit: int = 50, cursor: str = ""
) -> dict[str, Any]:
    """List sessions, newest first: an agent's own, or to a person those of the workspace.

    `show` is one of open (a turn), unresolved (calls), drift, stopped, imported; `agent` a name,
    `q` a part of the label. With filters a page looks at ten thousand sessions at most: it may
    hold fewer than `limit`, or none, while `next_cursor` goes on.
    """
    reader, given = reader_of(request.auth), given_in(asked)  # type: ignore[attr-defined]
    own = Session.objects.filter(workspace=reader.workspace_id)
    if reader.agent_id is not None:
        own = own.filter(agent=reader.agent_id)
    rows, among = narrowed(own, given, SESSIONS), own if given else None
    found, next_cursor = page(rows, filters=given, limit=limit, cursor=cursor, among=among)
    return {"items": shapes.sessions(found), "next_cursor": next_cursor}


@router.post("", auth=WRITE, response={201: dict, 200: dict})
def open_session(
    request: HttpRequest, response: HttpResponse, body: SessionIn
) -> tuple[int, dict[str, Any]]:
    """Open a session and bind it; the same `Idempotency-Key` gives the same session."""
    principal = request.auth  # type: ignore[attr-defined]
    session, new = sessions.open_session(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        key=idempotency_key_of(request.headers.get("Idempotency-Key")) or "",
        **body.model_dump(),
    )
    return status_of(response, new=new), shapes.session(session)


def _session(request: HttpRequest, session_id: str) -> Session:
    principal = request.auth  # type: ignore[attr-defined]
    return sessions.get_session(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        session_id=ids.read("session", session_id),
    )


@router.get("/{session_id}", auth=READ)
def detail(request: HttpRequest, response: HttpResponse, session_id: str) -> dict[str, Any]:
    """One session and what it is bound to. Its `ETag` is its epoch."""
    row = _session(request, session_id)
    response["ETag"] = etag(row.epoch)
    return shapes.session(row)


@router.post("/{session_id}/resumption", auth=WRITE)
def resumption(request: HttpRequest, session_id: str, body: ResumptionIn) -> dict[str, Any]:
    """Come back to a session after a restart: the same binding goes on, with its open turn.

    Changes nothing. An older epoch answers 409 `stale_epoch`, another directory or host 409
    `binding_drift`; both open an incident for a person, who may bind the session anew.
    """
    principal = request.auth  # type: ignore[attr-defined]
    stated = body.model_dump() | {"epoch": epoch_in(request, body.epoch)}
    session, turn = bindings.come_back(
        session_id=ids.read("session", session_id),
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        stated=Stated(**stated),
    )
    return shapes.session(session) | {"turn": turn and shapes.turn(turn)}


@router.post("/{session_id}/turns", auth=WRITE, response={201: dict, 200: dict})
def open_turn(
    request: HttpRequest, response: HttpResponse, session_id: str, body: TurnIn
) -> tuple[int, dict[str, Any]]:
    """Open a turn, with its prompt if you like.

    A doubled submit of its key returns the running one; another prompt or model answers 409.
    """
    key = body.key or idempotency_key_of(request.headers.get("Idempotency-Key")) or ""
    stated = Stated(
        epoch=epoch_in(request, body.epoch),
        working_directory=body.working_directory,
        host=body.host,
    )
    turn, new = sessions.open_turn(
        session=_session(request, session_id),
        key=key,
        model=body.model,
        prompt=prompt_in(body),
        stated=stated,
    )
    return status_of(response, new=new), shapes.turn(turn)


def _turn(request: HttpRequest, session_id: str, turn_id: str) -> Turn:
    turn = Turn.objects.filter(
        session=_session(request, session_id), id=ids.read("turn", turn_id)
    ).first()
    if turn is None:
        raise NotFound(noun="turn")
    return turn


@router.get("/{session_id}/turns/{turn_id}", auth=READ)
def turn(request: HttpRequest, session_id: str, turn_id: str) -> dict[str, Any]:
    """One turn. It is not `continuable` while the call it waits for may have had its effect."""
    return shapes.turn(_turn(request, session_id, turn_id))


@router.post("/{session_id}/turns/{turn_id}/end", auth=WRITE)
def end_turn(
    request: HttpRequest, session_id: str, turn_id: str, body: TurnEndIn
) -> dict[str, Any]:
    """Close a turn; as `answered` only when every call of it is settled."""
    row = _turn(request, session_id, turn_id)
    closed = sessions.close_turn(
        turn=row,
        closed_as=body.closed_as,
        by_id=request.auth.agent_id.hex,  # type: ignore[attr-defined]
        epoch=epoch_in(request),
    )
    return shapes.turn(closed)
