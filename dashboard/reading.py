"""Bounded reads for pages that watch: one statement, two seconds, never a page that hangs.

A tile that cannot be read in time fails alone: the page says so in its place and draws the rest.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import DatabaseError, connection, transaction

T = TypeVar("T")
LIMIT_MS = 2_000

Row = tuple[Any, ...]


@contextmanager
def bounded(limit_ms: int | None = None) -> Iterator[Any]:
    """A transaction whose statements may take this long, in milliseconds, and write nothing."""
    is_within_another = connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, true)", [f"{limit_ms or LIMIT_MS}ms"]
        )
        yield cursor
        if is_within_another:  # whose end alone ends the setting
            cursor.execute("SELECT set_config('statement_timeout', '15s', true)")


def rows(sql: str, parameters: dict[str, Any]) -> Sequence[Row]:
    """All rows of a statement, read within its bound. Raises DatabaseError."""
    with bounded() as cursor:
        cursor.execute(sql, parameters)
        found: Sequence[Row] = cursor.fetchall()
        return found


def or_none(read: Callable[[], T]) -> T | None:
    """What a read brings, or None where the database did not answer in time."""
    try:
        return read()
    except DatabaseError:
        return None
