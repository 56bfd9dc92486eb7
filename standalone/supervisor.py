"""Keeps servers and programs running, and ends them in order.

One thread, one loop: it sleeps until a child dies or a stop signal comes. A child that died
is started again at once, with a growing wait while it keeps dying. Only mains are signalled,
never groups, so a worker's children may finish. It decides nothing about calls: what a dead
worker left behind is the ledger's and the watchdog's business.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from standalone import logs, pids
from standalone.alarms import Alarms
from standalone.children import Child, RunningProgram
from standalone.errors import Refusal
from standalone.pace import Pace
from standalone.state import Recorded, State, now
from standalone.waiting import until

DOZE_S = 1.0
ASK_EVERY_S = 0.1  # while waiting for a condition
SERVER_GRACE_S = 15.0


@dataclass(slots=True)
class Watched:
    """A child with what the supervisor remembers of it. Times are of the monotonic clock."""

    child: Child
    started_at: str = ""
    launched: float = 0.0
    due: float | None = None  # when to start it again; None while it runs
    restarts: int = 0
    pace: Pace = field(default_factory=Pace)

    @property
    def is_program(self) -> bool:
        return isinstance(self.child, RunningProgram)


class Supervisor:
    """Watches the children given to `adopt` and `launch`, in the main thread.

    `say` takes one line of text for the person at the terminal.
    """

    def __init__(self, state: State, alarms: Alarms, say: Callable[[str], None]) -> None:
        self._state, self._alarms, self._say = state, alarms, say
        self.watched: list[Watched] = []

    def adopt(self, child: Child) -> None:
        """Watch a child that was launched already."""
        self.watched.append(Watched(child, started_at=now(), launched=time.monotonic()))
        self.record()

    def launch(self, children: Sequence[Child]) -> None:
        for child in children:
            child.launch()
            self.adopt(child)

    def watch(self) -> None:
        """Keep everything running until a stop signal comes."""
        self.wait_for(lambda: self._alarms.stops > 0)

    def wait_for(self, condition: Callable[[], bool], limit_s: float | None = None) -> bool:
        """Keep everything running until `condition` holds; False when the limit came first."""
        ends = None if limit_s is None else time.monotonic() + limit_s
        while not condition():
            if ends is not None and time.monotonic() >= ends:
                return False
            self.tend()
            self._alarms.doze(self._next_doze_s() if ends is None else ASK_EVERY_S)
        return True

    def tend(self) -> None:
        """Look at every child once: note the dead, start again those that are due."""
        for watched in self.watched:
            if watched.due is None and not watched.child.running:
                self._note_death(watched)
            if watched.due is not None and time.monotonic() >= watched.due:
                self._revive(watched)

    def stop(self) -> None:
        """End all in order: programs by stage, then servers, youngest first.

        A second stop signal cuts every grace short.
        """
        for stage in self._stages():
            running = [watched for watched in stage if watched.child.running]
            for watched in running:
                watched.child.ask()
            self._await(running)
            for watched in running:
                watched.child.stop(0)
        self.watched.clear()
        self.record()

    # --- steps ---

    def _stages(self) -> list[list[Watched]]:
        by_stage: dict[int, list[Watched]] = {}
        for watched in self.watched:
            if isinstance(watched.child, RunningProgram):
                by_stage.setdefault(watched.child.program.stage, []).append(watched)
        servers = [[watched] for watched in reversed(self.watched) if not watched.is_program]
        return [by_stage[stage] for stage in sorted(by_stage)] + servers

    def _await(self, asked: list[Watched]) -> None:
        graces = [
            watched.child.program.grace_s
            if isinstance(watched.child, RunningProgram)
            else SERVER_GRACE_S
            for watched in asked
        ]
        until(
            lambda: self._alarms.stops > 1 or not any(one.child.running for one in asked),
            limit_s=max(graces, default=0),
        )

    def _note_death(self, watched: Watched) -> None:
        lived_s = time.monotonic() - watched.launched
        wait_s = watched.pace.wait_s(lived_s)
        watched.due = time.monotonic() + wait_s
        when = f"starting it again in {wait_s:g} s" if wait_s else "starting it again"
        self._say(
            f"{watched.child.name} (pid {watched.child.pid}) ended after {lived_s:.0f} s "
            f"{_ending(watched.child.exit_code)}; {when}. Its log: {watched.child.log}"
        )

    def _revive(self, watched: Watched) -> None:
        watched.launched = time.monotonic()
        try:
            watched.child.launch()
        except Refusal as refusal:
            watched.due = time.monotonic() + watched.pace.wait_s(0)
            self._say(f"{watched.child.name} could not be started again: {refusal}")
            return
        watched.due = None
        watched.started_at, watched.restarts = now(), watched.restarts + 1
        self.record()

    def _next_doze_s(self) -> float:
        dues = [watched.due for watched in self.watched if watched.due is not None]
        return max(0.0, min([DOZE_S, *(due - time.monotonic() for due in dues)]))

    def record(self) -> None:
        """Write down who runs, for the next owner and for `status`."""
        self._state.record([_recorded(watched) for watched in self.watched])

    def last_words(self) -> str:
        """The end of the log of each program that is not running or was restarted."""
        bad = [one for one in self.watched if one.restarts or not one.child.running]
        return "\n".join(f"--- {one.child.log}\n{logs.tail(one.child.log)}" for one in bad)


def _recorded(watched: Watched) -> Recorded:
    return Recorded(
        name=watched.child.name,
        kind="program" if watched.is_program else "server",
        pid=watched.child.pid,
        birth=pids.birth(watched.child.pid),
        started_at=watched.started_at,
        restarts=watched.restarts,
    )


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"by signal {-code}"
    return f"with exit code {code}"
