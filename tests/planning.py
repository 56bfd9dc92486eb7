"""Statements that every test asks are planned once a connection."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import ClientCursor

_prepared: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def planned_once(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """For `execute_wrapper`: a statement is planned again only when its tables have changed.

    Planning the invariants takes longer than asking them of the few rows of a test.
    """
    connection = context["cursor"].connection
    text = ClientCursor(connection).mogrify(sql, params)
    names = _prepared.setdefault(connection, {})
    if text not in names:
        name = f"planned_{len(names)}"
        execute(f"PREPARE {name} AS {text}", None, many, context)
        names[text] = name
    return execute(f"EXECUTE {names[text]}", None, many, context)
