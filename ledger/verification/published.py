"""Whether the tables that PostgreSQL's guards read are still those of `ledger/machine.py`."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ledger.verification.shapes import Check


def agrees(table: str, columns: Sequence[str], rows: Callable[[], Iterable[Any]]) -> Check:
    """A check that a published table holds exactly these rows, by a digest over the sorted rows."""
    lines = sorted("|".join(_text(getattr(row, name)) for name in columns) for row in rows())
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    line = ", ".join(f"coalesce({name}::text, '')" for name in columns)
    return Check(
        f"SELECT NULL::uuid AS call_id, '{table}' AS differs_from_the_machine, count(*) AS rows "  # noqa: S608 names of our own
        f"FROM (SELECT concat_ws('|', {line}) AS line FROM {table}) p HAVING "
        "encode(sha256(convert_to(coalesce(string_agg(line, E'\\n' ORDER BY line COLLATE \"C\"), "
        f"''), 'UTF8')), 'hex') <> '{digest}'"
    )


def _text(value: Any) -> str:
    """A value as PostgreSQL casts it to text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "{" + ",".join(value) + "}"
    return "" if value is None else str(value)
