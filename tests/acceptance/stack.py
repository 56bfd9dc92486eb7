"""A whole Clearhouse for tests: the real programs as real processes, each to be killed by name.

PostgreSQL with fsync on, Valkey, web, both workers, watchdog and sandbox, in a folder of their
own, started as `manage.py up` starts them, but with nobody who restarts them: that is the
test's to do. It must never touch a server, a port or a process that it did not start.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import redis

from standalone import pids, preparations, programs
from standalone.children import RunningProgram
from standalone.ports import free_port
from standalone.postgres import Postgres
from standalone.programs import Program
from standalone.readiness import answer
from standalone.state import State
from standalone.valkey import Valkey
from tests.acceptance.agent import Agent
from tests.acceptance.desk_line import Desk
from tests.sandbox.world import end_renders, until

DATABASE = OWNER = "clearhouse"
# One attempt a process: as many as a scene puts into the middle of their work at once.
POOL_CHILDREN = 8
SWIFT = {"CLEARHOUSE_GRACE_S": "1"}
# Leases are short, since tests wait for them; queues are patient, since a worker starts slowly
# on a busy machine.
SWIFT_TIMEOUTS = {"heartbeat_s": 4.0, "schedule_to_start_s": 30.0}
EFFECTS = ("-Q", "effects", "-P", "prefork", "-c", str(POOL_CHILDREN))
# Something to do for each kind of worker, by the name of its program.
WORK = {
    "effects": ("sandbox.write_artifact", {"path": "something.txt", "text": "It works."}),
    "reads": ("sandbox.lookup", {"name": "opening-hours"}),
}


class Stack:
    """One installation below `root`. Names of programs are those of `standalone.programs`."""

    def __init__(self, root: Path) -> None:
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
        url = self.postgres.url(DATABASE, role=OWNER, password=password)
        self._environ = {
            **programs.environment(
                self.state, database_url=url, redis_url=self.valkey.url, ports=ports
            ),
            "CLEARHOUSE_DATABASE_POOL": "1",
        }
        self._prepare_ledger()
        for program in self._programs():
            self.add(program, SWIFT)
        self.desk = Desk({**os.environ, **self._environ, **programs.NO_POOL})
        self.swiften()
        self.until_ready()

    def _prepare_ledger(self) -> None:
        environ = {**os.environ, **self._environ}
        self.keys = {name: self._provisioned(name, environ) for name in ("default", "swift")}

    def _provisioned(self, workspace: str, environ: Mapping[str, str]) -> str:
        password = str(self.state.secret_file("operator-password"))
        command = programs.managed(
            "provision",
            "--json",
            "--migrate",
            "--workspace",
            workspace,
            "--operator-password-file",
            password,
        )
        said = preparations.run(command, environ, self.state.logs / "provision.log")
        return str(json.loads(said.strip().splitlines()[-1])["api_key"])

    def _programs(self) -> list[Program]:
        return [
            programs.web(self.port),
            programs.worker("effects", EFFECTS),
            programs.reads(),
            programs.watchdog(),
            programs.sandbox(),
        ]

    def add(self, program: Program, environ: Mapping[str, str] = {}) -> RunningProgram:
        """Start one more program, or one of these anew with another environment."""
        child = RunningProgram(
            program, environ={**self._environ, **environ}, logs_folder=self.state.logs
        )
        child.launch()
        self.children[program.name] = child
        return child

    def swiften(self) -> None:
        """Shorten leases and graces in workspace `swift`, through the admin's own verb."""
        self.desk.ask("policies", workspace="swift", timeouts=SWIFT_TIMEOUTS, in_flight_grace_s=1.0)

    def stop(self) -> None:
        """Kill whatever still runs; a test leaves nothing behind."""
        with contextlib.suppress(AttributeError):
            self.desk.close()
        for child in self.children.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGCONT)
                os.killpg(child.pid, signal.SIGKILL)
            _is_gone(child)
        end_renders(self.state.root / "sandbox" / "renders")
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

    def until_ready(self) -> None:
        """Wait until calls can be recorded, executed and recovered, by workers that run now."""
        until(lambda: answer(self.port, "/readyz")[0] == 200, "the stack is ready", 60)
        # A worker is registered before it hears the doorbell.
        workers = sum(name.partition("-")[0] in WORK for name in self.children)
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

    def mails(self, subject: str) -> int:
        """How many messages with this subject the world's mailbox holds."""
        found = Agent(self.state.ports()["sandbox_http"], "").get("/mailbox")
        return sum(entry["subject"] == subject for entry in found)

    def artifacts(self, path: str) -> list[bytes]:
        """What stands at a path below the artifacts: one text, or none."""
        file = self.state.root / "sandbox" / "artifacts" / path
        return [file.read_bytes()] if file.exists() else []

    def renders(self, marker: str) -> int:
        """How many renders the world holds for a call."""
        requests = (self.state.root / "sandbox" / "renders").glob("*/request.json")
        return sum(json.loads(file.read_bytes())["marker"] == marker for file in requests)


def _is_gone(child: RunningProgram) -> None:
    until(lambda: not child.running, f"the killed {child.name} is gone")
