"""Waiting for a named condition, never for a length of time alone."""

import time
from collections.abc import Callable

from standalone.errors import Refusal


def until(
    condition: Callable[[], bool], *, limit_s: float, every_s: float = 0.02, what: str = ""
) -> bool:
    """Ask `condition` every `every_s` seconds until it holds or `limit_s` seconds have passed.

    Returns whether it held. Raises Refusal instead of returning False when `what` names the
    condition, and whatever `condition` itself raises, so a dead server ends the wait at once.
    """
    ends = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() >= ends:
            if what:
                raise Refusal(f"Waited {limit_s:g} s for {what}, and it did not come.")
            return False
        time.sleep(every_s)
    return True
