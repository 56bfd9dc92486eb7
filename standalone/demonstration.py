"""The demo beside a console that runs: begun in the background, and said when it is done."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from standalone import logs
from standalone.bonds import bonded
from standalone.places import ROOT
from standalone.programs import NO_POOL, managed
from standalone.steps import say

COMMAND = managed("demo")
BEGUN = "The demo plays for about a minute; the pages fill while you look. Its end is said here."


class Demonstration:
    """One `manage.py demo`. It ends with its parent, and its failure ends nothing else."""

    def __init__(
        self, environ: Mapping[str, str], log: Path, *, command: tuple[str, ...] = COMMAND
    ) -> None:
        self._log = log
        with logs.opened(log) as file:
            self._child = subprocess.Popen(  # noqa: S603 our own command
                bonded(list(command), signal.SIGTERM),
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                env={**os.environ, **environ, **NO_POOL},
                start_new_session=True,
            )
        say(BEGUN)

    @property
    def has_ended(self) -> bool:
        return self._child.poll() is not None

    def report(self) -> None:
        """Say how it ended: its own last line, or where to look."""
        if self._child.returncode == 0:
            say(logs.tail(self._log, lines=1))
        else:
            say(
                f"The demo stopped early ({self._child.returncode}); everything else goes on. "
                f"{self._log} ends with:\n{logs.tail(self._log)}"
            )

    def end(self) -> None:
        """End it, if it still plays."""
        if not self.has_ended:
            self._child.terminate()
        self._child.wait()
