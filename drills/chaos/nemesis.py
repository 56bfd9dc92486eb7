"""Breaks things as the script says, and notes what it broke and when.

Runs in the main thread, which alone may start programs. It signals only processes of its own
stack, found below the programs it started, and wakes whatever it or an order has stopped.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from drills.chaos.faults import Fault
from drills.rows.send import descendants
from drills.stack import DATABASE, Stack
from ledger import faults
from ledger.faults import Order
from standalone import pids

STOP_S = 4.5
"""Longer than the lease, so that who wakes has lost it."""

WATCHDOG_STOP_S = 6.5
HOLE_S = 4.0


@dataclass(slots=True)
class Sleeper:
    """Processes that were stopped, each with its instant of birth, and when they are woken."""

    due: float
    processes: list[tuple[int, str]]


@dataclass(slots=True)
class Nemesis:
    """The faults of one drill on one stack."""

    stack: Stack
    script: list[Fault]
    notes: list[dict[str, Any]] = field(default_factory=list)
    restarts: int = 0
    _sleepers: list[Sleeper] = field(default_factory=list)
    _notes_read: int = 0

    def step(self, submits: int) -> None:
        """Do what is due, wake who is due, and start again what has ended."""
        self._take_notes()
        self._wake(time.monotonic())
        self.restarts += len(self.stack.tend())
        while self.script and self.script[0].at <= submits:
            self._do(self.script.pop(0))

    def rest(self) -> None:
        """Break nothing more: withdraw what nobody took, wake all, and make everything whole."""
        self.missed = faults.withdraw(self.stack.faults)
        self._take_notes()
        self._wake(float("inf"))
        self.stack.revive()

    missed: int = 0

    def _do(self, fault: Fault) -> None:
        if fault.point:
            deed = fault.kind.partition(" ")[0]
            order = Order(
                number=fault.number, at=fault.point, deed=deed, seconds=STOP_S, tools=fault.tools
            )
            faults.place(self.stack.faults, order)
            return
        note: dict[str, Any] = {"number": fault.number, "kind": fault.kind, "instant": time.time()}
        note["victim"] = _DEEDS[fault.kind](self, fault)
        self.notes.append(note)

    def _take_notes(self) -> None:
        """Read who stood at a point since last time; who stopped there is woken later."""
        stood = faults.stood(self.stack.faults)
        for note in stood[self._notes_read :]:
            self.notes.append({**note, "kind": f"{note['deed']} at {note['at']}"})
            if note["deed"] == "stop":
                self._sleepers.append(Sleeper(time.monotonic() + STOP_S, _born([note["pid"]])))
        self._notes_read = len(stood)

    def _wake(self, now: float) -> None:
        for sleeper in [each for each in self._sleepers if each.due <= now]:
            self._sleepers.remove(sleeper)
            for pid, birth in sleeper.processes:
                if pids.birth(pid) == birth:
                    pids.send(pid, signal.SIGCONT)

    # --- deeds: each returns whom it met ---

    def kill_child(self, fault: Fault) -> str:
        child = self._child(fault)
        if child:
            pids.send(child, signal.SIGKILL)
        return str(child)

    def stop_tree(self, fault: Fault) -> str:
        child = self._child(fault)
        if child:
            self._stop([child, *descendants(child)], STOP_S)
        return str(child)

    def kill_main(self, fault: Fault) -> str:
        main = self.stack.children[fault.kind.partition(" ")[2]]
        pids.send(main.pid, signal.SIGKILL)
        return f"{main.name} {main.pid}"

    def stop_main(self, fault: Fault) -> str:
        main = self.stack.children[fault.kind.partition(" ")[2]]
        self._stop([main.pid], WATCHDOG_STOP_S if main.name == "watchdog" else STOP_S)
        return f"{main.name} {main.pid}"

    def flush(self, fault: Fault) -> str:
        self.stack.valkey.flush()
        return "every key"

    def kill_broker(self, fault: Fault) -> str:
        self.stack.valkey.kill()
        self.stack.valkey.start()
        return "killed and started"

    def restart(self, fault: Fault) -> str:
        self.stack.postgres.restart("fast" if fault.kind.startswith("restart") else "immediate")
        return "the server"

    def terminate(self, fault: Fault) -> str:
        """Cut a third of the sessions of our own database, as an administrator would."""
        with psycopg.connect(self.stack.postgres.url(DATABASE), autocommit=True) as line:
            cut = line.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() "
                "AND (pid + %s) %% 3 = 0",
                [int(fault.choice * 3)],
            ).fetchone()
        return f"{cut[0] if cut else 0} sessions"

    def break_link(self, fault: Fault) -> str:
        link = self.stack.link
        if link is None:
            return "no link"
        match fault.kind:
            case "cut the link":
                link.cut()
            case "black-hole the link":
                link.hole(HOLE_S)
            case "lose a commit":
                link.lose_commit()
            case _:
                link.cut_after_commit()
        return "workers and PostgreSQL"

    def _child(self, fault: Fault) -> int:
        """A pool child of the effects worker, or 0 where there is none just now."""
        children = pids.children(self.stack.children["effects"].pid)
        return children[int(fault.choice * len(children))] if children else 0

    def _stop(self, found: list[int], seconds: float) -> None:
        living = _born(found)
        for pid, _ in living:
            pids.send(pid, signal.SIGSTOP)
        self._sleepers.append(Sleeper(time.monotonic() + seconds, living))


def _born(found: list[int]) -> list[tuple[int, str]]:
    """Each process with its instant of birth: a number alone may be another's by then."""
    known = [(pid, pids.birth(pid)) for pid in found if pid != os.getpid()]
    return [(pid, birth) for pid, birth in known if birth]


_DEEDS: dict[str, Callable[[Nemesis, Fault], str]] = {
    "kill a child": Nemesis.kill_child,
    "stop a child's tree": Nemesis.stop_tree,
    **{f"kill {name}": Nemesis.kill_main for name in ("effects", "reads", "watchdog", "web")},
    **{f"stop {name}": Nemesis.stop_main for name in ("effects", "reads", "watchdog")},
    "flush the broker": Nemesis.flush,
    "kill the broker": Nemesis.kill_broker,
    "restart PostgreSQL": Nemesis.restart,
    "crash PostgreSQL": Nemesis.restart,
    "terminate backends": Nemesis.terminate,
    "cut the link": Nemesis.break_link,
    "black-hole the link": Nemesis.break_link,
    "lose the answer of a commit": Nemesis.break_link,
    "lose a commit": Nemesis.break_link,
}
