"""Calls: submit, wait, list, events, attempts, verdict, cancellation."""

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Query, Router, Schema

from ledger import calls, ids, partials, verdicts
from ledger.api import answers, intake, masks, shapes
from ledger.api.auth import Key, KeyOrLogin, idempotency_key_of, reader_of
from ledger.api.epochs import EPOCH, epoch_in, epoch_of
from ledger.api.pages import page, words_of
from ledger.api.schemas import BatchIn, BatchOut, CallOut, EventOut, PageOut, SubmitIn
from ledger.calls import Fetchable
from ledger.errors import Invalid
from ledger.journal import events_of
from ledger.models import Attempt, ToolCall, Turn
from ledger.strictjson import is_identifier
from ledger.vocabulary import OPEN, CallState, Cause, Effect, RecoveryClass

router = Router(tags=["calls"])
READ = KeyOrLogin("calls:read")


def as_response(answer: answers.Answer) -> HttpResponse:
    """A framework-free answer as Django's."""
    headers = {"Cache-Control": "no-store"} | dict(answer.headers)
    if answer.body is None:
        return HttpResponse(status=answer.status, headers=headers)
    return JsonResponse(answer.body, status=answer.status, headers=headers)


@router.post(
    "",
    auth=Key("calls:submit"),
    response={200: CallOut | BatchOut, 201: CallOut | BatchOut},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "anyOf": [
                            {"$ref": f"#/components/schemas/{model.__name__}"}
                            for model in (SubmitIn, BatchIn)
                        ]
                    }
                }
            },
        }
    },
)
async def submit(request: HttpRequest, wait: str | None = None) -> HttpResponse:
    """Record one call, or up to a hundred, and answer after the commit.

    `Idempotency-Key` names the intent: the same key and arguments give the same call, other
    arguments answer 409. With `?wait=25` the answer comes with the result, if it is there by then.
    """
    principal = request.auth  # type: ignore[attr-defined]
    submits, is_batch = intake.read_submits(
        request.body,
        request.headers.get("Content-Type", ""),
        request.headers.get("Content-Encoding", ""),
        principal,
        idempotency_key_of(request.headers.get("Idempotency-Key")),
        epoch_of(request.headers.get(EPOCH)),
    )
    return as_response(
        await answers.submitted(
            submits, is_batch=is_batch, principal=principal, wait_s=intake.wait_s_of(wait)
        )
    )


class Filters(Schema):
    """The filters of the list; each may be given several times, comma-separated."""

    state: str = ""
    effect: str = ""
    recovery_class: str = ""
    cause: str = ""
    tool: str = ""
    session: str = ""
    turn: str = ""
    no_settled_result: bool = False


WORDS: dict[str, Any] = {
    "state": CallState,
    "effect": Effect,
    "recovery_class": RecoveryClass,
    "cause": Cause,
}


@router.get("", auth=READ, response=PageOut)
def index(
    request: HttpRequest, filters: Query[Filters], limit: int = 50, cursor: str = ""
) -> dict[str, Any]:
    """List calls, newest first. `no_settled_result`: those nobody has an outcome for (R131).

    A page looks at ten thousand calls at most: with filters it may hold fewer than `limit`, or
    none, while `next_cursor` goes on; the list is over where that is null.
    """
    rows = own = reader_of(request.auth).calls  # type: ignore[attr-defined]
    given = {name: value for name, value in filters.dict().items() if value}
    for name, words in WORDS.items():
        if name in given:
            rows = rows.filter(**{f"{name}__in": words_of(name, words, given[name])})
    if "tool" in given:
        rows = rows.filter(tool__in=_names(given["tool"]))
    if "session" in given:
        rows = rows.filter(session=ids.read("session", given["session"]))
    if "turn" in given:
        turn = Turn.objects.filter(id=ids.read("turn", given["turn"]))
        # Calls are found by their session; a turn has no index of its own.
        rows = rows.filter(turn__in=turn, session__in=turn.values("session"))
    if filters.no_settled_result:
        rows = rows.no_settled_result()
    if _is_of_open_ones(given):
        rows = rows.open()
    among = None if _has_index(given) else own
    found, next_cursor = page(rows, filters=given, limit=limit, cursor=cursor, among=among)
    unfinished = partials.read([row.id for row in found if partials.may_have(row)])
    items = [shapes.call(Fetchable(row, None, unfinished.get(row.id))) for row in found]
    items = masks.calls_given_to(request.auth, items)  # type: ignore[attr-defined]
    return {"items": items, "next_cursor": next_cursor}


