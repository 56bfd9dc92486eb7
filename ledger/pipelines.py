"""Statements whose results nobody reads need no round trip each: they travel together.

Inside `pipelined()` a statement waits only where its rows are fetched; the rest, the commit
included, goes out in one piece. An error of an earlier statement may surface at a later one, or
at the commit: nothing of the transaction is kept then, as without it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def pipelined() -> Iterator[None]:
    """Send statements without waiting for each answer; around a transaction, its commit too."""
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield
