"""Waiting for a named condition, with a limit."""

import time
from collections.abc import Callable
from typing import Any

LIMIT_S = 20.0


class NotInTime(AssertionError):
    """What was waited for did not come; the sentence names it."""


def until(
    found: Callable[[], Any], what: str, limit_s: float = LIMIT_S, every_s: float = 0.02
) -> Any:
    """Return the first true answer of `found`, asked each `every_s` seconds.

    Raises NotInTime after `limit_s` seconds, and whatever `found` itself raises.
    """
    ends = time.monotonic() + limit_s
    while not (answer := found()):
        if time.monotonic() >= ends:
            raise NotInTime(f"Not in {limit_s:g} s: {what}")
        time.sleep(every_s)
    return answer
