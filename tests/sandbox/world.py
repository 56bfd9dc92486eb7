"""The sandbox program as a real operating-system process, for tests to start, kill and ask."""

import http.client
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from drills.waits import until as until
from drills.world import end_renders
from sandbox.addresses import HOST, Ports
from sandbox.folder import SandboxFolder

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = "import pathlib, sys; from sandbox import program; from sandbox.addresses import Ports; "
PROGRAM += "program.run(pathlib.Path(sys.argv[1]), ports=Ports.of_environment())"
LIMIT_S = 20.0


class Child:
    """A process whose lines are read as they come."""

    def __init__(self, *argv: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            argv,
            cwd=PROJECT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, word: str, limit_s: float = LIMIT_S) -> str:
        """Return the first new line that holds `word`."""
        ends = time.monotonic() + limit_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"No line with {word!r} in time: {self.said}") from None
            assert line is not None, f"It ended without a line with {word!r}: {self.said}"
            if word in line:
                return line

    def kill(self) -> None:
        """SIGKILL, and return when it is gone."""
        self.process.kill()
        self.end()

    def end(self) -> int:
        """Return the exit code once it has ended."""
        code = self.process.wait(LIMIT_S)
        self._reader.join(LIMIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            self._lines.put(line)
        self._lines.put(None)


class World:
    """One sandbox on free ports in a folder of its own."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.folder = SandboxFolder(data / "sandbox")
        self.child: Child | None = None

    def start(self) -> Self:
        self.child = Child(sys.executable, "-c", PROGRAM, str(self.data))
        self.child.wait_for("The sandbox listens")
        return self

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill()

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        assert self.child is not None
        self.child.process.send_signal(signal.SIGTERM)
        return self.child.end()

    @property
    def ports(self) -> Ports:
        return Ports(**json.loads((self.data / "sandbox.json").read_bytes()))

    def ask(
        self, method: str, path: str, fields: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Return the status code and JSON value of one request."""
        line = http.client.HTTPConnection(HOST, self.ports.http, timeout=LIMIT_S)
        try:
            body = None if fields is None else json.dumps(fields)
            line.request(method, path, body, headers or {})
            response = line.getresponse()
            return response.status, json.loads(response.read())
        finally:
            line.close()


@contextmanager
def a_world(data: Path) -> Iterator[World]:
    """Start a sandbox; at the end kill it and every render that it began."""
    world = World(data)
    try:
        yield world.start()
    finally:
        if world.child and world.child.process.poll() is None:
            world.kill()
        end_renders(world.folder.renders)
