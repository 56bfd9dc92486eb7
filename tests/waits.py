"""Waiting for a named condition, with a limit: what tests do instead of sleeping."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import connection

T = TypeVar("T")


def until(condition: Callable[[], T], *, what: str, limit_s: float = 10.0) -> T:
    """Ask until the answer is truthy, and return it. Raises TimeoutError naming `what`."""
    ends = time.monotonic() + limit_s
    while not (answer := condition()):
        if time.monotonic() >= ends:
            raise TimeoutError(f"Waited {limit_s:g} s for {what}, and it did not come.")
        time.sleep(0.01)
    return answer


def until_blocked(pid: int, *, by: int | None = None, limit_s: float = 5.0) -> None:
    """Wait until the server process `pid` waits for a lock (of the process `by`, if given)."""

    def is_blocked() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_blocking_pids(%s)", [pid])
            blockers = cursor.fetchone()[0]
        return bool(blockers) and (by is None or by in blockers)

    until(is_blocked, what=f"server process {pid} to wait for a lock", limit_s=limit_s)


def backend_pid() -> int:
    """The server process of this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def until_the_older_have_ended(limit_s: float = 60.0) -> None:
    """Wait for every transaction of the server that has begun to write by now.

    Other databases count too: a feed is held back by whatever runs beside the tests.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        present = cursor.fetchone()[0]

        def has_passed() -> bool:
            cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
            return bool(cursor.fetchone()[0] >= present)

        until(has_passed, what="the older transactions to end", limit_s=limit_s)
