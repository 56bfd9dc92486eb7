"""Whether this installation keeps its promises: each asked now, within a bound, with its answer.

A promise is kept, broken, or not known; what could not be asked in time is never called kept. The
invariants take seconds beside a long history, so they are asked when somebody wants them, of what
is open or moved in the last hour; `verify_ledger` asks of everything.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from dashboard import reading, workers
from dashboard.workers import Workers
from executors import fence
from ledger import ids
from ledger.models import ToolCall
from ledger.verification import INVARIANTS, NOT_YET, Violation, verify
from ledger.vocabulary import FenceKind

HOUR = timedelta(hours=1)
VERIFY_MS = 6_000
EFFECTS = "effects"


class Kept(StrEnum):
    """What is known of a promise now."""

    YES = "kept"
    NO = "broken"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise: what it is, whether it is kept, what was seen, and the remedy."""

    name: str
    kept: Kept
    seen: str
    remedy: str = ""

    @property
    def family(self) -> str:
        return {Kept.YES: "well", Kept.NO: "failed", Kept.UNKNOWN: "person"}[self.kept]


@dataclass(frozen=True, slots=True)
class Proof:
    """One invariant, and how many rows break it; None where it could not be asked."""

    number: str
    sentence: str
    broken: int | None
    first: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Promises about one thing."""

    title: str
    promises: list[Promise]


@dataclass(frozen=True, slots=True)
class Readiness:
    """The page. `not_proved` says, by number, what no query proves, and why.

    `proofs` is None where the invariants were not asked.
    """

    groups: list[Group]
    proofs: list[Proof] | None = None
    seconds: float | None = None
    not_proved: dict[str, str] = field(default_factory=lambda: dict(NOT_YET))

    @property
    def broken(self) -> int:
        promises = sum(each.kept is Kept.NO for group in self.groups for each in group.promises)
        return promises + sum(bool(each.broken) for each in self.proofs or ())

    @property
    def first_broken(self) -> str:
        """The first promise that is not kept; empty where all are."""
        promises = (each for group in self.groups for each in group.promises)
        return next((each.name for each in promises if each.kept is Kept.NO), "")

    @property
    def unknown(self) -> int:
        promises = sum(
            each.kept is Kept.UNKNOWN for group in self.groups for each in group.promises
        )
        return promises + sum(each.broken is None for each in self.proofs or ())

    @property
    def sentence(self) -> str:
        """The whole in one sentence."""
        if self.broken:
            return f"{self.broken} broken."
        if self.unknown:
            return f"Nothing is known to be broken; {self.unknown} could not be asked in time."
        if self.proofs is None:
            return "Every promise here is kept. The invariants of the ledger were not asked yet."
        return "Every promise that can be asked is kept."


def read(workspace_id: UUID, now: datetime, *, invariants: bool = False) -> Readiness:
    """Ask at `now`, of the invariants too if wanted; no call of another workspace is named."""
    groups = [
        Group("Database", list(_of_database())),
        Group("Programs", list(_of_programs(now))),
        Group("Bounds", list(_of_bounds(now))),
    ]
    if not invariants:
        return Readiness(groups)
    began = datetime.now(tz=now.tzinfo)
    violations = reading.or_none(lambda: _verified(now - HOUR))
    took = (datetime.now(tz=now.tzinfo) - began).total_seconds()
    return Readiness(
        groups, _proofs(workspace_id, violations), None if violations is None else took
    )


# The database

# What a durable record rests on; each with why anything else breaks it (reliability, section 3).
SETTINGS = {
    "fsync": ("on", "a crash of the machine may lose what was answered as recorded"),
    "full_page_writes": ("on", "a crash of the machine may tear a page"),
    "synchronous_commit": ("on", "an answered commit may be lost in a crash"),
}


def _of_database() -> Iterator[Promise]:
    shown: dict[str, str] | None = reading.or_none(
        lambda: dict(
            reading.rows(
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%(names)s) "
                "UNION ALL SELECT 'pending', count(*)::text FROM pg_prepared_xacts",
                {"names": [*SETTINGS, "server_version", "max_connections", "data_checksums"]},
            )
        )
    )
    if shown is None:
        yield Promise("PostgreSQL answers", Kept.UNKNOWN, "It did not answer in two seconds.")
        return
    yield Promise("PostgreSQL answers", Kept.YES, f"Version {shown['server_version']}, up to "
                  f"{shown['max_connections']} connections.")  # fmt: skip
    for name, (wanted, otherwise) in SETTINGS.items():
        is_set = shown[name] in (wanted, "remote_apply", "remote_write", "local")
        remedy = "" if is_set else f"Set {name} = {wanted} in postgresql.conf and reload it."
        seen = "" if is_set else f"It is {shown[name]}: {otherwise}."
        yield Promise(f"{name} is {wanted}", Kept.YES if is_set else Kept.NO, seen, remedy)
    yield _schema()


def _schema() -> Promise:
    with reading.bounded():
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not waiting:
        return Promise("The schema is of this version", Kept.YES, "Every migration is applied.")
    return Promise(
        "The schema is of this version", Kept.NO,
        f"{len(waiting)} migrations are not applied, the first of them {waiting[0][0]}.",
        "Run manage.py migrate, then start the programs anew.",
    )  # fmt: skip


# The programs


def _of_programs(now: datetime) -> Iterator[Promise]:
    found = reading.or_none(lambda: workers.read(now))
    if found is None:
        yield Promise("Workers live", Kept.UNKNOWN, "They could not be read in two seconds.")
        return
    yield from (_queue(found, queue, what) for queue, what in workers.NEEDED.items())
    yield _sweeps(found, now)
    yield Promise(
        "The broker wakes workers",
        Kept.YES if found.broker == "there" else Kept.NO,
        "It answers."
        if found.broker == "there"
        else "It is away: calls start later, none is lost.",
        "" if found.broker == "there" else "Start Valkey, or repair REDIS_URL.",
    )
    yield _fences(found)


def _workers(number: int) -> str:
    return f"{number} worker{'s' * (number != 1)}"


def _queue(found: Workers, queue: str, what: str) -> Promise:
    serving = [each for each in found.alive if queue in each.queues]
    name = f"Somebody serves the queue {queue}"
    if serving:
        return Promise(name, Kept.YES, f"{_workers(len(serving))}, proved alive by their locks.")
    return Promise(name, Kept.NO, f"Nobody: {what} waits.", "Start a worker for it.")


def _sweeps(found: Workers, now: datetime) -> Promise:
    name = "Deadlines are swept"
    if not found.sweeps:
        return Promise(
            name, Kept.NO, "No watchdog has swept in a day.", "Start manage.py watchdog."
        )
    last = found.sweeps[0]
    ago = f"The last sweep was {max(0.0, (now - last.swept_at).total_seconds()):.1f} s ago."
    return Promise(name, Kept.NO if last.is_late else Kept.YES, ago,
                   "Start manage.py watchdog." if last.is_late else "")  # fmt: skip


def _fences(found: Workers) -> Promise:
    """Lost attempts are provably dead only where the kernel ends them.

    Asked of who may cross a boundary: what reads, polls and probes do is simply made again.
    """
    name = "A lost attempt is provably dead"
    crossing = [each for each in found.alive if EFFECTS in each.queues]
    weak = [each.name for each in crossing if each.fence_kind != FenceKind.KERNEL]
    if weak:
        return Promise(
            name, Kept.NO,
            f"{_workers(len(weak))} without a fence by the kernel, the first of them {weak[0]}: "
            "denying an effect of theirs waits for a person who knows that the machine is off.",
            "Run them on Linux, where a PID namespace may be made.",
        )  # fmt: skip
    here = fence.available() is fence.Mechanism.BOOTTIME_TIMER
    if not crossing:
        timer = f"this machine {'has' if here else 'lacks'} the timer for it"
        seen = f"Nobody serves the queue {EFFECTS}; {timer}."
        return Promise(name, Kept.UNKNOWN, seen)
    return Promise(name, Kept.YES, f"Fenced by the kernel: {_workers(len(crossing))}.")


# Bounds

BOUNDS = """
SELECT (SELECT count(*) FROM ledger_toolcall WHERE settled_at IS NULL AND due_at IS NULL)::int,
       (SELECT count(*) FROM ledger_toolcall WHERE settled_at IS NULL AND due_at < %(late)s)::int,
       (SELECT count(*) FROM ledger_tool t JOIN ledger_policy p ON p.tool_id = t.id
         AND p.number = t.policy_version WHERE NOT p.declared)::int,
       (SELECT count(*) FROM recovery_incident WHERE closed_at IS NULL AND review_at IS NULL
         AND remind_at IS NULL AND state = 'exhausted')::int
