"""Who executes, whether it lives, and whether the sweeps run: of the whole installation.

Workers belong to no workspace. What they hold is counted over all of them, and listed by name
nowhere: a count tells nothing that another workspace may not know.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from dashboard import reading
from ledger.vocabulary import FenceKind
from ledger.workers import LOCK_CLASS
from recovery import health

SHOWN = 100
DAY = timedelta(hours=24)
NEEDED = {"effects": "what may change the outside", "reads": "what only reads",
          "control": "polls, probes and recovery"}  # fmt: skip

# A lock is a proof of life that no clock can spoil.
IS_LOCKED = f"""
EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted
         AND l.classid = {LOCK_CLASS} AND l.objid = w.number AND l.objsubid = 2
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""  # noqa: S608 a constant of ours
HELD = """
(SELECT count(*) FROM ledger_attempt a WHERE a.worker_id = w.id AND a.ended_at IS NULL)::int
"""
# Served by `worker_running`, `attempt_open_of_worker` and, for a day, the block ranges of
# `attempt_by_time`.
SQL = f"""
SELECT w.id, w.name, w.host, w.pid, w.queues, w.slots, w.fence_kind, w.started_at, w.seen_at,
       w.stopped_at, w.stopped_as, {IS_LOCKED}, {HELD},
       coalesce(lost.n, 0)::int
  FROM ledger_worker w LEFT JOIN (
       SELECT worker_id, count(*) AS n FROM ledger_attempt
        WHERE claimed_at > %(since)s AND outcome = 'lost' GROUP BY 1) lost ON lost.worker_id = w.id
 WHERE w.stopped_at IS NULL OR w.stopped_at > %(since)s
 ORDER BY w.stopped_at DESC NULLS FIRST, w.name LIMIT {SHOWN}
"""  # noqa: S608 constants of ours
ALIVE = f"""
SELECT w.queues, w.slots, {HELD} FROM ledger_worker w WHERE w.stopped_at IS NULL AND {IS_LOCKED}
"""  # noqa: S608 constants of ours
SWEEPS = """
SELECT name, swept_at FROM recovery_sweep WHERE swept_at > %(since)s ORDER BY swept_at DESC LIMIT 20
"""


@dataclass(frozen=True, slots=True)
class Listed:
    """One worker as it stands now."""

    id: Any
    name: str
    host: str
    pid: int
    queues: list[str]
    slots: int
    fence_kind: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    stopped_as: str
    is_locked: bool
    held: int
    lost: int

    @property
    def is_alive(self) -> bool:
        """Whether its lock proves that it runs."""
        return self.stopped_at is None and self.is_locked

    @property
    def family(self) -> str:
        """The colour of its state: only one that lives is at work."""
        if self.stopped_at is not None:
            return "failed" if self.stopped_as == "lost" else "closed"
        return "machine" if self.is_locked else "person"

    @property
    def state(self) -> str:
        """Its state in words: what is proved, never what is hoped."""
        if self.stopped_at is not None:
            return {"lost": "lost", "retired": "ended in good order"}.get(self.stopped_as, "ended")
        return "alive" if self.is_locked else "not proved alive"

    @property
    def fence(self) -> str:
        """What ends an attempt that lost its lease."""
        return "kernel" if self.fence_kind == FenceKind.KERNEL else "none"


@dataclass(frozen=True, slots=True)
class Sweeping:
    """One watchdog, when it swept last, and whether that is as it must be."""

    name: str
    swept_at: datetime
    is_late: bool


@dataclass(frozen=True, slots=True)
class Workers:
    """The page. `missing` are queues that nobody serves, each with what waits because of it."""

    workers: list[Listed]
    sweeps: list[Sweeping]
    missing: dict[str, str]
    broker: str
    period_s: float
    silent_s: float = health.SILENT_S

    @property
    def alive(self) -> list[Listed]:
        return [each for each in self.workers if each.is_alive]

    @property
    def is_swept(self) -> bool:
        return any(not each.is_late for each in self.sweeps)

    @property
    def slots(self) -> int:
        return sum(each.slots for each in self.alive)

    @property
    def held(self) -> int:
        return sum(each.held for each in self.alive)


def read(now: datetime) -> Workers:
    """How things stand at `now`. Raises DatabaseError where it cannot be read in time."""
    since = {"since": now - DAY}
    workers = [Listed(*row) for row in reading.rows(SQL, since)]
    swept = reading.rows(SWEEPS, since)
    served = {queue for each in workers if each.is_alive for queue in each.queues}
    late = now - timedelta(seconds=health.SILENT_S)
    return Workers(
        workers=workers,
        sweeps=[Sweeping(name, at, at < late) for name, at in swept],
        missing=_missing(served),
        broker=health.check().get("broker", "away"),
        period_s=settings.ENVIRONMENT.sweep_s,
    )


def _missing(served: Collection[str]) -> dict[str, str]:
    return {queue: what for queue, what in NEEDED.items() if queue not in served}


@dataclass(frozen=True, slots=True)
class Alive:
    """How many workers live, and how many of their slots are taken."""

    workers: int
    held: int
    slots: int
    missing: dict[str, str]


def alive() -> Alive:
    """The workers that live now, in one statement. Raises DatabaseError out of time."""
    found = reading.rows(ALIVE, {})
    served = {queue for queues, *_ in found for queue in queues}
    return Alive(
        workers=len(found),
        held=sum(held for *_, held in found),
        slots=sum(slots for _, slots, _ in found),
        missing=_missing(served),
    )
