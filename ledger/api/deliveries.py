"""A session as its provider takes it, what a turn is shown of its calls, and who confirmed it."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Query, Router, Schema
from pydantic import Field

from ledger import conversations, ids, offers, rendering, sessions
from ledger.api import shapes
from ledger.api.answers import matches
from ledger.api.auth import Key
from ledger.api.epochs import epoch_in
from ledger.api.schemas import DeliveryIn, PageOut
from ledger.errors import Invalid, NotFound
from ledger.messages import Place
from ledger.models import Delivery, Offer, Session, Turn
from ledger.offers import Item, Offered
from ledger.rendering import Wanted
from ledger.vocabulary import DeliveryMode

of_sessions = Router(tags=["deliveries"])
router = Router(tags=["deliveries"])
WRITE, READ = Key("turns:write"), Key("calls:read")


def _session(request: HttpRequest, session_id: str) -> Session:
    principal = request.auth  # type: ignore[attr-defined]
    return sessions.get_session(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        session_id=ids.read("session", session_id),
    )


class Telling(Schema):
    """How a session is to be told; `format` and `profile` both name the provider."""

    format: str = ""
    profile: str = ""
    which: str = Field(rendering.SENT, alias="copy")
    up_to: int | None = None
    cap: int | None = None
    consumer: str = conversations.CONSUMER

    def wanted(self) -> Wanted:
        """The same for rendering. Raises Invalid unless one provider is named."""
        if self.format and self.profile and self.format != self.profile:
            raise Invalid(detail="format and profile name the same thing: give one of them.")
        if not (self.format or self.profile):
            raise Invalid(detail="Say with format for which provider the session is rendered.")
        return Wanted(
            profile=self.profile or self.format,
            copy=self.which,
            up_to=self.up_to,
            cap_bytes=self.cap,
            consumer=self.consumer,
        )


@of_sessions.get("/{session_id}/transcript", auth=READ, response={200: dict, 304: None})
def transcript(request: HttpRequest, session_id: str, telling: Query[Telling]) -> HttpResponse:
    """The session as a provider takes it, with what each call is shown as. Changes nothing.

    `format` and `profile` both name the provider; `copy=stored` leaves the last step's open calls
    open. `up_to` is the number of a turn, `cap` the bytes of a result from which it is cut, with a
    visible marker. What the provider would refuse is not given out.
    """
    wanted = telling.wanted()
    session = _session(request, session_id)
    found = rendering.transcript(session, wanted)
    headers = {"ETag": found.etag, "Cache-Control": "no-store"}
    if matches(request.headers.get("If-None-Match", ""), found.etag):
        return HttpResponse(status=304, headers=headers)
    body = {
        "session": ids.shown("session", session.id),
        "profile": wanted.profile,
        "copy": wanted.copy,
        "version": found.version,
        "body": found.body,
        "manifest": found.manifest,
        "unresolved": found.unresolved,
    }
    return JsonResponse(body, headers=headers)


@of_sessions.post("/{session_id}/deliveries", auth=WRITE, response={201: dict, 200: dict})
def offer(request: HttpRequest, session_id: str, body: DeliveryIn) -> tuple[int, dict[str, Any]]:
    """Offer a turn what its consumer has not confirmed; the same again is the same offer.

    Lists undelivered results, unresolved calls and corrections first, then the items in the order
    of turn, step and position. `close` gives open calls of this very turn a notice too.
    """
    principal = request.auth  # type: ignore[attr-defined]
    provider = rendering.profile_named(body.format) if body.format else None
    mode = DeliveryMode(body.mode)
    place = Place(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        session_id=ids.read("session", session_id),
        turn_id=ids.read("turn", body.turn),
        epoch=epoch_in(request),
    )
    made = offers.offer(place, mode=mode, consumer=body.consumer, close=body.close)
    told = _offered(made) | {
        "undelivered": _named(made.lists.undelivered),
        "unresolved": [_item(each) for each in made.lists.unresolved],
        "corrections": _named(made.lists.corrections),
        "due_next_turn": _named(made.lists.waiting),
        "messages": rendering.messages_of(made.items, mode, provider) if provider else None,
    }
    return 201 if made.new else 200, told


@of_sessions.get("/{session_id}/turns/{turn_id}/deliveries", auth=READ, response=PageOut)
def of_turn(request: HttpRequest, session_id: str, turn_id: str) -> dict[str, Any]:
    """What the model saw of each call in this turn, and what was offered and never confirmed."""
    turn = Turn.objects.filter(
        session=_session(request, session_id), id=ids.read("turn", turn_id)
    ).first()
    if turn is None:
        raise NotFound(noun="turn")
    # By its offer: deliveries have no index on their turn, and there is one for each call ever.
    rows = Delivery.objects.filter(offer__turn=turn).order_by("offered_at", "id")
    return {"items": [_shown(each) for each in offers.told_of(rows)], "next_cursor": None}


@router.get("/{delivery_id}", auth=READ)
def detail(request: HttpRequest, delivery_id: str) -> dict[str, Any]:
    """An offer as it was made, and when it was confirmed."""
    principal = request.auth  # type: ignore[attr-defined]
    found = offers.get(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        offer_id=ids.read("delivery", delivery_id),
    )
    return _offered(found)


@router.post("/{delivery_id}/acknowledgement", auth=WRITE)
def acknowledgement(request: HttpRequest, delivery_id: str) -> dict[str, Any]:
    """Say that the offer was sent to the model; a second time changes nothing."""
    principal = request.auth  # type: ignore[attr-defined]
    row = offers.acknowledge(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        offer_id=ids.read("delivery", delivery_id),
        epoch=epoch_in(request),
    )
    return _row(row)


# Shapes


def _offered(made: Offered) -> dict[str, Any]:
    row = _row(made.offer) if made.offer is not None else {"id": None}
    return row | {"items": [_item(each) for each in made.items]}


def _row(row: Offer) -> dict[str, Any]:
    return {
        "id": ids.shown("delivery", row.id),
        "session": ids.shown("session", row.session_id),
        "turn": ids.shown("turn", row.turn_id),
        "consumer": row.consumer,
        "mode": row.mode,
        "offered_at": shapes.instant(row.offered_at),
        "acknowledged_at": shapes.instant(row.acknowledged_at),
    }


def _named(items: list[Item]) -> list[str]:
    return [ids.shown("call", each.call.id) for each in items]


def _item(item: Item) -> dict[str, Any]:
    """What is shown of one call. `as_text`: beside the results, for its place was read already."""
    call, shown = item.call, item.shown
    return {
        "call": ids.shown("call", call.id),
        "turn": call.turn_id and ids.shown("turn", call.turn_id),
        "model_step": call.model_step,
        "position": call.position,
        "tool": call.tool,
        "tool_call_id": call.tool_call_id,
        "state": call.state,
        "effect": call.effect,
        "kind": shown.kind,
        "template": shown.template or None,
        "version": shown.version,
        "text": shown.text,
        "is_error": shown.is_error,
        "sha256": shown.sha256,
        "as_text": item.is_text,
    }


def _shown(told: tuple[Delivery, Item]) -> dict[str, Any]:
    row, item = told
    return _item(item) | {
        # As it stood when it was offered, not as it stands now.
        "state": row.state,
        "effect": row.effect,
        "event": row.event_seq,
        "delivery": ids.shown("delivery", row.offer_id),
        "consumer": row.consumer,
        "offered_at": shapes.instant(row.offered_at),
        "acknowledged_at": shapes.instant(row.acknowledged_at),
    }
