"""`manage.py up`: the whole product in one terminal, from nothing or from any wreck.

Order: own the state folder, end what a killed owner left, PostgreSQL and Valkey, what the
programs import, schema, first login, programs, ready. DATABASE_URL and REDIS_URL in the
environment switch the embedded server off. It must never delete data and never start twice on
one folder.
"""

import argparse
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from standalone import preparations, readiness
from standalone.alarms import Alarms, StopAsked
from standalone.attach import KEPT
from standalone.children import RunningProgram
from standalone.closing import Closing
from standalone.demonstration import Demonstration
from standalone.errors import Refusal
from standalone.image import Image
from standalone.pids import end
from standalone.places import state_folder
from standalone.ports import LOOPBACK, is_free
from standalone.postgres import Postgres
from standalone.programs import Program, environment, programs
from standalone.state import State
from standalone.steps import Steps, say
from standalone.supervisor import Supervisor
from standalone.valkey import Valkey

DATABASE = OWNER = "clearhouse"
LEFTOVER_STEPS = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))

Prepare = Callable[[State, Mapping[str, str]], dict[str, Any]]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help="state folder (.clearhouse)")
    parser.add_argument("--port", type=int, default=8000, metavar="N", help="web port (8000)")
    parser.add_argument("--demo", action="store_true", help="play a believable afternoon")
    parser.add_argument("--json", action="store_true", help="closing facts as one JSON line")


def run(options: argparse.Namespace) -> int:
    """Run until stopped; 0 after a stop, 1 with a sentence when it could not start."""
    return guarded(
        Up(
            state=State(options.data or state_folder()),
            port=options.port,
            programs=programs(options.port),
            prepare=preparations.prepare,
            demonstrate=Demonstration if options.demo else None,
            as_json=options.json,
        )
    )


def guarded(up: "Up") -> int:
    """Run it; 0 after a stop, 1 after a Refusal, whose sentence is said."""
    try:
        up.run()
    except Refusal as refusal:
        say(f"Clearhouse did not start. {refusal}")
        return 1
    return 0


