"""The line between workers and PostgreSQL, in a process of its own, that a drill can break."""

import contextlib
import subprocess
import sys

from standalone.places import ROOT


class Link:
    """A forwarder to a port on loopback; `port` is where it listens."""

    def __init__(self, server_port: int) -> None:
        self._child = subprocess.Popen(  # noqa: S603 our own module
            [sys.executable, "-m", "drills.link_line", str(server_port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        assert self._child.stdout is not None  # noqa: S101 opened as a pipe above
        self.port = int(self._child.stdout.readline())

    def cut(self) -> None:
        """Close every connection now."""
        self._tell("cut")

    def hole(self, seconds: float) -> None:
        """Let everything vanish for some seconds, then close."""
        self._tell(f"hole {seconds:g}")

    def cut_after_commit(self, count: int = 1) -> None:
        """Let the next commits arrive and lose their answers."""
        self._tell(f"cut_commit {count}")

    def lose_commit(self, count: int = 1) -> None:
        """Lose the next commits on their way."""
        self._tell(f"no_commit {count}")

    def lose_no_more(self) -> None:
        """Let all commits and their answers arrive again."""
        self._tell("whole")

    def _tell(self, order: str) -> None:
        assert self._child.stdin is not None  # noqa: S101 opened as a pipe above
        self._child.stdin.write(order + "\n")
        self._child.stdin.flush()

    def close(self) -> None:
        """End it and wait."""
        self._child.kill()
        with contextlib.suppress(BrokenPipeError):
            self._child.communicate()
