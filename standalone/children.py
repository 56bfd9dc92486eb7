"""A running program: its own session, its own log, bonded to the supervisor's main thread."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from standalone import logs, pids
from standalone.bonds import bonded
from standalone.errors import Refusal
from standalone.forks import Fork
from standalone.image import Image
from standalone.places import ROOT
from standalone.programs import Program
from standalone.waiting import until


class Child(Protocol):
    """What the supervisor keeps running: a program, PostgreSQL or Valkey."""

    name: str

    @property
    def pid(self) -> int: ...
    @property
    def running(self) -> bool: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def log(self) -> Path: ...
    def launch(self) -> None: ...
    def ask(self) -> None: ...
    def stop(self, grace_s: float) -> None: ...


class RunningProgram:
    """One `Program` with the environment it runs in; a Child.

    A fork of `image` where that holds it, else an interpreter of its own.
    """

    def __init__(
        self,
        program: Program,
        *,
        environ: Mapping[str, str],
        logs_folder: Path,
        image: Image | None = None,
    ) -> None:
        self.program = program
        self.name = program.name
        self.log = logs_folder / f"{program.name}.log"
        self._told = dict(environ)
        self._environ = {**os.environ, **environ, **program.environ}
        self._image = image or Image()
        self._child: subprocess.Popen[bytes] | Fork | None = None
        self._asked = False

    def launch(self) -> None:
        self._asked = False
        with logs.opened(self.log) as log:
            if self._image.holds(self.program, self._told):
                self._child = self._image.fork(self.program, self._environ, log.fileno())
            else:
                self._child = self._interpreter(log)

    def _interpreter(self, log: BinaryIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603
            bonded(list(self.program.command), signal.SIGTERM),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env=self._environ,
            start_new_session=True,
        )

    def ask(self) -> None:
        """SIGTERM to the main alone, once: a second one makes a worker drop what it runs."""
        if not self._asked and self.running:
            self._asked = True
            pids.send(self.pid, signal.SIGTERM)

    def stop(self, grace_s: float) -> None:
        """Ask, wait the grace, then SIGKILL it and whatever stayed in its session's group."""
        self.ask()
        if not until(lambda: not self.running, limit_s=grace_s):
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            until(lambda: not self.running, limit_s=5)

    @property
    def pid(self) -> int:
        if self._child is None:
            raise Refusal(f"{self.name} was not started.")
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        return None if self._child is None else self._child.poll()
