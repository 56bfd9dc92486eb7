"""Rehearsals of failure, started from a page: one at a time, on servers of their own.

A drill is a process of its own session: it outlives this request and this web, and gets nothing
of this installation's environment, so that it cannot reach its database, broker or secrets. The
folder `drills` below the state folder is all that both know: who runs, what was said, reports.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from dashboard import zones
from ledger.errors import LedgerError


class Kind(NamedTuple):
    """A drill in words: what it does, and how."""

    does: str
    how: str


KINDS = {
    "tests": Kind(
        "Kill and stop programs",
        "The operator tests: before, during and after an effect, inside a compaction and a "
        "hand-off. About two minutes.",
    ),
    "chaos": Kind(
        "Make faults under load",
        "600 calls and 120 faults, drawn from a seed; then every call is accounted for. Several "
        "minutes, in which it takes all the processor time it gets.",
    ),
    "planted": Kind(
        "Plant known bugs", "One after the other; each has to be caught. Several minutes."
    ),
}
"""What can be rehearsed, by the names that `manage.py drill` takes."""

KEEPS = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH")
"""All that a drill gets of our environment: nothing that names a server or a secret."""

SAID_BYTES_MAX = 20_000
REPORTS_SHOWN = 30
REPORT_BYTES_MAX = 2_000_000


class DrillRuns(LedgerError):
    """A drill is under way; two at once would measure each other."""

    code = "drill_runs"
    sentence = (
        "A drill of the kind {kind} has been running since {since}. Nothing was started. Wait for "
        "its end, or stop it first."
    )


class NoDrill(LedgerError):
    """There is no such drill, or it has ended."""

    code = "no_drill"
    http = 404
    sentence = "{what} Nothing was changed. Load the page of drills again."


@dataclass(frozen=True, slots=True)
class Run:
    """The drill that was started last from a page. `is_alive` is asked of the kernel."""

    pid: int
    born: str
    kind: str
    by: str
    started_at: datetime

    @property
    def is_alive(self) -> bool:
        return _born(self.pid) == self.born

    @property
    def said(self) -> str:
        """What it has said so far, its end."""
        return _tail(_folder() / "said.txt")


@dataclass(frozen=True, slots=True)
class Reported:
    """One drill of the history. `passed` is None where it ended without a report."""

    name: str
    kind: str
    at: datetime
    passed: bool | None
    seconds: float | None = None
    rows: int = 0
    failed: int = 0
    findings: int = 0

    @property
    def family(self) -> str:
        return {True: "well", False: "failed", None: "closed"}[self.passed]

    @property
    def word(self) -> str:
        return {True: "passed", False: "failed", None: "no report"}[self.passed]


def _folder() -> Path:
    return Path(settings.ENVIRONMENT.data) / "drills"


def _born(pid: int) -> str:
    """When a process was started, in ticks since boot; empty for one that has ended.

    A number is used again; a number with its birth is not. A zombie has ended.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - SAID_BYTES_MAX))
            return opened.read().decode("utf-8", "replace")
    except OSError:
        return ""


# Starting and stopping


@contextmanager
def _alone() -> Iterator[None]:
    """Two presses at once: the second waits here and then finds the first one's drill."""
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    with (_folder() / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start(kind: str, *, by: str) -> Run:
    """Start a drill and return at once. Raises DrillRuns while one is under way, NoDrill."""
    if kind not in KINDS:
        raise NoDrill(what="There is no drill of this kind.")
    with _alone():
        last = latest()
        if last is not None and last.is_alive:
            raise DrillRuns(kind=last.kind, since=zones.written(last.started_at))
        pid = _spawn(kind)
        run = Run(pid, _born(pid), kind, by, datetime.now(UTC))
        kept = {"pid": pid, "born": run.born, "kind": kind, "by": by,
                "started_at": run.started_at.isoformat()}  # fmt: skip
        (_folder() / "running.json").write_text(json.dumps(kept))
        return run


def _spawn(kind: str) -> int:
    environ = {name: os.environ[name] for name in KEEPS if name in os.environ}
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "drill", kind,
               "--data", str(settings.ENVIRONMENT.data)]  # fmt: skip
    with (_folder() / "said.txt").open("wb") as said:
        started = subprocess.Popen(  # noqa: S603 a command of our own
            command, cwd=settings.BASE_DIR, env=environ, stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    return started.pid


def stop() -> Run:
    """Ask the drill to end; it ends its servers first. Raises NoDrill where none runs."""
    with _alone():
        last = latest()
        if last is None or not last.is_alive:
            raise NoDrill(what="No drill is running any more.")
        os.kill(last.pid, signal.SIGTERM)
        return last


def latest() -> Run | None:
    """The drill started last from a page; None if there was none."""
    try:
        kept = json.loads((_folder() / "running.json").read_text())
        began = datetime.fromisoformat(kept["started_at"])
        return Run(int(kept["pid"]), kept["born"], kept["kind"], kept["by"], began)
    except (OSError, ValueError, KeyError):
        return None


# Reports


def history() -> list[Reported]:
    """The drills whose folders are kept, the newest first; those under way are not among them."""
    last = latest()
    running = last is not None and last.is_alive
    folders = _folders()[:REPORTS_SHOWN]
    found = [_reported(each) for each in folders]
    if running and found and found[0].passed is None:
        return found[1:]
    return found


def _folders() -> list[Path]:
    try:
        return sorted((each for each in _folder().iterdir() if each.is_dir()), reverse=True)
    except OSError:
        return []


def _reported(folder: Path) -> Reported:
    stamp, _, kind = folder.name.partition("-")
    report = _report(folder) or {}
    rows = report.get("rows", [])
    return Reported(
        name=folder.name,
        kind=kind.partition("-")[0],
        at=_instant(stamp, folder),
        passed=report.get("passed"),
        seconds=report.get("seconds"),
        rows=len(rows),
        failed=sum(row.get("passed") is False for row in rows),
        findings=len(report.get("findings", [])),
    )


def _instant(stamp: str, folder: Path) -> datetime:
    try:
        return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(folder.stat().st_mtime, UTC)


def _report(folder: Path) -> dict[str, Any] | None:
    file = folder / "report.json"
    try:
        if file.stat().st_size > REPORT_BYTES_MAX:
            return None
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError):
        return None


def report(name: str) -> tuple[Reported, dict[str, Any]]:
    """One drill and its report. The name is looked up among the folders: it is never a path.

    Raises NoDrill for another name, and where it ended without a report.
    """
    folder = next((each for each in _folders() if each.name == name), None)
    found = _report(folder) if folder else None
    if folder is None or found is None:
        raise NoDrill(what="There is no report of this name.")
    return _reported(folder), found
