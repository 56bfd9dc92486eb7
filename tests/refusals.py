"""Expecting PostgreSQL itself to refuse a statement."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

CHECK, UNIQUE, FOREIGN_KEY, PROTECTED = "23514", "23505", "23503", "P0001"


@contextmanager
def refused_by_postgresql(sqlstate: str) -> Iterator[None]:
    """The statement inside must fail with this SQLSTATE; the transaction around it goes on."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        yield
    assert getattr(caught.value.__cause__, "sqlstate", None) == sqlstate, caught.value


def sql(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run one statement and return its rows, if it has any."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []
