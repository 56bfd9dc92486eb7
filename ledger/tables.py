"""Rows of parameters as a table in a statement.

A few rows go as VALUES, many as one array for each column: the first is cheaper for one row,
the second keeps the statement's text the same for any number of rows.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

FEW = 3
Columns = tuple[tuple[str, str], ...]


@lru_cache(maxsize=1024)
def _text(columns: Columns, rows: int) -> str:
    names = ", ".join(name for name, _ in columns)
    if rows:
        row = "(" + ", ".join(f"%s::{sql_type}" for _, sql_type in columns) + ")"
        return f"(VALUES {', '.join([row] * rows)}) AS v({names})"
    arrays = ", ".join(f"%s::{sql_type}[]" for _, sql_type in columns)
    return f"unnest({arrays}) AS v({names})"


def table(columns: Columns, rows: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    """The text of a table `v` with these (name, SQL type) columns, and its parameters in order."""
    if len(rows) <= FEW:
        return _text(columns, len(rows)), [value for row in rows for value in row]
    return _text(columns, 0), [list(column) for column in zip(*rows, strict=True)]
