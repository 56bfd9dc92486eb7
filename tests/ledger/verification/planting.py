"""Plants rows that the triggers would refuse, and says which invariants notice."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from ledger.models import ToolCall
from ledger.verification import verify

RECHAIN = """DO $$ DECLARE e ledger_event; last bytea := ''; BEGIN
  FOR e IN SELECT * FROM ledger_event WHERE call_id = '{id}' ORDER BY seq LOOP
    e.prev_hash := last;
    last := ledger_event_hash(e);
    UPDATE ledger_event SET prev_hash = e.prev_hash, hash = last
     WHERE call_id = e.call_id AND seq = e.seq;
  END LOOP;
  UPDATE ledger_toolcall SET head_hash = last WHERE id = '{id}';
END $$"""


@contextmanager
def _unguarded() -> Iterator[Any]:
    """A cursor for whose statements no trigger fires."""
    with connection.cursor() as cursor:
        # What is deferred is asked now, while it still holds.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute("SET LOCAL session_replication_role = replica")
        yield cursor
        cursor.execute("SET LOCAL session_replication_role = origin")


def plant(sql: str, *parameters: Any) -> None:
    """Run one statement past all triggers; it must hit at least one row."""
    with _unguarded() as cursor:
        cursor.execute(sql, parameters)
        assert cursor.rowcount > 0, "the statement planted nothing"


def plant_in_chain(call: ToolCall, sql: str, *parameters: Any) -> None:
    """As `plant`, then hash the call's events again, as a forger who knows the chain would."""
    plant(sql, *parameters)
    with _unguarded() as cursor:
        cursor.execute(RECHAIN.format(id=call.id))


def ddl(sql: str) -> None:
    """Change the schema within the test's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(sql)


def trigger(table: str, name: str) -> str:
    """The full name of a trigger that a model names shortly."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass "
            "AND starts_with(tgname, %s)",
            [table, f"pgtrigger_{name}_"],
        )
        return str(cursor.fetchone()[0])


def broken(**options: Any) -> set[str]:
    """The numbers of the invariants that are broken."""
    return {each.number for each in verify(**options)}


def broken_in(call: ToolCall) -> set[str]:
    """The same, after making sure that each violation names this call."""
    violations = verify()
    assert {each.call_id for each in violations} <= {call.id}
    return {each.number for each in violations}