INDEXED = {"session", "turn", "no_settled_result"}


def _has_index(given: dict[str, Any]) -> bool:
    """Whether the filters find their calls without a look at all of them."""
    return not given or bool(INDEXED & given.keys()) or _is_of_open_ones(given)


def _is_of_open_ones(given: dict[str, Any]) -> bool:
    return "state" in given and OPEN.issuperset(given["state"].split(","))


def _names(text: str) -> list[str]:
    given = text.split(",")
    if not all(map(is_identifier, given)):
        raise Invalid(detail="tool is the name of a tool, or several with commas between them.")
    return given


@router.get("/{call_id}", auth=READ, response={200: CallOut, 304: None})
async def detail(request: HttpRequest, call_id: str, wait: str | None = None) -> HttpResponse:
    """One call; with `?wait=25` as soon as it is settled or a person's turn."""
    answer = await answers.fetched_call(
        request.auth,  # type: ignore[attr-defined]
        call_id,
        wait_s=intake.wait_s_of(wait),
        if_none_match=request.headers.get("If-None-Match", ""),
    )
    if answer.body is None:
        return as_response(answer)
    (shown,) = await sync_to_async(masks.calls_given_to)(
        request.auth,  # type: ignore[attr-defined]
        [answer.body],
    )
    return as_response(answers.Answer(answer.status, shown, answer.headers))


def _call(request: HttpRequest, call_id: str) -> ToolCall:
    return calls.get(
        reader=reader_of(request.auth),  # type: ignore[attr-defined]
        call_id=ids.read("call", call_id),
    )


@router.get("/{call_id}/events", auth=READ, response=PageOut)
def events(request: HttpRequest, call_id: str) -> dict[str, Any]:
    """The call's events in order, with their hashes."""
    call = _call(request, call_id)
    items = [EventOut(**shapes.event(row)).dict() for row in events_of(call.id)]
    items = masks.about_call(request.auth, call, items)  # type: ignore[attr-defined]
    return {"items": items, "next_cursor": None}


@router.get("/{call_id}/attempts", auth=READ, response=PageOut)
def attempts(request: HttpRequest, call_id: str) -> dict[str, Any]:
    """The call's attempts: who held the fence, what came of it, why it is proven dead."""
    call = _call(request, call_id)
    rows = Attempt.objects.filter(call=call).select_related("worker").order_by("fence")
    items = masks.about_call(request.auth, call, [shapes.attempt(row) for row in rows])  # type: ignore[attr-defined]
    return {"items": items, "next_cursor": None}


@router.get("/{call_id}/verdict", auth=READ)
def verdict(request: HttpRequest, call_id: str) -> dict[str, Any]:
    """Did it start, did the effect happen, what did the model see; each with the proving events."""
    call = _call(request, call_id)
    return {"call": ids.shown("call", call.id)} | verdicts.verdict_for(call).to_json()


@router.post("/{call_id}/cancellation", auth=Key("calls:submit"), response={202: CallOut})
def cancellation(request: HttpRequest, call_id: str) -> tuple[int, dict[str, Any]]:
    """Ask for the call's end: before the boundary it is cancelled, after it left to end."""
    principal = request.auth  # type: ignore[attr-defined]
    call = calls.cancel(
        workspace_id=principal.workspace_id,
        agent_id=principal.agent_id,
        call_id=ids.read("call", call_id),
        epoch=epoch_in(request),
    )
    return 202, shapes.call(Fetchable(call, None))
