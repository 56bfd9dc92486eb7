"""Running several threads at once, each with a connection of its own, from one starting line."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

T = TypeVar("T")


def at_once(acts: Sequence[Callable[[], T]], *, limit_s: float = 30.0) -> list[T | Exception]:
    """Run all acts from one barrier; each answer is what its act returned or raised."""
    line = threading.Barrier(len(acts))

    def run(act: Callable[[], T]) -> T | Exception:
        try:
            connection.ensure_connection()
            line.wait(timeout=limit_s)
            return act()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts, timeout=limit_s))


def with_own_connection(act: Callable[[], T]) -> Callable[[], T]:
    """The act as a thread may run it: its connection is closed at the end."""

    def run() -> T:
        try:
            return act()
        finally:
            connection.close()

    return run
