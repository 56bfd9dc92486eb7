"""The bell: open consoles are told that something changed in their workspace, and not what.

It only rings. What changed is then read by the ordinary conditional requests, so a ring that is
missed costs a delay, never a fact. It rings for what those who wait for calls are told of
(ledger/waiting.py), and for whatever moved an open incident; the progress of a running attempt is
left to the polls. One look for all streams of a process together; without one nothing runs, and a
stream that waits holds no thread and no connection.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection

from ledger import feed
from ledger.feed import FULL, HORIZON, Place
from ledger.hub import News, hub
from ledger.listeners import Listeners, one_a_loop
from ledger.watch import asked

GATHER_S = 0.05  # what comes within it shares one look
PASS_S = 1.0  # how late a move that nobody gives notice of may ring
SPACED_S = 1.0  # how far apart rings are while changes keep coming, at least
HEARD_A_SECOND = 4  # each ring that is heard is read after; no more of them than this

log = logging.getLogger(__name__)

# Served by the primary key, and by `incident_open`: keep its condition in step.
MOVED = f"""
WITH h AS MATERIALIZED ({HORIZON})
SELECT c.workspace_id FROM ledger_toolcall c
 WHERE c.id = ANY(%(calls)s) AND c.workspace_id = ANY(%(workspaces)s)
UNION
SELECT i.workspace_id FROM h, recovery_incident i
 WHERE i.workspace_id = ANY(%(workspaces)s) AND i.closed_at IS NULL
   AND {FULL.format("i")} >= %(since)s
"""  # noqa: S608 constants of ours


def moved(
    workspaces: Sequence[UUID], calls: Sequence[UUID], since: Place
) -> tuple[set[UUID], Place]:
    """In which workspaces one of these calls, or an open incident since then, moved; and now."""
    at = feed.now()
    asks: dict[str, Any] = {
        "calls": list(calls),
        "workspaces": list(workspaces),
        "since": since.transaction,
    }
    with connection.cursor() as cursor:
        cursor.execute(MOVED, asks)
        return {row[0] for row in cursor.fetchall()}, at


class Bell:
    """Those who listen in one event loop, by workspace."""

    def __init__(self) -> None:
        self._listeners = Listeners()
        self._task: asyncio.Task[None] | None = None
        self._since = Place(0)
        self._began = asyncio.Event()

    @contextlib.asynccontextmanager
    async def listener(self, workspace_id: UUID) -> AsyncIterator[asyncio.Event]:
        """An event that is set when something changes there from now on."""
        with self._listeners.waiting(workspace_id) as rung:
            if self._task is None or self._task.done():
                self._began.clear()
                self._task = asyncio.create_task(self._run())
            await self._began.wait()
            yield rung

    def spacing_s(self) -> float:
        """How far apart rings are: the farther, the more consoles read after each."""
        return max(SPACED_S, len(self._listeners) / HEARD_A_SECOND)

    async def _run(self) -> None:
        """Look while anybody listens; what could not be looked up rings everywhere."""
        async with hub().listener() as news:
            while self._listeners:
                try:
                    if not self._began.is_set():
                        news.take()  # that the line is new is no news to who comes just now
                        self._since = await asked(feed.now)
                        self._began.set()
                    await self._look(news)
                except (OperationalError, InterfaceError) as error:
                    log.warning("bell.database_away error=%s", type(error).__name__)
                    self._listeners.wake_all()
                    await asyncio.sleep(PASS_S)

    async def _look(self, news: News) -> None:
        """Wait for news or for the next pass, and ring where something moved."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.came.wait(), timeout=PASS_S)
        await asyncio.sleep(GATHER_S)
        calls, workspaces = news.take(), self._listeners.ids
        found, self._since = await asked(moved, workspaces, list(calls or ()), self._since)
        self._listeners.wake(workspaces if calls is None else found)
        if found:
            await asyncio.sleep(self.spacing_s() - GATHER_S)


bell = one_a_loop(Bell)
"""The bell of the running event loop."""
