"""A stand-in `up` as a program of its own, started, asked and killed from outside."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from standalone import pids
from standalone.places import ROOT
from standalone.ports import free_port
from standalone.state import Recorded, State
from standalone.waiting import until

STAND_IN = Path(__file__).parent / "stand_in_up.py"
LIMIT_S = 30


class RunningUp:
    """One state folder and the supervisors that run on it, one after another."""

    def __init__(self, folder: Path) -> None:
        self.state = State(folder)
        self.port = free_port()
        self.said = folder.parent / "said"
        self.child: subprocess.Popen[str] | None = None
        self.elsewhere: dict[str, str] = {}  # addresses of servers that are not ours to start

    def start(self, *extras: str) -> dict[str, object]:
        """Start and return the closing line; fails with what it said when none comes."""
        self.child = self.begin(*extras)
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        assert line, f"it ended instead of saying where it is:\n{self.said.read_text()}"
        return json.loads(line)

    def begin(self, *extras: str, port: int = 0) -> "subprocess.Popen[str]":
        command = [sys.executable, str(STAND_IN), str(self.state.root), str(port or self.port)]
        kept = ("DATABASE_URL", "REDIS_URL")
        environ = {name: value for name, value in os.environ.items() if name not in kept}
        with self.said.open("a") as said:
            return subprocess.Popen(
                [*command, *extras],
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                cwd=ROOT,
                env={**environ, **self.elsewhere, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL the supervisor and wait for it."""
        assert self.child is not None
        self.child.kill()
        self.child.wait(timeout=LIMIT_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal the supervisor and return its exit code."""
        assert self.child is not None
        self.child.send_signal(number)
        return self.child.wait(timeout=LIMIT_S)

    def recorded(self, name: str) -> Recorded:
        return next(one for one in self.state.recorded() if one.name == name)

    def revived(self, before: Recorded) -> bool:
        """Whether `before` runs again as another pid."""
        now = self.recorded(before.name)
        return now.pid != before.pid and now.alive

    def ticks(self, said: str = "tick") -> int:
        """Rows the stand-in worker has written."""
        with psycopg.connect(self.state.recall("environment")["DATABASE_URL"]) as link:
            row = link.execute("select count(*) from ticks where said = %s", [said]).fetchone()
        assert row is not None
        return int(row[0])

    def ticks_grow(self) -> bool:
        try:
            before = self.ticks()
            return until(lambda: self.ticks() > before, limit_s=5)
        except psycopg.OperationalError:
            return False


@contextmanager
def running_up(folder: Path) -> Iterator[RunningUp]:
    """Whatever a test did to it: nothing of it runs afterwards."""
    up = RunningUp(folder)
    try:
        yield up
    finally:
        if up.child is not None:
            up.child.terminate()
            until(lambda: up.child.poll() is not None, limit_s=LIMIT_S)  # type: ignore[union-attr]
            up.child.kill()
        for one in up.state.recorded():
            if one.alive:
                pids.send(one.pid, signal.SIGKILL)
