"""One embedded PostgreSQL server: start, stop, restart, kill, and where it answers.

The pid is the postmaster's own in every way of starting it. The server stands in a session
of its own, so that Ctrl-C reaches its owner alone, and is bonded to the thread that starts
it: a killed owner takes it along by a clean, fast shutdown. Call `start` from the main
thread. With `tcp` it listens on the loopback interface under SCRAM passwords, because trust
there hands the superuser to every local account; without, on a socket in a private folder.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import psycopg
from psycopg import sql

from standalone import logs, pids, postgres_cluster
from standalone.bonds import bonded
from standalone.errors import Refusal
from standalone.ports import LOOPBACK, free_port, keep_or_choose
from standalone.postgres_binaries import Binaries, Way, choose, plain_environment, reachable
from standalone.server import Server
from standalone.waiting import until

START_LIMIT_S = 120  # recovery after a crash reads the log since the last checkpoint
FAST_STOP_S = 15
SOCKET_PATH_MAX = 80  # bytes; the kernel ends such addresses at 107, name of the socket included
RACES_MAX = 30  # with the pause about ten seconds in all
RACE_PAUSE_S = 0.3
# The port went to another program; or a killed server's children linger; or it is dead but not
# yet waited for by whoever inherited it, which PostgreSQL takes for alive.
CURED_BY_ANOTHER_START = (
    "could not bind",
    "could not create any TCP",
    "shared memory block",
    'lock file "postmaster.pid" already exists',
)

SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "128MB",
    "deadlock_timeout": "1s",
    "log_lock_waits": "on",
    "jit": "off",  # ledger statements are short; compiling them costs more than it saves
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%a ",
    # Linux tells a server that its client is gone; elsewhere a value above 0 is refused.
    **({"client_connection_check_interval": "2s"} if sys.platform == "linux" else {}),
}
FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Postgres(Server):
    """A server over `folder`/postgres. `durable=False` is for tests that never crash it.

    `port` is a wish, `password` the superuser's, needed with `tcp`. `way` forces one way of
    starting. Start, stop and restart raise Refusal with a sentence.
    """

    name = "postgresql"
    spoken = "PostgreSQL"
    ends_by = signal.SIGINT  # a fast shutdown

    def __init__(
        self,
        folder: Path,
        *,
        durable: bool = True,
        tcp: bool = False,
        port: int | None = None,
        password: str = "",
        log: Path | None = None,
        way: Way | None = None,
    ) -> None:
        super().__init__()
        if tcp and not password:
            raise ValueError("A server on TCP needs a password; give `password`.")
        self.folder = folder.resolve()
        self.data_folder = self.folder / "postgres"
        self.log = log or self.folder / "postgres.log"
        # On a socket the number is only part of a file's name.
        self.port = (port or free_port()) if tcp else 5432
        self.role = "postgres" if tcp else "clearhouse"
        self._durable, self._tcp, self._password = durable, tcp, password if tcp else ""
        self._forced_way = way
        self._programs: tuple[Binaries, Way] | None = None
        self._log_begins = 0  # where the log of the present run starts, in bytes
        self._socket_folder: Path | None = None

    # --- life ---

    def _start(self) -> None:
        """Make the data folder where there is none, start, and return when it answers."""
        for _ in range(RACES_MAX):
            if not self.running:
                self.launch()
            until(lambda: not self.running or self._answers(), limit_s=START_LIMIT_S)
            if self.running:
                return
            self._consider_another_start()
        last_words = logs.tail(self.log, since_byte=self._log_begins)
        raise Refusal(
            f"PostgreSQL ended {RACES_MAX} times at its start. If it names a pid that `ps` "
            "calls defunct, this container has no init to bury its dead: restart it, and start "
            f"it with an init (`docker run --init`). Last words:\n{last_words}"
        )

    def launch(self) -> None:
        """Start the server without waiting for it: what a supervisor does after a crash."""
        binaries, way = self._prepare()
        command = [*way.prefix, *bonded([binaries.command("postgres")], signal.SIGINT)]
        for name, value in self._settings().items():
            command += ["-c", f"{name}={value}"]
        with logs.opened(self.log) as log:
            self._log_begins = log.tell()
            self._child = subprocess.Popen(  # noqa: S603
                [*command, "-D", str(self.data_folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=plain_environment(),
                start_new_session=True,
                **way.identity(),
            )

    def stop(self, grace_s: float = FAST_STOP_S) -> None:
        """Shut down fast (SIGINT); after the grace at once (SIGQUIT), then SIGKILL."""
        self._shut_down(signal.SIGINT, grace_s)
        if self._socket_folder and self._socket_folder.parent != self.folder:
            shutil.rmtree(self._socket_folder, ignore_errors=True)
        self._socket_folder = None

    def restart(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Restart at the same address. `immediate` is a crash: recovery runs on the way up."""
        self._shut_down(signal.SIGINT if mode == "fast" else signal.SIGQUIT, FAST_STOP_S)
        self.start()

    def kill(self) -> None:
        """SIGKILL the postmaster and wait until its children noticed; nothing is flushed."""
        children = pids.children(self.pid)
        pids.send(self.pid, signal.SIGKILL)
        self.collect()
        gone = until(lambda: not any(map(pids.alive, children)), limit_s=20)
        if not gone:
            raise Refusal("Children of a killed PostgreSQL are still there after 20 s.")

    # --- questions ---

    def url(self, database: str = "postgres", *, role: str = "", password: str = "") -> str:
        """Where `database` answers, for the superuser unless a role is named."""
        user = quote(role or self.role)
        if not self._tcp:
            return f"postgresql://{user}@/{quote(database)}?host={self.socket_folder}"
        secret = quote(password or self._password, safe="")
        return f"postgresql://{user}:{secret}@{LOOPBACK}:{self.port}/{quote(database)}"

    @property
    def socket_folder(self) -> Path:
        """The private folder of the socket; a short one, for such addresses are short."""
        if self._socket_folder is None:
            inside = self.folder / "socket"
            if len(str(inside)) <= SOCKET_PATH_MAX:
                inside.mkdir(mode=0o700, exist_ok=True)
                self._socket_folder = inside
            else:
                self._socket_folder = Path(tempfile.mkdtemp(prefix="clh-", dir="/tmp"))
        return self._socket_folder

    def provide(self, database: str, *, owner: str, password: str) -> None:
        """Make a role without special rights and a database it owns; harmless to repeat."""
        with psycopg.connect(self.url(), autocommit=True) as link:
            known = link.execute("select 1 from pg_roles where rolname = %s", [owner]).fetchone()
            verb = sql.SQL("alter" if known else "create")
            link.execute(
                sql.SQL("{} role {} login password {}").format(
                    verb, sql.Identifier(owner), sql.Literal(password)
                )
            )
            made = link.execute("select 1 from pg_database where datname = %s", [database])
            if not made.fetchone():
                link.execute(
                    sql.SQL("create database {} owner {}").format(
                        sql.Identifier(database), sql.Identifier(owner)
                    )
                )

    # --- steps ---

    def _prepare(self) -> tuple[Binaries, Way]:
        """Choose programs, make or check the data folder, and end a leftover of it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._programs is None:
            self._programs = choose(self.folder, self._forced_way)
        binaries, way = self._programs
        reachable(self.folder, way)
        if postgres_cluster.exists(self.data_folder):
            postgres_cluster.check_version(self.data_folder, binaries)
            postgres_cluster.end_leftover(self.data_folder)
        else:
            postgres_cluster.make(
                self.data_folder, binaries, way,
                superuser=self.role, password=self._password, durable=self._durable,
            )  # fmt: skip
        return binaries, way

    def _settings(self) -> dict[str, str]:
        settings = SETTINGS | ({} if self._durable else FORGETFUL)
        if self._tcp:
            # Clients know the address from the first start on, so it stays even when taken.
            if not self._address_is_known:
                self.port = keep_or_choose(self.port)
            where = {"listen_addresses": LOOPBACK, "unix_socket_directories": ""}
        else:
            assert self._programs is not None  # noqa: S101 - set by _prepare
            self._programs[1].hand_over(self.socket_folder)
            where = {"listen_addresses": "", "unix_socket_directories": str(self.socket_folder)}
        return settings | where | {"port": str(self.port)}

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError as error:
            if "authentication failed" in str(error):
                raise Refusal(
                    "PostgreSQL runs, but refuses the superuser's password that is kept beside "
                    f"{self.folder}. Bring the secrets folder of this data folder back, or move "
                    "both away to begin with an empty ledger."
                ) from error
            return False
        self._address_is_known = True
        return True

    def _consider_another_start(self) -> None:
        """Return when a new start can cure why this one ended; raise Refusal when it cannot."""
        self.collect()
        said = logs.tail(self.log, since_byte=self._log_begins)
        if not any(cause in said for cause in CURED_BY_ANOTHER_START):
            raise Refusal(f"PostgreSQL ended at its start; its last words:\n{said}")
        time.sleep(RACE_PAUSE_S)

    def _shut_down(self, first: signal.Signals, grace_s: float) -> None:
        self._end((first, grace_s), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))


@contextmanager
def temporary_postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """A throw-away server on a socket, in a folder that is deleted with it: for tests."""
    folder = Path(tempfile.mkdtemp(prefix="clh-pg-"))
    try:
        with Postgres(folder, durable=durable) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)
