"""Between tests: committed rows are cleared, and what a process remembers is forgotten."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import connection

from ledger import dispatch, keys, pressure, registered
from tests.planning import planned_once

KEPT = ("django_migrations", "django_content_type", "auth_permission",
        "ledger_publishedtransition", "ledger_pair")  # fmt: skip


@cache
def _cleaner() -> Any:
    """A connection in which the triggers rest: those that refuse, and foreign keys.

    Only a superuser may let them rest, and a connection forgets all its plans over it. In the
    tests' own one every test would plan the invariants anew.
    """
    own = connection.copy("cleaner")
    with own.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica; SET lock_timeout = '30s'")
    return own


@contextmanager
def cleaning() -> Iterator[None]:
    """Close the cleaner's connection at the end; nobody may drop a database while it is there."""
    yield
    if _cleaner.cache_info().currsize:
        _cleaner().close()
        _cleaner.cache_clear()


def clear() -> None:
    """Delete what a committing test made, and leave what the migrations published.

    Emptying seventy tables by TRUNCATE takes 200 ms, deleting a few rows of some takes three.
    """
    own = _cleaner()
    with own.cursor() as cursor:
        # A web notes what it answered a moment later: a row may come between look and deletion.
        while filled := _filled(own, cursor):
            cursor.execute("; ".join(f"DELETE FROM {table}" for table in filled))


def _filled(own: Any, cursor: Any) -> list[str]:
    """Which tables hold rows."""
    with own.execute_wrapper(planned_once):
        cursor.execute(_looks())
    return [row[0] for row in cursor.fetchall()]


def begin_anew() -> None:
    """Make every table new to the planner, which remembers rows that were deleted."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(_made())}")


@cache
def _made() -> list[str]:
    with connection.cursor() as cursor:
        names = connection.introspection.table_names(cursor)
    return [name for name in names if name not in KEPT]


@cache
def _looks() -> str:
    return " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in _made()
    )


def forget() -> None:
    """Forget what this process has read and would not read again at once."""
    pressure.forget()
    registered.forget()
    keys.forget()
    dispatch._silent_until = 0.0
