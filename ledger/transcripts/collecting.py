"""Python's cycle collector rests while a conversation is mended or rendered.

A repair makes hundreds of thousands of small values that live to its end and form no cycle. The
collector walks all of them again and again, so that ten times the messages cost sixteen times as
much. Reference counts free everything afterwards. Several threads may be here at once: the last to
leave wakes the collector, and in an endless overlap every eighth to leave does. Whoever had
switched it off before finds it off.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

OVERLAPS_MAX = 8
"""After so many ends without a pause the collector is woken though somebody is still at work."""


class _Rest:
    """Who is at work, and whether it was we who put the collector to rest."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.at_work = self.ended = 0
        self.is_ours = False

    def begin(self) -> None:
        with self.lock:
            self.at_work += 1
            if self.at_work == 1 and gc.isenabled():
                gc.disable()
                self.is_ours, self.ended = True, 0

    def end(self) -> None:
        with self.lock:
            self.at_work -= 1
            self.ended += 1
            if self.is_ours and (self.at_work == 0 or self.ended >= OVERLAPS_MAX):
                gc.enable()
                self.is_ours = False


_REST = _Rest()


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """The collector does not run inside, unless others overlap without end."""
    _REST.begin()
    try:
        yield
    finally:
        _REST.end()
