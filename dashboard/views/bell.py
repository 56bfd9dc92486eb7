"""The stream that rings for the open consoles of a browser, and what a notification says."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from dashboard import alerts as alerts_
from dashboard import live, logins
from dashboard.bell import bell
from dashboard.people import Visit, page, signed_out
from ledger.api.auth import person_of
from ledger.errors import PermissionMissing
from ledger.streams import Streams, is_set_within
from ledger.watch import asked

RETRY_MS = 2000
HEARTBEAT_S = 15.0
LOGIN_EVERY_S = 10.0
"""How often a ringing stream asks whether its login has ended; a silent one at each heartbeat."""
STREAMS_MAX, STREAMS_A_PERSON_MAX = 256, 8

_streams = Streams(most=STREAMS_MAX, most_each=STREAMS_A_PERSON_MAX)


@dataclass(frozen=True, slots=True)
class Listener:
    """Whose stream it is, in which workspace, and the login that it began with."""

    person_id: int
    workspace_id: UUID
    login: str


@require_GET
async def stream(request: HttpRequest) -> HttpResponseBase:
    """Ring whenever something changed in the workspace; `end` when the login has ended.

    Without a login the way there, 429 beyond the bounds: a page then goes on by its polls alone.
    """
    listener = await asked(_listener, request)
    if listener is None:
        return await asked(signed_out, request)
    if _streams.bound_reached(listener.person_id):
        return HttpResponse(status=429, headers={"Retry-After": "60"})
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(
        _counted(listener), content_type="text/event-stream", headers=headers
    )


def _listener(request: HttpRequest) -> Listener | None:
    """Who asks; None without a login, or without a workspace."""
    try:
        person = person_of(request) if request.user.is_authenticated else None
    except PermissionMissing:
        return None
    if person is None or request.session.session_key is None:
        return None
    return Listener(person.id, person.workspace_id, request.session.session_key)


async def _counted(listener: Listener) -> AsyncIterator[bytes]:
    with _streams.counted(listener.person_id):
        async for block in _ringing(listener):
            yield block


async def _ringing(listener: Listener) -> AsyncIterator[bytes]:
    asked_at = time.monotonic()
    async with bell().listener(listener.workspace_id) as rung:
        yield f"retry: {RETRY_MS}\n\n".encode()
        while True:
            yield b"event: ring\ndata: {}\n\n" if await _rings(rung) else b": heartbeat\n\n"
            if time.monotonic() - asked_at < LOGIN_EVERY_S:
                continue
            asked_at = time.monotonic()
            if not await asked(_lasts, listener):
                yield b"event: end\ndata: {}\n\n"
                return


async def _rings(rung: asyncio.Event) -> bool:
    """Whether it rings before a heartbeat is due."""
    if not await is_set_within(rung, HEARTBEAT_S):
        return False
    rung.clear()
    return True


def _lasts(listener: Listener) -> bool:
    """Whether the login goes on, of the same person in the same workspace."""
    request = logins.looked_up(listener.login)
    return request is not None and _listener(request) == listener


@require_GET
@page
def alerts(request: Visit) -> HttpResponse:
    """What needs this person, as JSON, or 304 where the asker has it."""
    found = alerts_.of(request.person)
    tag = live.tag_of(*found)
    if request.headers.get("HX-PTag") == tag:
        return HttpResponse(status=304)
    return JsonResponse({"alerts": [asdict(each) for each in found]}, headers={"HX-PTag": tag})
