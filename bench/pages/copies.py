"""Sessions copied by the ten thousand, with everything that belongs to them.

The rows of a few sessions, each made by the verbs, are repeated by one statement a table: ids
are counted on, instants moved into the past, keys told apart. Triggers and foreign keys rest
meanwhile, and indices that no constraint needs are made anew at the end; hash chains of copies
do not verify, which no page asks for.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, models
from psycopg import sql

from ledger.models import (
    Attempt,
    Delivery,
    Event,
    Evidence,
    Fetch,
    Handle,
    Interrupt,
    Message,
    Offer,
    Result,
    Session,
    ToolCall,
    Turn,
    TurnEvent,
)
from recovery.models import (
    Incident,
    Repeat,
    Resolution,
    ResolutionEvent,
    ResolutionEvidence,
    Step,
)

# The time of an id is moved as its row is; its number replaces digits that nobody reads.
COPIED_ID = """
CREATE OR REPLACE FUNCTION pg_temp.copied(id uuid, number bigint, ms bigint) RETURNS uuid
LANGUAGE sql IMMUTABLE AS $$
SELECT (lpad(to_hex(('x' || substr(id::text, 1, 8) || substr(id::text, 10, 4))::bit(48)::bigint
        - ms), 12, '0') || substr(id::text, 15, 4) || substr(id::text, 20, 1)
        || lpad(to_hex(number), 8, '0') || right(id::text, 7))::uuid $$
"""
OF_CALLS = "SELECT id FROM ledger_toolcall WHERE session_id = ANY(%(sessions)s)"
OF_TURNS = "SELECT id FROM ledger_turn WHERE session_id = ANY(%(sessions)s)"
OF_INCIDENTS = f"SELECT id FROM recovery_incident WHERE call_id IN ({OF_CALLS})"  # noqa: S608 constants of ours
OF_RESOLUTIONS = f"SELECT id FROM recovery_resolution WHERE call_id IN ({OF_CALLS})"  # noqa: S608 constants of ours
TABLES: dict[type[models.Model], str] = {
    Session: "id = ANY(%(sessions)s)",
    Turn: "session_id = ANY(%(sessions)s)",
    TurnEvent: f"turn_id IN ({OF_TURNS})",
    Message: "session_id = ANY(%(sessions)s)",
    ToolCall: "session_id = ANY(%(sessions)s)",
    **dict.fromkeys(
        (Attempt, Event, Result, Delivery, Fetch, Evidence, Handle, Interrupt, Incident, Repeat,
         Resolution),
        f"call_id IN ({OF_CALLS})",
    ),
    Offer: "session_id = ANY(%(sessions)s)",
    Step: f"incident_id IN ({OF_INCIDENTS})",
    ResolutionEvent: f"resolution_id IN ({OF_RESOLUTIONS})",
    ResolutionEvidence: f"resolution_id IN ({OF_RESOLUTIONS})",
}  # fmt: skip
"""What belongs to a session, and how its rows are found."""

UNIQUE_TEXTS = {"idempotency_key", "effect_key", "template_key", "key", "id"}
UNIQUE_BYTES = {"value_hmac"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """So many copies of each of these sessions, evenly over the past; `first` is their number."""

    sessions: Sequence[UUID]
    copies: int
    over: timedelta
    first: int = 1


def make(batches: Sequence[Batch], url: str) -> None:
    """Copy, make the indices anew, and count. `url` is the superuser's."""
    with closing(psycopg.connect(url, autocommit=True)) as link:
        link.execute("SET session_replication_role = replica")
        link.execute("SET maintenance_work_mem = '1GB'")
        link.execute("SET synchronous_commit = off")
        link.execute(COPIED_ID)
        indices = _taken_away(link)
        for batch in batches:
            _copy(link, batch)
        for index in indices:
            link.execute(index)
        link.execute("VACUUM ANALYZE")


def _taken_away(link: "psycopg.Connection[Any]") -> list[Any]:
    """Drop the indices that serve no constraint; the statements that make them again."""
    found = link.execute(
        "SELECT indexname, indexdef FROM pg_indexes i WHERE schemaname = 'public' "
        "AND tablename = ANY(%s) AND NOT EXISTS (SELECT FROM pg_constraint c "
        "WHERE c.conindid = format('%%I', indexname)::regclass)",
        [[each._meta.db_table for each in TABLES]],
    ).fetchall()
    for name, _ in found:
        link.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    return [sql.SQL(definition) for _, definition in found]


def _copy(link: "psycopg.Connection[Any]", batch: Batch) -> None:
    asked = {
        "sessions": list(batch.sessions),
        "first": batch.first,
        "last": batch.first + batch.copies - 1,
        "ms": int(batch.over / timedelta(milliseconds=1) / batch.copies),
    }
    for model, where in TABLES.items():
        columns = {field.column: _copied(field) for field in _fields(model)}
        names = ", ".join(f'"{name}"' for name in columns)
        table = model._meta.db_table
        link.execute(
            f"CREATE TEMP TABLE original AS SELECT * FROM {table} WHERE {where}",  # noqa: S608 names of our own models
            asked,
        )
        # The oldest first, as an installation would have written them: block ranges rest on it.
        link.execute(
            f"INSERT INTO {table} ({names}) SELECT {', '.join(columns.values())} "  # noqa: S608 names of our own models
            "FROM (SELECT number, (number - %(first)s + 1) * %(ms)s::bigint AS ms "
            "FROM generate_series(%(last)s::bigint, %(first)s::bigint, -1) number) copy, "
            "LATERAL (SELECT * FROM original WHERE copy.number > 0) original",
            asked,
        )
        link.execute("DROP TABLE original")


def _fields(model: type[models.Model]) -> "list[models.Field[Any, Any]]":
    left_out = (models.AutoField, models.GeneratedField, models.CompositePrimaryKey)
    return [each for each in model._meta.concrete_fields if not isinstance(each, left_out)]


def _copied(field: "models.Field[Any, Any]") -> str:
    """What a column of a copy holds, as an expression over the `original` and its `copy`."""
    column = f'original."{field.column}"'
    owner = field.related_model or field.model
    if owner in TABLES and _is_an_id(field) and _type_of(field) == "uuid":
        return f"pg_temp.copied({column}, copy.number, copy.ms)"
    if isinstance(field, models.DateTimeField):
        return f"{column} - copy.ms * interval '1 millisecond'"
    if field.name in UNIQUE_TEXTS and _type_of(field).startswith(("varchar", "text")):
        return f"CASE {column} WHEN '' THEN '' ELSE {column} || '-' || copy.number END"
    if field.name in UNIQUE_BYTES:
        return f"sha256({column} || int8send(copy.number))"
    return column


def _is_an_id(field: "models.Field[Any, Any]") -> bool:
    return field.primary_key or field.related_model is not None


def _type_of(field: "models.Field[Any, Any]") -> str:
    return field.db_type(connection) or ""
