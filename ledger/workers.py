"""Workers: who executes, and whether it lives (reliability, section 5).

A worker holds a session advisory lock on its own connection for life; the kernel closes the
connection when the process dies, and the lock is free. A server that restarted has lost all
locks, so a free lock proves death only if it was taken after the server started.
"""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from ledger import ids
from ledger.models import Worker
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import FenceKind

LOCK_CLASS = 0x436C6872  # "Clhr": the first half of the advisory lock's key

MAY_LIVE = (
    "(w.locked_at <= pg_postmaster_start_time() OR EXISTS ("
    "SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted "
    "AND l.classid = %s AND l.objid = w.number AND l.objsubid = 2 "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())))"
)
"""Whether nothing proves the worker `w` dead; its parameter is LOCK_CLASS.

After a restart of the server an idle worker takes its lock again with its next call, not before.
"""


@dataclass(frozen=True, slots=True)
class Holder:
    """The worker that a process is: its row's id and the number of its lock."""

    id: UUID
    number: int
    fence_kind: FenceKind


def register(*, name: str, queues: Sequence[str], slots: int, fence_kind: FenceKind) -> Holder:
    """Write the worker's row and take its lock on this connection, for life."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('ledger_worker_number')")
        number = cursor.fetchone()[0]
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", [LOCK_CLASS, number])
    worker = Worker.objects.create(
        id=ids.new(),
        number=number,
        name=name,
        host=socket.gethostname(),
        pid=os.getpid(),
        queues=list(queues),
        slots=slots,
        fence_kind=fence_kind,
    )
    return Holder(worker.id, number, fence_kind)


def seen(holder: Holder) -> None:
    """Say that the worker lives; take its lock again if the connection was lost meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted "
            "AND classid = %s AND objid = %s AND pid = pg_backend_pid())",
            [LOCK_CLASS, holder.number],
        )
        locked = cursor.fetchone()[0]
        if not locked:
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [LOCK_CLASS, holder.number])
    changes: dict[str, Any] = {"seen_at": ClockTimestamp()}
    if not locked:
        # A cut connection looked like a death; whoever takes its lock again lives.
        changes |= {"locked_at": ClockTimestamp(), "stopped_at": None, "stopped_as": ""}
    Worker.objects.filter(id=holder.id).update(**changes)


def retire(holder: Holder) -> None:
    """End the worker in good order and give its lock back."""
    Worker.objects.filter(id=holder.id).update(stopped_at=ClockTimestamp(), stopped_as="retired")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCK_CLASS, holder.number])


def dead() -> list[UUID]:
    """The workers whose lock is free although this server has run since they took it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT w.id FROM ledger_worker w WHERE w.stopped_at IS NULL "  # noqa: S608 a constant of this module
            f"AND NOT {MAY_LIVE}",
            [LOCK_CLASS],
        )
        return [row[0] for row in cursor.fetchall()]


def bury(worker_ids: Sequence[UUID]) -> None:
    """Write that these workers are gone."""
    Worker.objects.filter(id__in=worker_ids, stopped_at__isnull=True).update(
        stopped_at=ClockTimestamp(), stopped_as="lost"
    )
