"""Numbered progress lines with seconds, on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def say(text: str) -> None:
    """Print a line for the person at the terminal, if there is still a terminal."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class Steps:
    """Counts the steps of one start; `total` is known beforehand."""

    def __init__(self, total: int) -> None:
        self._total, self._number = total, 0
        self.began = time.monotonic()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print the step with the seconds it took, when it is done."""
        self._number += 1
        began = time.monotonic()
        yield
        say(f"[{self._number}/{self._total}] {title:<44} {time.monotonic() - began:5.1f} s")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began
