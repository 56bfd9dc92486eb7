"""A whole Clearhouse for drills: the real programs as real processes, each to be killed by name.

PostgreSQL with fsync on, Valkey, web, both workers, watchdog and sandbox, in a folder of their
own, started as `manage.py up` starts them, but with nobody who restarts them: that is the
drill's to do. The database carries the drill's token. It must never touch a server, a port or a
process that it did not start.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import redis

from drills import marker
from drills.agent import Agent
from drills.desk_line import Desk
from drills.link import Link
from drills.person import Person
from drills.waits import until
from drills.world import World, end_renders
from ledger import faults
from standalone import pids, preparations, programs
from standalone.children import RunningProgram
from standalone.ports import LOOPBACK, free_port
from standalone.postgres import Postgres
from standalone.programs import Program
from standalone.readiness import answer
from standalone.state import State
from standalone.valkey import Valkey

DATABASE = OWNER = "clearhouse"
# One attempt a process: as many as a scene puts into the middle of their work at once.
POOL_CHILDREN = 8
SWIFT = {"CLEARHOUSE_GRACE_S": "1"}
# Leases are short, since drills wait for them; queues are patient, since a worker starts slowly
# on a busy machine.
SWIFT_TIMEOUTS = {"heartbeat_s": 4.0, "schedule_to_start_s": 30.0}
WORKERS = ("effects", "reads")
WORKSPACES = ("default", "swift")


def effects_pool(children: int) -> tuple[str, ...]:
    """The options of an effects worker with so many pool children."""
    return ("-Q", "effects", "-P", "prefork", "-c", str(children))


class Stack:
    """One installation below `root`. Names of programs are those of `standalone.programs`.

    With `points` the fault points are armed; with `linked` the workers reach PostgreSQL through
    a `Link` that can be cut.
    """

    def __init__(
        self,
        root: Path,
        *,
        pool_children: int = POOL_CHILDREN,
        points: bool = False,
        linked: bool = False,
        widths: Mapping[str, float] | None = None,
    ) -> None:
        self.state = State(root / "state")
        self.state.prepare()
        self.port = 0
        self.postgres = Postgres(
            self.state.root, tcp=True, password=self.state.secret("postgres-superuser-password"),
            log=self.state.logs / "postgresql.log",
        )  # fmt: skip
        self.valkey = Valkey(
            self.state.root, password=self.state.secret("valkey-password"),
            log=self.state.logs / "valkey.log",
        )  # fmt: skip
        self.children: dict[str, RunningProgram] = {}
        self.world = World(self.state.root)
        self.faults = self.state.root / "faults"
        self.link: Link | None = None
        self._effects = effects_pool(pool_children)
        self._points, self._linked, self._widths = points, linked, dict(widths or {})
        self._environ: dict[str, str] = {}

    # --- life ---

    def start(self) -> None:
        """Start everything on an empty ledger, with two workspaces: `default` and `swift`."""
        ports = self.state.choose_ports()
        self.port = free_port()
        self.postgres.start()
        self.valkey.start()
        password = self.state.secret("postgres-password")
        self.postgres.provide(DATABASE, owner=OWNER, password=password)
        marker.mark(self.postgres, DATABASE, self.faults, self._widths)
        url = self.postgres.url(DATABASE, role=OWNER, password=password)
        self._environ = {
            **programs.environment(
                self.state,
                database_url=url,
                redis_url=self.valkey.url,
                public_url=f"http://{LOOPBACK}:{self.port}",
                ports=ports,
            ),
            "CLEARHOUSE_DATABASE_POOL": "1",
        }
        self._prepare_ledger()
        self._make_breakable()
        for program in self._programs():
            self.add(program, SWIFT)
        self.desk = Desk({**os.environ, **self._environ, **programs.NO_POOL})
        self.swiften()
        self.until_ready()
        self.assert_own()

    def _make_breakable(self) -> None:
        """Put the link between the workers and PostgreSQL, and arm the points, where asked to."""
        if self._linked:
            self.link = Link(self.postgres.port)
        self._breakable = {faults.VARIABLE: str(self.faults)} if self._points else {}

    def assert_own(self) -> None:
        """Raise Refusal unless servers, database and programs are this stack's own."""
        known = {**self._environ, faults.VARIABLE: str(self.faults)}
        marker.assert_own(self.postgres, DATABASE, known, self.children.values())

    def _prepare_ledger(self) -> None:
        environ = {**os.environ, **self._environ}
        self.keys = {name: self._provisioned(name, environ) for name in WORKSPACES}

    def _provisioned(self, workspace: str, environ: Mapping[str, str]) -> str:
        password = str(self.state.secret_file("operator-password"))
        command = programs.managed(
            "provision",
            "--json",
            "--migrate",
            "--workspace",
            workspace,
            "--operator",
            _operator(workspace),
            "--operator-password-file",
            password,
        )
        said = preparations.run(command, environ, self.state.logs / "provision.log")
        return str(json.loads(said.strip().splitlines()[-1])["api_key"])

    def _programs(self) -> list[Program]:
        return [
            programs.web(self.port),
            programs.worker("effects", self._effects),
            programs.reads(),
            programs.watchdog(),
            programs.sandbox(),
        ]

    def add(self, program: Program, environ: Mapping[str, str] = {}) -> RunningProgram:
        """Start one more program, or one of these anew with another environment."""
        known = {**self._environ, **self._breakable, **self._line_of(program.name), **environ}
        child = RunningProgram(program, environ=known, logs_folder=self.state.logs)
        child.launch()
        self.children[program.name] = child
        return child

    def _line_of(self, name: str) -> dict[str, str]:
        """Workers reach PostgreSQL through the link where there is one."""
        if self.link is None or name.partition("-")[0] not in WORKERS:
            return {}
        url = self._environ["DATABASE_URL"]
        return {"DATABASE_URL": url.replace(f":{self.postgres.port}/", f":{self.link.port}/")}

    def swiften(self) -> None:
        """Shorten leases and graces in workspace `swift`, through the admin's own verb."""
        self.desk.ask(
            "policies", workspace="swift", timeouts=SWIFT_TIMEOUTS,
            in_flight_grace_s=1.0, delivery_delay_s=0.0,
        )  # fmt: skip

    def stop(self) -> None:
        """Kill whatever still runs; a drill leaves nothing behind."""
        with contextlib.suppress(AttributeError):
            self.desk.close()
        for child in self.children.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGCONT)
                os.killpg(child.pid, signal.SIGKILL)
            _is_gone(child)
        end_renders(self.world.folder.renders)
        if self.link is not None:
            self.link.close()
        self.valkey.stop()
        self.postgres.stop()

    # --- faults ---

    def kill(self, *names: str) -> float:
        """SIGKILL the mains of these programs at once; return the instant, seconds since 1970."""
        mains = [self.children[name] for name in names]
        at = time.time()
        for child in mains:
            os.kill(child.pid, signal.SIGKILL)
        for child in mains:
            _is_gone(child)
        return at

    def launch(self, *names: str) -> None:
        """Start killed programs again, as a supervisor does."""
        for name in names:
            self.children[name].launch()

    def revive(self) -> None:
        """Wake what is stopped, start again what is not running, and wait until it works."""
        for child in self.children.values():
            if child.running:
                os.killpg(child.pid, signal.SIGCONT)
        self.launch(*(name for name, child in self.children.items() if not child.running))
        self.until_ready()

    def tend(self) -> list[str]:
        """Start again what has ended, as a supervisor does; return the names. Main thread only."""
        ended = [name for name, child in self.children.items() if not child.running]
        self.launch(*ended)
        return ended

    def replace(self, name: str, command: Iterable[str] | None = None) -> None:
        """Kill a program and start it anew, by another command where one is given."""
        ordinary = {program.name: program for program in self._programs()}[name]
        self.kill(name)
        words = tuple(command or ordinary.command)
        self.add(
            Program(
                name=name, command=words, stage=ordinary.stage, grace_s=ordinary.grace_s,
                environ=ordinary.environ,
            ),
            SWIFT,
        )  # fmt: skip

    def command(self, name: str) -> tuple[str, ...]:
        """The words that a program is ordinarily started with."""
        return {program.name: program.command for program in self._programs()}[name]

    def remove(self, *names: str) -> None:
        """End programs that were added, for good."""
        for name in names:
            child = self.children.pop(name)
            child.stop(0)

    def kill_everything(self) -> None:
        """SIGKILL every process of this installation at once, servers included."""
        servers = [self.postgres.pid, self.valkey.pid]
        for pid in [*(child.pid for child in self.children.values()), *servers]:
            pids.send(pid, signal.SIGKILL)
        for child in self.children.values():
            _is_gone(child)
        self.valkey.collect()
        self.postgres.kill()

    def freeze(self, *pids_: int) -> float:
        """SIGSTOP these processes; return the instant, seconds since 1970."""
        at = time.time()
        for pid in pids_:
            os.kill(pid, signal.SIGSTOP)
        return at

    def thaw(self, *pids_: int) -> None:
        """SIGCONT these processes."""
        for pid in pids_:
            pids.send(pid, signal.SIGCONT)

    def start_servers(self) -> None:
        """Start PostgreSQL and the broker again, at their addresses."""
        self.postgres.start()
        self.valkey.start()

    # --- questions ---

    def agent(self, workspace: str = "swift") -> Agent:
        """An agent of a workspace, with its key."""
        return Agent(self.port, self.keys[workspace])

    def person(self, workspace: str = "swift") -> Person:
        """A person with every role in a workspace, logged in."""
        return Person(
            self.port, _operator(workspace), self.state.secret("operator-password")
        ).logged_in()

    def until_ready(self) -> None:
        """Wait until calls can be recorded, executed and recovered, by workers that run now."""
        until(lambda: answer(self.port, "/readyz")[0] == 200, "the stack is ready", 60)
        # A worker is registered before it hears the doorbell.
        workers = sum(name.partition("-")[0] in WORKERS for name in self.children)
        until(lambda: self.listeners() >= workers, "every worker listens", 60)

    def listeners(self) -> int:
        """How many workers wait for the doorbell, as the broker counts them."""
        with redis.Redis.from_url(self.valkey.url) as line:
            return sum(client["cmd"] == "brpop" for client in line.client_list())

    def main_of(self, pid: int) -> str:
        """The name of the program that forked a pool child."""
        forked = {
            child: name
            for name, program in self.children.items()
            for child in pids.children(program.pid)
        }
        return forked[pid]

    def doorbells(self, queue: str) -> int:
        """How many wake-ups wait in the broker for a queue."""
        with redis.Redis.from_url(self.valkey.url) as line:
            return int(line.llen(f"clearhouse:{queue}"))


def _operator(workspace: str) -> str:
    """Each workspace has an operator of its own: a login stands in one workspace."""
    return "operator" if workspace == "default" else f"operator-{workspace}"


def _is_gone(child: RunningProgram) -> None:
    until(lambda: not child.running, f"the killed {child.name} is gone")
