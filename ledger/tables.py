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
    by_column = zip(columns, zip(*rows, strict=True), strict=True)
    return _text(columns, 0), [_array(column, sql_type) for (_, sql_type), column in by_column]


def _array(values: Sequence[Any], sql_type: str) -> Any:
    """PostgreSQL's own text of an array: psycopg would ask for each value's type anew."""
    if sql_type == "bytea":
        return list(values)
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
