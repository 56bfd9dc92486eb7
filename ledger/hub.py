"""Those who wait for a call in this process are woken, not polled: one LISTEN connection for all.

A notice wakes whoever waits for its call; they look into the ledger themselves. When the
connection is made anew, everybody is woken once, for what may have been missed meanwhile.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection

from ledger import waiting
from ledger.listeners import Listeners, one_a_loop

OPENS_S = 0.5  # longer, and a database that is away would be told too late

log = logging.getLogger(__name__)


class News:
    """Calls that something happened to since it was last asked; all, where some may be missed."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self._ids: set[UUID] = set()
        self._missed = False

    def add(self, call_id: UUID | None) -> None:
        """Note a call, or with None that notices may have been missed."""
        if call_id is None:
            self._missed = True
        else:
            self._ids.add(call_id)
        self.came.set()

    def take(self) -> set[UUID] | None:
        """What was noted, which is forgotten with that; None where it may not be all."""
        ids, missed = self._ids, self._missed
        self._ids, self._missed = set(), False
        self.came.clear()
        return None if missed else ids


class Hub:
    """The waiters of one event loop."""

    def __init__(self) -> None:
        self._waiters = Listeners()
        self._listeners: set[News] = set()
        self._listening: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    @contextlib.asynccontextmanager
    async def waiter(self, call_id: UUID) -> AsyncIterator[asyncio.Event]:
        """An event that is set when something happened to the call; look first, then wait."""
        if not self._ready.is_set():
            await self._begin()
        with self._waiters.waiting(call_id) as woken:
            yield woken

    @contextlib.asynccontextmanager
    async def listener(self) -> AsyncIterator[News]:
        """News of whatever call, for one who finds out itself which of them matter."""
        news = News()
        self._listeners.add(news)
        if not self._ready.is_set():
            await self._begin()
        try:
            yield news
        finally:
            self._listeners.discard(news)

    async def _begin(self) -> None:
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen())
        # Waiting before the channel is open could miss the only notice.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), timeout=OPENS_S)

    def wake(self, call_id: UUID) -> None:
        """Wake those who wait for this call."""
        self._waiters.wake((call_id,))
        for news in self._listeners:
            news.add(call_id)

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_once()
            except (psycopg.Error, OSError) as error:
                log.warning("hub.database_away error=%s", type(error).__name__)
            self._ready.clear()
            await asyncio.sleep(0.2)

    async def _listen_once(self) -> None:
        """Listen until the connection is lost. The loop itself watches the socket."""
        loop = asyncio.get_running_loop()
        line = await asyncio.to_thread(_open)
        lost = asyncio.Event()
        socket = line.fileno()  # asked of a lost connection, it would raise
        loop.add_reader(socket, self._read, line, lost)
        try:
            self._ready.set()
            self._waiters.wake_all()
            for news in self._listeners:
                news.add(None)
            await lost.wait()
        finally:
            loop.remove_reader(socket)
            line.close()

    def _read(self, line: "psycopg.Connection[Any]", lost: asyncio.Event) -> None:
        try:
            line.pgconn.consume_input()
            while (notice := line.pgconn.notifies()) is not None:
                for call_id in waiting.ids_in(notice.extra.decode()):
                    self.wake(call_id)
        except psycopg.Error:
            lost.set()


def _open() -> "psycopg.Connection[Any]":
    line = psycopg.connect(**_parameters(), autocommit=True)
    line.execute(f"LISTEN {waiting.CHANNEL}")
    return line


def _parameters() -> dict[str, Any]:
    parameters = connection.get_connection_params()
    known = ("dbname", "user", "password", "host", "port", "connect_timeout", "keepalives_idle",
             "keepalives_interval", "keepalives_count", "tcp_user_timeout")  # fmt: skip
    return {name: parameters[name] for name in known if parameters.get(name)}


hub = one_a_loop(Hub)
"""The hub of the running event loop."""
