"""Calls: submit, wait, events, attempts, verdict, cancellation.

Their list stands in `recovery/api/calls.py`, for its filters ask recovery too.
"""

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router

from ledger import calls, ids, verdicts
from ledger.api import answers, intake, masks, shapes
from ledger.api.auth import Key, KeyOrLogin, idempotency_key_of, reader_of
from ledger.api.epochs import EPOCH, epoch_in, epoch_of
from ledger.api.schemas import BatchIn, BatchOut, CallOut, EventOut, PageOut, SubmitIn
from ledger.calls import Fetchable
from ledger.journal import events_of
from ledger.models import ToolCall

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
        request.headers.get("traceparent"),
    )
    return as_response(
        await answers.submitted(
            submits, is_batch=is_batch, principal=principal, wait_s=intake.wait_s_of(wait)
        )
    )


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
    rows = call.attempts.select_related("worker").order_by("fence")
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
