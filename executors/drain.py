"""Draining: a worker that is told to stop claims nothing more and loses nothing (reliability, 6).

What has not crossed is given back with the event `released` and spends no budget; what has
crossed may end within the grace. The main is told by its signal and tells its pool children by
another; the engines of its threads are in the same process. Nothing here waits.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

GRACE_S = 15.0
"""How long reads may go on; less than the soft shutdown, so that the rest is given back in time."""

TOLD_BY = signal.SIGUSR2

_begun = False


def is_on() -> bool:
    """Whether this process shall claim nothing more."""
    return _begun


def listen() -> None:
    """Let a pool child hear its main. An attempt forked from it does not act on the signal."""
    signal.signal(TOLD_BY, lambda *_: begin())


def begin() -> None:
    """Claim nothing more from now on. Safe in a signal's handler."""
    global _begun
    _begun = True


def children() -> list[int]:
    """The pool children of this main: all that it has forked."""
    found = Path("/proc/self/task").glob("*/children")
    return [int(pid) for each in found for pid in each.read_text().split()]


def tell(pids: Iterable[int], engines: Iterable[Callable[[], None]]) -> None:
    """Begin to drain here, in these pool children and in these engines; return at once."""
    begin()
    for pid in pids:
        try:
            os.kill(pid, TOLD_BY)
        except ProcessLookupError:
            continue  # it has just ended by itself
    for drain in engines:
        threading.Thread(target=drain, daemon=True).start()
