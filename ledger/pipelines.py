"""Statements that travel together: one piece out, one answer back.

Inside `pipelined()` what is written waits, and goes out at its end in one flush: the beginning
of the transaction before it and, if asked, its commit behind it. A round trip and two switches
of threads for each statement would cost more than the statements do (decision 0015).

This speaks libpq's pipeline mode over Django's own connection. It must never leave a connection
with answers unread: whatever breaks in between closes it, and the server rolls back.
"""

import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import Buffer, PGconn, PGresult

PREPARED_MAX = 200
"""Statements planned once on each connection; more kinds than that are planned at each use.

Zero behind a connection pooler that cannot keep them (decision 0013).
"""


class Statement(NamedTuple):
    """A statement as the server takes it."""

    text: bytes
    values: Sequence[Buffer | None]
    types: tuple[int, ...]
    formats: Sequence[Format]


class Line:
    """What is prepared on one connection, and what waits to be sent over it."""

    def __init__(self, line: "psycopg.Connection[Any]") -> None:
        self.pgconn: PGconn = line.pgconn
        self.adapter = Transformer(line)
        self.waiting: list[Statement] | None = None
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}

    def statement(self, text: str, parameters: Sequence[Any]) -> Statement:
        """Bind the parameters."""
        values = self.adapter.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        return Statement(
            _numbered(text), values, self.adapter.types or (), self.adapter.formats or ()
        )

    def send(self, statements: Sequence[Statement], *, begin: bool, commit: bool) -> PGresult:
        """Send them in one piece; gives the last one's answer. Raises the first one's error."""
        names = [self._prepared(each) for each in statements]
        self.pgconn.enter_pipeline_mode()
        if begin:
            self.pgconn.send_query_params(b"BEGIN", None)
        for name, (text, values, types, formats) in zip(names, statements, strict=True):
            if name:
                self.pgconn.send_query_prepared(name, values, formats)
            else:
                self.pgconn.send_query_params(text, values, types, formats)
        if commit:
            self.pgconn.send_query_params(b"COMMIT", None)
        self.pgconn.pipeline_sync()
        answers = _answers(self.pgconn)
        self.pgconn.exit_pipeline_mode()
        _raise_first(answers)
        return answers[-2 if commit else -1]

    def _prepared(self, statement: Statement) -> bytes:
        """The name under which the server knows a statement; empty if it must see the text."""
        key = (statement.text, statement.types)
        if key not in self._names and len(self._names) < PREPARED_MAX:
            name = b"clearhouse_%d" % len(self._names)
            _raise_first([self.pgconn.prepare(name, *key)])
            self._names[key] = name
        return self._names.get(key, b"")


def _answers(pgconn: PGconn) -> list[PGresult]:
    """Send what is queued and read until the pipeline's end, without holding up other threads."""
    answers: list[PGresult] = []
    poll = select.poll()
    while True:
        left = pgconn.flush()
        poll.register(pgconn.socket, select.POLLIN | (select.POLLOUT if left else 0))
        poll.poll()
        pgconn.consume_input()
        while not pgconn.is_busy():
            answer = pgconn.get_result()
            if answer is None:
                continue  # the end of one statement's answers
            if answer.status == ExecStatus.PIPELINE_SYNC:
                return answers
            answers.append(answer)


def _raise_first(answers: Sequence[PGresult]) -> None:
    for answer in answers:
        if answer.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(answer)


@lru_cache(maxsize=1024)
def _numbered(text: str) -> bytes:
    """The text with `$1`, `$2` for each `%s`, as PostgreSQL numbers parameters."""
    first, *parts = text.split("%s")
    return (first + "".join(f"${n}{part}" for n, part in enumerate(parts, 1))).encode()


_lines: "WeakKeyDictionary[psycopg.Connection[Any], Line]" = WeakKeyDictionary()


def _line() -> tuple[Line, BaseDatabaseWrapper]:
    """This thread's line. A pool hands connections from thread to thread, so nobody keeps it."""
    database = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    known = _lines.get(database.connection)
    if known is None:
        known = _lines[database.connection] = Line(database.connection)
    return known, database


def _send(
    line: Line,
    database: BaseDatabaseWrapper,
    statements: Sequence[Statement],
    *,
    commit: bool = False,
) -> PGresult:
    idle = line.pgconn.transaction_status == TransactionStatus.IDLE
    begin = database.in_atomic_block and idle
    if database.queries_logged:
        database.queries_log.extend({"sql": s.text.decode(), "time": ""} for s in statements)
    with database.wrap_database_errors:
        try:
            return line.send(statements, begin=begin, commit=commit)
        except psycopg.Error:
            raise
        except BaseException:
            database.connection.close()  # its answers would be taken for the next one's
            raise


def rows(text: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of one statement, in one round trip, the transaction's beginning included.

    `text` has `%s` for each parameter and no other percent sign.
    """
    line, database = _line()
    answer = _send(line, database, [line.statement(text, parameters)])
    line.adapter.set_pgresult(answer)
    return line.adapter.load_rows(0, answer.ntuples, tuple)


def write(text: str, parameters: Sequence[Any]) -> None:
    """Run a statement whose rows nobody reads; inside `pipelined()`, at its end."""
    line, database = _line()
    statement = line.statement(text, parameters)
    if line.waiting is None:
        _send(line, database, [statement])
    else:
        line.waiting.append(statement)


@contextmanager
def pipelined(*, commit: bool = False) -> Iterator[None]:
    """Send together what is written inside; with `commit`, the transaction ends with it.

    Reads inside go before what waits. `commit` is for the last act of a transaction, and counts
    only where no other transaction encloses it; an error leaves the whole undone in any case.
    """
    line, database = _line()
    waiting: list[Statement] = []
    line.waiting = waiting
    try:
        yield
    finally:
        line.waiting = None
    if waiting:
        outermost = len(database.atomic_blocks) == 1
        _send(line, database, waiting, commit=commit and outermost)