"""


def _of_bounds(now: datetime) -> Iterator[Promise]:
    late = now - timedelta(seconds=10 * settings.ENVIRONMENT.sweep_s)
    found = reading.or_none(lambda: reading.rows(BOUNDS, {"late": late})[0])
    if found is None:
        yield Promise("Every wait has a date", Kept.UNKNOWN, "Could not be read in two seconds.")
        return
    undated, overdue, undeclared, forgotten = found
    yield _none("Every open call has a deadline", undated, "open calls wait without a date")
    yield _none("No deadline passes unnoticed", overdue, "calls are overdue by ten sweeps",
                "See /deadlines, and whether the watchdog sweeps.")  # fmt: skip
    yield _none("No open question is forgotten", forgotten,
                "incidents wait for a person without a reminder")  # fmt: skip
    yield Promise(
        "Tools have a policy",
        Kept.YES,
        "Every tool has one." if not undeclared
        else f"{undeclared} without one of their own, treated as side effects.",
    )  # fmt: skip


def _none(name: str, number: int, what: str, remedy: str = "") -> Promise:
    if number:
        return Promise(name, Kept.NO, f"{number} {what}.", remedy or "Run manage.py verify_ledger.")
    return Promise(name, Kept.YES, f"0 {what}.")


# The invariants


def _verified(since: datetime) -> list[Violation]:
    with reading.bounded(VERIFY_MS) as cursor:
        cursor.execute("SELECT set_config('work_mem', '32MB', true)")
        return verify(since=since)


def _proofs(workspace_id: UUID, violations: list[Violation] | None) -> list[Proof]:
    if violations is None:
        return [Proof(each.number, each.sentence, None) for each in INVARIANTS]
    by_number: dict[str, list[Violation]] = {each.number: [] for each in INVARIANTS}
    for each in violations:
        by_number[each.number].append(each)
    return [
        Proof(each.number, each.sentence, len(broken), _first(workspace_id, broken))
        for each in INVARIANTS
        for broken in (by_number[each.number],)
    ]


def _first(workspace_id: UUID, broken: list[Violation]) -> str:
    if not broken:
        return ""
    call_id = broken[0].call_id
    if call_id is None:
        return "the schema"
    is_own = ToolCall.objects.filter(workspace=workspace_id, id=call_id).exists()
    return ids.shown("call", call_id) if is_own else "a call of another workspace"
