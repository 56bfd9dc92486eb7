"""`manage.py status`: what runs, where, since when, and what is half-started.

Reads the state folder and asks the kernel and the web server; changes nothing. Exit code 0:
runs and is ready. 1: half-started or not ready. 3: nothing runs.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from standalone import pids, postgres_cluster, readiness, valkey
from standalone.places import state_folder
from standalone.state import Recorded, State

READY, HALF, NOTHING = 0, 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One server or program as it stands now. `memory_mb` is None when not known."""

    name: str
    pid: int
    state: str  # "running" or "gone"
    since: str
    restarts: int
    memory_mb: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that `status` says. `findings` are sentences, each with what to do."""

    folder: str
    owner: dict[str, Any] | None
    ready: bool
    rows: list[Row]
    findings: list[str]

    @property
    def exit_code(self) -> int:
        if self.owner and self.ready and not self.findings:
            return READY
        return HALF if self.owner or self.findings else NOTHING


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help="state folder (.clearhouse)")
    parser.add_argument("--json", action="store_true", help="one JSON line")


def run(options: argparse.Namespace) -> int:
    """Print the report; returns its exit code."""
    report = look(State(options.data or state_folder()))
    print(json.dumps(asdict(report)) if options.json else as_text(report))
    return report.exit_code


def look(state: State) -> Report:
    """Compare what was recorded with what is."""
    owner = state.owner()
    rows = [row(one) for one in state.recorded()]
    port = int((owner or {}).get("port") or 0)
    return Report(
        folder=str(state.root),
        owner=owner,
        ready=port > 0 and readiness.ready(port),
        rows=rows,
        findings=findings(state, owner, rows),
    )


def row(one: Recorded) -> Row:
    return Row(
        name=one.name,
        pid=one.pid,
        state="running" if one.alive else "gone",
        since=one.started_at,
        restarts=one.restarts,
        memory_mb=pids.resident_mb(one.pid) if one.alive else None,
    )


def findings(state: State, owner: dict[str, Any] | None, rows: list[Row]) -> list[str]:
    """Sentences about what is neither wholly up nor wholly down."""
    if owner:
        return [*_gone(rows), *_still_starting(state, owner, rows)]
    return [*_left_behind(state, rows), *_cut_short(state)]


def _gone(rows: list[Row]) -> list[str]:
    return [
        f"{one.name} (pid {one.pid}) has ended; its supervisor starts it again within seconds. "
        "If it keeps ending, read its log."
        for one in rows
        if one.state == "gone"
    ]


def _still_starting(state: State, owner: dict[str, Any], rows: list[Row]) -> list[str]:
    if any(one.kind == "program" for one in state.recorded()):
        return []
    return [
        f"The supervisor (pid {owner.get('pid')}) is still starting: no program runs yet. Wait for "
        f"its closing lines, or read the logs in {state.logs}."
    ]


def _left_behind(state: State, rows: list[Row]) -> list[str]:
    alive = {one.name: one.pid for one in rows if one.state == "running"}
    servers = {
        "postgresql": postgres_cluster.leftover(state.root / "postgres"),
        "valkey": valkey.leftover(state.root / "valkey"),
    }
    alive |= {name: pid for name, pid in servers.items() if pid}
    return [
        f"{name} (pid {pid}) runs without a supervisor, which was killed. `manage.py up` ends it "
        f"and starts anew; `kill {pid}` ends it alone."
        for name, pid in alive.items()
    ]


def _cut_short(state: State) -> list[str]:
    if (state.root / "postgres.making").exists():
        return ["A first start was cut short while it made the database; `up` begins that anew."]
    return []


def as_text(report: Report) -> str:
    """The report for a person: one line of summary, a table, findings."""
    lines = [summary(report)]
    if report.rows and (report.owner or any(one.state == "running" for one in report.rows)):
        lines += ["", f"  {'name':<12}{'pid':>8}  {'state':<9}{'for':>9}{'restarts':>10}{'MiB':>7}"]
        lines += [line(one) for one in report.rows]
    return "\n".join([*lines, *([""] if report.findings else []), *report.findings])


def summary(report: Report) -> str:
    if report.owner is None:
        return f"Clearhouse does not run on {report.folder}. Start it with `python3 manage.py up`."
    ready = "ready" if report.ready else "not ready"
    return (
        f"Clearhouse runs on {report.folder}: {report.owner.get('address')}, {ready}, "
        f"supervisor pid {report.owner.get('pid')}, since {report.owner.get('started_at')}."
    )


def line(one: Row) -> str:
    memory = "" if one.memory_mb is None else str(one.memory_mb)
    since = lasted(one.since) if one.state == "running" else ""
    return f"  {one.name:<12}{one.pid:>8}  {one.state:<9}{since:>9}{one.restarts:>10}{memory:>7}"


def lasted(since: str) -> str:
    """How long ago an instant was, in its largest unit."""
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds())
    for unit, length_s in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length_s:
            return f"{seconds // length_s} {unit}"
    return f"{max(0, seconds)} s"
