"""The supervisor's ears: stop signals and dying children, as one thing to wait for."""

import os
import select
import signal
from types import FrameType
from typing import Any, Self

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopAsked(BaseException):
    """Somebody asked us to stop while we were still starting. Not an Exception: no handler
    of ordinary errors on the way may keep it."""


class Alarms:
    """While entered, stop signals are counted and each signal ends `doze` at once.

    In the main thread only. With `interrupts` set, a stop signal also raises StopAsked
    where the main thread stands, for steps that would otherwise wait for a server.
    """

    def __init__(self) -> None:
        self.stops = 0
        self.interrupts = True
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._wakeup_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in STOPS:
            if signal.getsignal(number) is signal.SIG_IGN and number is signal.SIGHUP:
                continue  # started by `nohup`: the end of the terminal is not a stop
            self._before[number] = signal.signal(number, self._stop)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._reader)
        os.close(self._writer)

    def doze(self, limit_s: float) -> None:
        """Sleep until any signal arrives, at most `limit_s` seconds."""
        if select.select([self._reader], [], [], max(0.0, limit_s))[0]:
            os.read(self._reader, 4096)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stops += 1
        if self.interrupts:
            self.interrupts = False
            raise StopAsked
