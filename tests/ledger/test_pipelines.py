"""Statements travel together, and a pipeline that breaks leaves nothing half done."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from psycopg.pq import TransactionStatus

from ledger import calls, deliveries, settlements
from ledger.pipelines import _numbered, pipelined, rows, write
from ledger.tables import Columns, table
from tests.clearing import begin_anew

pytestmark = pytest.mark.django_db(transaction=True)

INSERT = "INSERT INTO notes (n, text) VALUES (%s, %s)"


@pytest.fixture(autouse=True)
def notes() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE notes (n integer PRIMARY KEY, text text)")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE notes")


def kept() -> list[int]:
    return [n for (n,) in rows("SELECT n FROM notes ORDER BY n", [])]


def status() -> TransactionStatus:
    return TransactionStatus(connection.connection.pgconn.transaction_status)


def together(*statements: tuple[str, list[Any]]) -> None:
    with transaction.atomic(), pipelined(commit=True):
        for text, parameters in statements:
            write(text, parameters)


def test_what_is_written_waits_for_the_end_of_the_pipeline() -> None:
    with transaction.atomic():
        with pipelined():
            write(INSERT, [1, "one"])
            write(INSERT, [2, None])
            assert kept() == []
        assert kept() == [1, 2]
        assert status() is TransactionStatus.INTRANS


def test_the_commit_travels_with_the_last_statement() -> None:
    ran = []
    with transaction.atomic():
        transaction.on_commit(lambda: ran.append(kept()))
        with pipelined(commit=True):
            write(INSERT, [1, "one"])
        assert status() is TransactionStatus.IDLE
    assert ran == [[1]]


def test_an_enclosing_transaction_keeps_its_own_end() -> None:
    with transaction.atomic():
        together((INSERT, [1, "one"]))
        assert status() is TransactionStatus.INTRANS
        transaction.set_rollback(True)
    assert kept() == []


def test_one_refused_statement_undoes_the_whole() -> None:
    with pytest.raises(IntegrityError) as refused:
        together((INSERT, [1, "one"]), (INSERT, [1, "again"]), (INSERT, [2, "two"]))
    assert refused.value.__cause__.sqlstate == "23505"  # type: ignore[union-attr]
    assert kept() == []


def test_what_the_commit_itself_refuses_is_refused() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE notes ADD CONSTRAINT once UNIQUE (text) "
                       "DEFERRABLE INITIALLY DEFERRED")  # fmt: skip
    with pytest.raises(IntegrityError):
        together((INSERT, [1, "same"]), (INSERT, [2, "same"]))
    assert kept() == []


def test_nothing_is_sent_when_the_block_itself_fails() -> None:
    def fails_midway() -> None:
        with transaction.atomic(), pipelined(commit=True):
            write(INSERT, [1, "one"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails_midway()
    write(INSERT, [2, "two"])
    assert kept() == [2]


def test_a_statement_is_still_known_after_a_rollback() -> None:
    for n in (1, 2, 2, 3):
        with transaction.atomic():
            try:
                with transaction.atomic():
                    write(INSERT, [n, "again"])
            except IntegrityError:
                continue
    assert kept() == [1, 2, 3]


def test_a_pipeline_larger_than_every_buffer_goes_through() -> None:
    text = "x" * 100_000
    back = ("SELECT %s || text FROM notes", [text])
    together(*(each for n in range(40) for each in ((INSERT, [n, text]), back)))
    assert kept() == list(range(40))


def test_a_connection_that_is_lost_on_the_way_is_replaced() -> None:
    with pytest.raises(OperationalError):
        together((INSERT, [1, "one"]), ("SELECT pg_terminate_backend(pg_backend_pid())", []))
    connection.close_if_unusable_or_obsolete()
    assert kept() == []


def test_a_wait_that_is_cut_off_leaves_no_answer_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("ledger.pipelines._answers", interrupted)
        with pytest.raises(KeyboardInterrupt):
            rows("SELECT 1", [])
    assert connection.connection.closed
    connection.close()
    assert rows("SELECT 2", []) == [(2,)]


ID: Columns = (("id", "uuid"),)


@pytest.mark.parametrize("size", [1, 64], ids=["one call", "many calls"])
@pytest.mark.parametrize(
    ("text", "columns"),
    [(settlements.END_HELD, ID), (calls.READ, ID), (deliveries.INSERT, deliveries.COLUMNS)],
    ids=["settle", "read", "fetch"],
)
def test_a_plan_made_for_empty_tables_reads_none_of_them_whole(
    text: str, columns: Columns, size: int
) -> None:
    begin_anew()
    values: Sequence[Sequence[None]] = [[None] * len(columns)] * size
    statement = _numbered(text.format(table(columns, values)[0])).decode()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (GENERIC_PLAN) {statement}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan" not in plan


def test_an_unknown_table_is_an_error_of_the_database() -> None:
    with pytest.raises(DatabaseError, match="nowhere"):
        rows("SELECT 1 FROM nowhere", [])
    assert rows("SELECT 1", []) == [(1,)]
