"""What the embedded servers have in common: a child that is asked, ended, and collected."""

import signal
import subprocess
from abc import ABC, abstractmethod
from typing import ClassVar, Self

from standalone import pids
from standalone.errors import Refusal
from standalone.waiting import until


class Server(ABC):
    """One server as a child of this process. Call `start` from the main thread.

    `spoken` is its name in sentences, `ends_by` the signal that asks for a clean end.
    """

    spoken: ClassVar[str]
    ends_by: ClassVar[signal.Signals]

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._address_is_known = False

    def start(self) -> None:
        """Start and return when it answers; raises Refusal with the server's last words.

        After `launch` it waits for the server that was launched.
        """
        try:
            self._start()
        except BaseException:
            self.stop(grace_s=1)
            raise

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def stop(self, grace_s: float = ...) -> None: ...

    def ask(self) -> None:
        """Ask for a clean end, without waiting."""
        pids.send(self.pid, self.ends_by)

    def collect(self) -> None:
        """Wait for the ended child, so that it leaves no zombie."""
        if self._child is not None:
            self._child.wait(timeout=10)

    def _end(self, *steps: tuple[signal.Signals, float]) -> None:
        """Send each signal in turn, until it has ended within the seconds given to it."""
        for number, limit_s in steps:
            if not self.running:
                break
            pids.send(self.pid, number)
            until(lambda: not self.running, limit_s=limit_s)
        self.collect()

    @property
    def pid(self) -> int:
        """The server's own pid; raises Refusal when it was never started."""
        if self._child is None:
            raise Refusal(f"This {self.spoken} was not started; call start() first.")
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        return None if self._child is None else self._child.poll()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
