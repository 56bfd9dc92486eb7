"""Those who follow a session are woken when it has news: one look for all of them together.

Notices name calls, not sessions, so whatever they name within a moment is looked up in one query,
whoever follows. What nobody gives notice of, progress above all, is found by a slow pass, in one
query too. Without a follower nothing runs; while one waits, it holds no thread and no connection.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import ParamSpec, TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError, close_old_connections

from ledger import feed
from ledger.feed import Place
from ledger.hub import News, hub
from ledger.listeners import Listeners, one_a_loop

GATHER_S = 0.02  # what comes within it shares one query
PASS_S = 2.0  # how late progress may be told

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)


async def asked(look: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Ask the database in a thread, which gives its connection back."""

    def run() -> T:
        try:
            return look(*args, **kwargs)
        finally:
            close_old_connections()

    return await asyncio.to_thread(run)


class Watch:
    """The followers of one event loop, by session."""

    def __init__(self) -> None:
        self._followers = Listeners()
        self._task: asyncio.Task[None] | None = None
        self._since: Place | None = None
        self._next_pass = 0.0

    @contextlib.asynccontextmanager
    async def session(self, session_id: UUID) -> AsyncIterator[asyncio.Event]:
        """An event that is set when the session may have news; look first, then wait."""
        with self._followers.waiting(session_id) as woken:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._run())
            yield woken

    async def _run(self) -> None:
        """Look while anybody follows; what could not be looked up wakes everybody."""
        async with hub().listener() as news:
            while self._followers:
                try:
                    await self._look(news)
                except (OperationalError, InterfaceError) as error:
                    log.warning("watch.database_away error=%s", type(error).__name__)
                    self._followers.wake_all()
                    await asyncio.sleep(PASS_S)

    async def _look(self, news: News) -> None:
        """Wait for news or for the next pass, and wake whom they concern."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.came.wait(), timeout=max(0, self._next_pass - loop.time()))
        await asyncio.sleep(GATHER_S)
        calls, followed = news.take(), self._followers.ids
        if calls is None:
            self._followers.wake_all()
        elif calls:
            self._followers.wake(await asked(feed.sessions_of, list(calls), followed))
        if loop.time() >= self._next_pass:
            await self._pass(followed)
            self._next_pass = loop.time() + PASS_S

    async def _pass(self, followed: list[UUID]) -> None:
        """Wake who follows a session that changed since the last pass."""
        if self._since is None:
            self._since = await asked(feed.now)
        touched, self._since = await asked(feed.touched, followed, self._since)
        self._followers.wake(touched)


watch = one_a_loop(Watch)
"""The watch of the running event loop."""
