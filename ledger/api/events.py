"""A session's events as they happen: `text/event-stream`, left and taken up again without a gap.

A stream holds no thread and no database connection while it waits. It ends when its client is
gone, which Django tells by cancelling it, when its key holds no more, and when the server stops.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router

from ledger import feed, ids, keys, sessions
from ledger.api.auth import Key, bearer_of, need_scope
from ledger.errors import Invalid, LedgerError
from ledger.feed import Place, Told
from ledger.keys import Principal
from ledger.streams import Streams, is_set_within
from ledger.watch import asked, watch

HEARTBEAT_S = 15.0
RETRY_MS = 2000
STREAMS_MAX, STREAMS_AN_AGENT_MAX = 256, 8
WAITS_S = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""How long a stream waits for older transactions to end, time after time."""

router = Router(tags=["events"])
SCOPE = "calls:read"


class TooManyStreams(LedgerError):
    """More streams are open than one agent, or one web, may hold."""

    code = "rate_limited"
    http = 429
    sentence = (
        "{open} event streams are open already, and no more than {most} may be. Close one that "
        "is not read any more, or try again in {retry_after_s} s."
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """Who follows which session, by which key, and from where on."""

    principal: Principal
    key: str
    session_id: UUID
    after: Place | None


_streams = Streams(most=STREAMS_MAX, most_each=STREAMS_AN_AGENT_MAX)


@router.get(
    "",
    auth=Key(SCOPE),
    response={200: None},
    openapi_extra={
        "responses": {
            200: {
                "description": "Events as they happen.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            }
        }
    },
)
async def stream(
    request: HttpRequest, session: str, last_event_id: str = ""
) -> StreamingHttpResponse:
    """Follow a session: settled calls, progress, corrections, and what became of its turns.

    Each event has an id. Sent back as `Last-Event-ID`, or as `last_event_id` by a client that sets
    no headers, it goes on behind it; `0` begins with the session's first, none with what is next.
    """
    principal = request.auth  # type: ignore[attr-defined]
    authorization = request.headers.get("Authorization")
    wanted = Asked(
        principal,
        bearer_of(authorization, "", ""),
        ids.read("session", session),
        place_of(request.headers.get("Last-Event-ID", "") or last_event_id),
    )
    await asked(_own, wanted)
    _refuse_too_many(principal.agent_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(follow(wanted), content_type="text/event-stream", headers=headers)


def place_of(text: str) -> Place | None:
    """From where on; None for what is next. Raises Invalid."""
    if not text:
        return None
    found = Place(0) if text == "0" else feed.place(text)
    if found is None:
        raise Invalid(detail="Last-Event-ID is the id of an event of this stream, or 0.")
    return found


def _own(wanted: Asked) -> None:
    sessions.get_session(
        workspace_id=wanted.principal.workspace_id,
        agent_id=wanted.principal.agent_id,
        session_id=wanted.session_id,
    )


def _refuse_too_many(agent_id: UUID) -> None:
    reached = _streams.bound_reached(agent_id)
    if reached:
        raise TooManyStreams(open=reached[0], most=reached[1], retry_after_s=5)


async def follow(wanted: Asked) -> AsyncIterator[bytes]:
    """The stream itself. Reads a page only when the one before has been taken."""
    with _streams.counted(wanted.principal.agent_id):
        yield f"retry: {RETRY_MS}\n\n".encode()
        async with watch().session(wanted.session_id) as woken:
            async for block in _blocks(wanted, woken):
                yield block


async def _blocks(wanted: Asked, woken: asyncio.Event) -> AsyncIterator[bytes]:
    at = wanted.after
    if at is None:
        at = await asked(feed.now)
        yield _place(at)
    elif await asked(feed.is_beyond, at):
        at = await asked(feed.now)
        yield _block("reset", at, {"detail": BEYOND})
    tries = 0
    while True:
        woken.clear()
        read = await asked(feed.read, wanted.session_id, at)
        for each in read.events:
            yield _told(each)
        at, tries = read.through, tries + 1 if read.more and not read.events else 0
        if read.full:
            continue
        wait_s = WAITS_S[min(tries, len(WAITS_S) - 1)] if read.more else HEARTBEAT_S
        if read.more:
            await asyncio.sleep(wait_s)
        elif not await is_set_within(woken, wait_s):
            if await asked(_is_over, wanted):
                yield _block("end", at, {"detail": REFUSED})
                return
            yield b": heartbeat\n" + _place(at)


BEYOND = (
    "This place lies ahead of all that the ledger has recorded: it was restored since. Read the "
    "session's calls again; the stream goes on from now."
)
REFUSED = "The key that opened this stream is not valid any more. Take a new one and go on."


def _is_over(wanted: Asked) -> bool:
    """Whether the key is refused by now, or may not read any more."""
    try:
        need_scope(keys.principal_of(wanted.key), SCOPE)
    except LedgerError:
        return True
    return False


def _told(told: Told) -> bytes:
    return _block(told.kind, told.at, dict(told.facts))


def _block(kind: str, at: Place, facts: dict[str, object]) -> bytes:
    """One event; JSON has no line end within it, so nothing of a tool's breaks out."""
    return f"event: {kind}\nid: {at}\ndata: {json.dumps(facts)}\n\n".encode()


def _place(at: Place) -> bytes:
    """A place without an event: what a client sends back when it comes again."""
    return f"id: {at}\n\n".encode()
