"""What happens in a turn: what people say, what models reply, and the user's interruption."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger import calls, faults, ids, interruptions, messages, replies, traces
from ledger.api import intake, quotas, shapes
from ledger.api.auth import Key, idempotency_key_of, need_scope, reader_of
from ledger.api.epochs import epoch_in
from ledger.api.formats import entries_of, replied_in, said_in
from ledger.api.replays import status_of
from ledger.api.schemas import (
    InterruptedOut,
    InterruptionIn,
    PageOut,
    RepliedOut,
    ReplyIn,
    SaidOut,
    SayIn,
)
from ledger.calls import Fetchable
from ledger.errors import NotFound
from ledger.interruptions import Wish
from ledger.keys import Principal
from ledger.messages import Place
from ledger.models import Session, Turn
from ledger.replies import Heard, Replied

router = Router(tags=["sessions"])
WRITE, READ = Key("turns:write"), Key("calls:read")
TURN = "/{session_id}/turns/{turn_id}"


def _place(request: HttpRequest, session_id: str, turn_id: str) -> Place:
    principal: Principal = request.auth  # type: ignore[attr-defined]
    return Place(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        session_id=ids.read("session", session_id),
        turn_id=ids.read("turn", turn_id),
        epoch=epoch_in(request),
    )


def _turn(place: Place) -> Turn:
    """The turn of a place, to be read. Raises NotFound."""
    own = Session.objects.filter(
        id=place.session_id, workspace=place.workspace_id, agent=place.agent_id
    )
    turn = Turn.objects.filter(id=place.turn_id, session__in=own).first()
    if turn is None:
        raise NotFound(noun="turn")
    return turn


def _key(request: HttpRequest, given: str) -> str:
    return given or idempotency_key_of(request.headers.get("Idempotency-Key")) or ""


@router.post(f"{TURN}/messages", auth=WRITE, response={201: SaidOut, 200: SaidOut})
def say(
    request: HttpRequest, response: HttpResponse, session_id: str, turn_id: str, body: SayIn
) -> tuple[int, dict[str, Any]]:
    """Append what people said. A result is none: it is refused, or known by its call already."""
    said = messages.say(
        _place(request, session_id, turn_id),
        format=body.format,
        entries=said_in(body),
        key=_key(request, body.key),
    )
    return status_of(response, new=said.new), shapes.said(said)


@router.get(f"{TURN}/messages", auth=READ, response=PageOut)
def said(request: HttpRequest, session_id: str, turn_id: str) -> dict[str, Any]:
    """The turn's messages in order; a call in one is its place in the reply."""
    turn = _turn(_place(request, session_id, turn_id))
    rows = turn.messages.order_by("position")
    return {"items": [shapes.message(row) for row in rows], "next_cursor": None}


@router.post(f"{TURN}/replies", auth=WRITE, response={201: RepliedOut, 200: RepliedOut})
def reply(
    request: HttpRequest, response: HttpResponse, session_id: str, turn_id: str, body: ReplyIn
) -> tuple[int, dict[str, Any]]:
    """Record a model's reply with its calls, all of it or nothing; the calls run from then on.

    A call that cannot run is answered by a fixed text, and the others go on. The same reply of
    the same step gives the same message and calls; another one answers 409.
    """
    principal: Principal = request.auth  # type: ignore[attr-defined]
    need_scope(principal, "calls:submit")
    heard = _heard(request, body, principal)
    quotas.spend_more(principal.key_id, principal.workspace_id, len(heard.calls))
    faults.point("before_record", tool=heard.calls[0].name if heard.calls else "")
    recorded = replies.reply(_place(request, session_id, turn_id), heard)
    first = next(iter(recorded.calls.values()), None)
    faults.point("before_answer", first.call_id if first else None)
    return status_of(response, new=recorded.new), _replied(recorded, principal)


def _heard(request: HttpRequest, body: ReplyIn, principal: Principal) -> Heard:
    return Heard(
        format=body.format,
        entries=entries_of(body.format, replied_in(body.reply), "/reply"),
        model_step=body.model_step,
        key=_key(request, body.key),
        stop_reason=body.stop_reason,
        names=body.names,
        epoch=body.epoch,
        working_directory=body.working_directory,
        host=body.host,
        api_key_id=principal.key_id,
        prompt_tokens=body.prompt_tokens,
        traceparent=traces.read(request.headers.get("traceparent")),
    )


def _replied(recorded: Replied, principal: Principal) -> dict[str, Any]:
    reader = reader_of(principal)
    places = sorted(recorded.calls)
    found = calls.read_many([(reader, recorded.calls[n].call_id) for n in places])
    items: dict[int, Mapping[str, Any]] = {
        each["position"]: shapes.refused(each) for each in recorded.refused
    }
    for n, fetched in zip(places, found, strict=True):
        if isinstance(fetched, Fetchable):
            intake.note_fetch(fetched, principal)
            items[n] = shapes.call(fetched, replayed=recorded.calls[n].replayed)
    in_order = [items[n] for n in sorted(items)]
    return {"message": shapes.message(recorded.message), "calls": in_order}


@router.post(f"{TURN}/interruption", auth=WRITE, response={202: InterruptedOut})
def interruption(
    request: HttpRequest, session_id: str, turn_id: str, body: InterruptionIn
) -> tuple[int, dict[str, Any]]:
    """The user interrupts the turn: results are kept, nothing new begins, what runs is bounded.

    The turn closes by itself as `interrupted`, when its grace is over at the latest.
    """
    done = interruptions.interrupt(_place(request, session_id, turn_id), Wish(**body.model_dump()))
    return 202, shapes.interrupted(done)


@router.get(f"{TURN}/events", auth=READ, response=PageOut)
def events(request: HttpRequest, session_id: str, turn_id: str) -> dict[str, Any]:
    """What happened to the turn beside its calls: interrupted, results kept, prompts doubled."""
    turn = _turn(_place(request, session_id, turn_id))
    rows = turn.events.order_by("id")
    return {"items": [shapes.turn_event(row) for row in rows], "next_cursor": None}