@dataclass(slots=True, kw_only=True)
class Up:
    """One run. The programs and the preparation are data, so that a test brings its own."""

    state: State
    port: int
    programs: list[Program]
    prepare: Prepare
    demonstrate: Callable[[Mapping[str, str], Path], Demonstration] | None = None
    as_json: bool = False
    alive_limit_s: float = 45.0
    ready_limit_s: float = 30.0
    steps: Steps = field(default_factory=lambda: Steps(5))
    image: Image = field(default_factory=Image)
    _environ: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Start, say so, watch, stop. Raises Refusal when it cannot start."""
        with Alarms() as alarms, suppress(StopAsked), self._owned():
            self._run(alarms)
        say("Stopped. All data is kept.")

    def _run(self, alarms: Alarms) -> None:
        supervisor = Supervisor(self.state, alarms, say)
        try:
            closing = self._start(supervisor)
            alarms.interrupts = False
            print(closing.as_json() if self.as_json else closing.as_text(), flush=True)
            self._show(supervisor, alarms)
            supervisor.watch()
        finally:
            # Whatever brought us here, what runs is stopped, and in order.
            alarms.interrupts = False
            if supervisor.watched:
                say("Stopping. Running calls get their grace; Ctrl-C again cuts it short.")
            supervisor.stop()

    @contextmanager
    def _owned(self) -> Iterator[None]:
        self.state.prepare()
        self.state.lock(address=self._address, port=self.port)
        try:
            if not is_free(self.port):
                raise Refusal(
                    f"Port {self.port} on {LOOPBACK} is taken by another program. "
                    f"Choose another with `--port {self.port + 1}`, or end that program."
                )
            end_leftovers(self.state)
            yield
        finally:
            self.state.unlock()

    def _start(self, supervisor: Supervisor) -> Closing:
        ports = self.state.choose_ports()
        with self.steps.step("PostgreSQL and Valkey launched"):
            servers = self._servers(ports)
            supervisor.launch([server for server in servers if server])
        with self.steps.step("Programs loaded while the servers start"):
            told = self._told(*servers, ports)
            self.image.load(self.programs, {**os.environ, **told})
        with self.steps.step("Schema, first operator and API key"):
            told = self._await(supervisor, *servers, ports)
            environ = {**os.environ, **told}
            first = self.prepare(self.state, environ)
        with self.steps.step(", ".join(program.name for program in self.programs)):
            self._programs(supervisor, environ)
        with self.steps.step("Ready"):
            is_ready = self._ready(supervisor)
        self._environ = environ
        return self._closing(first, is_ready)

    def _show(self, supervisor: Supervisor, alarms: Alarms) -> None:
        """Play the demo beside everything that runs, until it ends or a stop signal comes."""
        if self.demonstrate is None:
            return
        demo = self.demonstrate(self._environ, self.state.logs / "demo.log")
        try:
            supervisor.wait_for(lambda: alarms.stops > 0 or demo.has_ended)
            if demo.has_ended:
                demo.report()
        finally:
            demo.end()

    def _servers(self, ports: dict[str, int]) -> tuple[Postgres | None, Valkey | None]:
        """The servers to start; None for one that the environment names."""
        postgres = Postgres(
            self.state.root,
            tcp=True,
            port=ports["postgres"],
            password=self.state.secret("postgres-superuser-password"),
            log=self.state.logs / "postgresql.log",
        )
        valkey = Valkey(
            self.state.root,
            password=self.state.secret("valkey-password"),
            port=ports["valkey"],
            log=self.state.logs / "valkey.log",
        )
        return (
            None if os.environ.get("DATABASE_URL") else postgres,
            None if os.environ.get("REDIS_URL") else valkey,
        )

    def _told(
        self, postgres: Postgres | None, valkey: Valkey | None, ports: dict[str, int]
    ) -> dict[str, str]:
        """What the programs are told, by the addresses of this moment."""
        password = self.state.secret("postgres-password")
        return environment(
            self.state,
            database_url=postgres.url(DATABASE, role=OWNER, password=password)
            if postgres
            else os.environ["DATABASE_URL"],
            redis_url=valkey.url if valkey else os.environ["REDIS_URL"],
            public_url=os.environ.get("CLEARHOUSE_PUBLIC_URL", self._address),
            ports=ports,
        )

    def _await(
        self,
        supervisor: Supervisor,
        postgres: Postgres | None,
        valkey: Valkey | None,
        ports: dict[str, int],
    ) -> dict[str, str]:
        """Wait for the servers; keep and return what the programs are told.

        A server that lost the race for its port was started again, as another pid elsewhere.
        """
        if postgres:
            postgres.start()
            password = self.state.secret("postgres-password")
            postgres.provide(DATABASE, owner=OWNER, password=password)
            ports["postgres"] = postgres.port
        if valkey:
            valkey.start()
            ports["valkey"] = valkey.port
        supervisor.record()
        told = self._told(postgres, valkey, ports)
        self.state.keep_ports(ports)
        self.state.remember(KEPT, told)
        return told

    def _programs(self, supervisor: Supervisor, environ: Mapping[str, str]) -> None:
        logs_folder = self.state.logs
        supervisor.launch(
            [
                RunningProgram(one, environ=environ, logs_folder=logs_folder, image=self.image)
                for one in self.programs
            ]
        )
        if not supervisor.wait_for(lambda: readiness.alive(self.port), self.alive_limit_s):
            raise Refusal(
                f"The web server did not answer at {self._address}/healthz within "
                f"{self.alive_limit_s:g} s. Last words:\n{supervisor.last_words()}"
            )

    def _ready(self, supervisor: Supervisor) -> bool:
        ready = supervisor.wait_for(lambda: readiness.ready(self.port), self.ready_limit_s)
        if not ready:
            code, body = readiness.answer(self.port, "/readyz")
            say(
                f"It runs, but is not ready after {self.ready_limit_s:g} s: {self._address}/readyz "
                f"answers {code}: {body.strip()}\nThe logs are in {self.state.logs}."
            )
        return ready

    def _closing(self, first: dict[str, Any], is_ready: bool) -> Closing:
        operator = first.get("operator") or {}
        return Closing(
            address=self._address,
            username=operator.get("username", ""),
            password=operator.get("password") or self.state.secret("operator-password"),
            workspace=str(first.get("workspace", "")),
            api_key=first.get("api_key"),
            data=str(self.state.root),
            seconds=self.steps.seconds,
            ready=is_ready,
        )

    @property
    def _address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


def end_leftovers(state: State) -> None:
    """End programs of a killed owner: by pid and instant of birth, so nobody else's."""
    for one in state.recorded():
        if one.kind == "program" and one.alive:
            say(f"Ending {one.name} (pid {one.pid}), left behind by an `up` that was killed.")
            if not end(one.pid, LEFTOVER_STEPS):
                raise Refusal(
                    f"{one.name} (pid {one.pid}) of an earlier run does not end. Look why with "
                    f"`ps -fp {one.pid}`, end it, and start again."
                )
