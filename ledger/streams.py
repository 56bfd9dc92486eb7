"""Event streams that stay open: how many one holder, and one web, may have; waiting in one."""

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class Streams:
    """The open streams of one kind in this web, by whoever holds them."""

    def __init__(self, *, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._open: dict[Hashable, int] = {}

    def bound_reached(self, holder: Hashable) -> tuple[int, int] | None:
        """How many are open and how many may be, where this holder can open no more."""
        own, every = self._open.get(holder, 0), sum(self._open.values())
        if own >= self._most_each:
            return own, self._most_each
        return (every, self._most) if every >= self._most else None

    @contextmanager
    def counted(self, holder: Hashable) -> Iterator[None]:
        """Count one more stream of this holder, for as long as it is open."""
        self._open[holder] = self._open.get(holder, 0) + 1
        try:
            yield
        finally:
            self._open[holder] -= 1
            if not self._open[holder]:
                del self._open[holder]


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event is set before so many seconds are over."""
    try:
        await asyncio.wait_for(event.wait(), timeout=seconds)
    except TimeoutError:
        return False
    return True
