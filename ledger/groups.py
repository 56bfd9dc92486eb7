"""Group commit without a timer: what arrives during one commit is the next batch.

`Group(write)` hands whatever is waiting to `write(list)` and gives each caller the outcome of
its own row: a value, or an exception for that row alone. At low load a batch is one row, so
nothing waits for company; under load a commit is shared (docs/decisions/0004). If a whole batch
fails, its rows are tried one by one, so that a bad row fails alone. `write` must bear being
repeated: a commit whose answer was lost may have been made.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from django.db import InterfaceError, OperationalError, connection

from ledger.transactions import may_be_repeated

Row = TypeVar("Row")
Answer = TypeVar("Answer")
AnyFuture = Future[Any] | asyncio.Future[Any]
Waiting = tuple[Any, AnyFuture]


def _give(answered: Iterable[tuple[AnyFuture, Any]]) -> None:
    for future, answer in answered:
        if future.done():
            continue  # who asked has gone away
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


class Group(Generic[Row, Answer]):
    """One thread with one connection that writes in groups of at most `largest` rows.

    `linger_s` is for rows that nobody waits for: so long a first row waits for company.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Row]], Sequence[Answer | Exception]],
        *,
        name: str,
        largest: int = 64,
        linger_s: float = 0.0,
    ) -> None:
        self._write = write
        self._linger_s = linger_s
        self._name = name
        self._largest = largest
        self._waiting: SimpleQueue[Waiting | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._start = threading.Lock()

    def submit(self, row: Row) -> "Future[Answer]":
        """Queue one row; the future ends after the commit that carries it."""
        future: Future[Answer] = Future()
        self._put(row, future)
        return future

    def ask(self, row: Row) -> "asyncio.Future[Answer]":
        """As `submit`, for one who waits in the running event loop.

        A loop is woken once for all its rows of a commit, not once for each.
        """
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._put(row, future)
        return future

    def _put(self, row: Row, future: "AnyFuture") -> None:
        self._waiting.put((row, future))
        if self._thread is None:
            self._begin()

    def _begin(self) -> None:
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Write what is waiting and end the thread."""
        with self._start:
            if self._thread is not None:
                self._waiting.put(None)
                self._thread.join()
                self._thread = None

    def _run(self) -> None:
        try:
            while batch := self._next_batch():
                self._answer(batch)
        finally:
            connection.close()

    def _next_batch(self) -> list["Waiting"]:
        first = self._waiting.get()
        if first is None:
            return []
        if self._linger_s:
            time.sleep(self._linger_s)
        batch = [first]
        while len(batch) < self._largest and not self._waiting.empty():
            following = self._waiting.get()
            if following is None:
                self._waiting.put(None)
                break
            batch.append(following)
        return batch

    def _answer(self, batch: list["Waiting"]) -> None:
        answers = self._attempt([row for row, _ in batch])
        in_loops: dict[asyncio.AbstractEventLoop, list[tuple[AnyFuture, Any]]] = {}
        for (_, future), answer in zip(batch, answers, strict=True):
            if isinstance(future, Future):
                _give([(future, answer)])
            else:
                in_loops.setdefault(future.get_loop(), []).append((future, answer))
        for loop, answered in in_loops.items():
            with contextlib.suppress(RuntimeError):  # a loop that has ended has nobody waiting
                loop.call_soon_threadsafe(_give, answered)

    def _attempt(self, rows: list[Row]) -> Sequence[Any]:
        try:
            return self._written(rows)
        except Exception as error:
            if len(rows) == 1:
                return [error]
            return [self._attempt([row])[0] for row in rows]

    def _written(self, rows: list[Row]) -> Sequence[Any]:
        """Write; once more on a new connection where the old one was lost."""
        had_line = connection.connection is not None
        try:
            return self._write(rows)
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if not (had_line and may_be_repeated(error)):
                raise
            return self._write(rows)
