"""Who waits in one event loop, and for what; one of a kind for each loop."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from uuid import UUID

T = TypeVar("T")


class Listeners:
    """Events of those who wait, by the id of what they wait for."""

    def __init__(self) -> None:
        self._events: dict[UUID, set[asyncio.Event]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._events.values()))

    @property
    def ids(self) -> list[UUID]:
        """What is waited for."""
        return list(self._events)

    @contextmanager
    def waiting(self, id_: UUID) -> Iterator[asyncio.Event]:
        """An event that is set when this one wakes, from now on."""
        woken = asyncio.Event()
        self._events.setdefault(id_, set()).add(woken)
        try:
            yield woken
        finally:
            events = self._events[id_]
            events.discard(woken)
            if not events:
                del self._events[id_]

    def wake(self, ids: Iterable[UUID]) -> None:
        """Wake who waits for one of these."""
        for id_ in ids:
            for woken in self._events.get(id_, ()):
                woken.set()

    def wake_all(self) -> None:
        """Wake everybody, where nobody knows whom it concerns."""
        self.wake(self._events)


def one_a_loop(make: Callable[[], T]) -> Callable[[], T]:
    """A function that gives the same one to all who ask from the same running event loop."""
    made: dict[asyncio.AbstractEventLoop, T] = {}

    def of_the_running_loop() -> T:
        loop = asyncio.get_running_loop()
        if loop not in made:
            made[loop] = make()
        return made[loop]

    return of_the_running_loop
