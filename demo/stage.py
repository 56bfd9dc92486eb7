"""Several scenes at once on one thread: a scene yields what it waits for, then goes on.

Most of an afternoon is waiting for workers, leases and delays, so scenes that wait side by side
take as long as the longest of them.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

Condition = Callable[[], bool]
Scene = Iterator[Condition]

ASK_EVERY_S = 0.1


class WaitedInVain(RuntimeError):
    """What a scene waits for did not come within its limit."""


@dataclass(slots=True, eq=False)
class _Playing:
    name: str
    scene: Scene
    until: Condition
    since: float = field(default_factory=time.monotonic)


def play(scenes: Iterable[tuple[str, Scene]], *, limit_s: float = 180.0) -> None:
    """Play all scenes to their ends.

    Raises WaitedInVain, with the names of those that got stuck, when the others have ended.
    """
    playing = [_Playing(name, scene, _at_once) for name, scene in scenes]
    stuck: list[str] = []
    while playing:
        playing = [each for each in playing if _goes_on(each)]
        late = [each for each in playing if time.monotonic() - each.since > limit_s]
        stuck += [each.name for each in late]
        playing = [each for each in playing if each not in late]
        if playing:
            time.sleep(ASK_EVERY_S)
    if stuck:
        raise WaitedInVain(
            f"The demo has these scenes only in part: {', '.join(stuck)}. They waited {limit_s:g} "
            "s in vain. Look at `manage.py status`: the workers or the watchdog may not be running."
        )


def _at_once() -> bool:
    return True


def _goes_on(each: _Playing) -> bool:
    """Let a scene go on as far as it can; False at its end."""
    while each.until():
        step = next(each.scene, None)
        if step is None:
            return False
        each.until, each.since = step, time.monotonic()
    return True
