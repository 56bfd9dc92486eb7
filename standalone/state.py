"""The state folder (`.clearhouse/`): data, logs, ports, secrets, and who runs on it now.

One supervisor owns a folder: it holds the lock for as long as it lives, and the kernel
frees it with the owner, so a stale lock cannot exist. What runs is recorded as pid and
instant of birth, so that the next owner ends exactly what a killed one left, and nothing
else. Secrets are made once, readable by the owner alone, and never printed in an error.
"""

import fcntl
import json
import os
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from standalone import pids
from standalone.errors import Refusal
from standalone.ports import keep_or_choose
from standalone.waiting import until

SECRETS = {  # name -> bytes of randomness
    "postgres-superuser-password": 24,
    "postgres-password": 24,
    "valkey-password": 24,
    "secret-key": 48,
    "key-pepper": 32,
    "operator-password": 12,
}
PORTS = ("postgres", "valkey", "sandbox_smtp", "sandbox_http")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One server or program as its supervisor recorded it; `started_at` is UTC, ISO 8601."""

    name: str
    kind: str  # "server" or "program"
    pid: int
    birth: str
    started_at: str
    restarts: int = 0

    @property
    def alive(self) -> bool:
        """Whether this very run still goes on; another program with its number is not it."""
        return pids.alive(self.pid) and pids.birth(self.pid) == self.birth


class State:
    """The folder at `root`; made, with its secrets, by `prepare`."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.logs = self.root / "logs"
        self._lock: IO[str] | None = None

    def prepare(self) -> None:
        """Make what is missing: folders 0700, secrets 0600. Keeps all that exists."""
        for folder in (self.root, self.logs, self.root / "secrets"):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
            except OSError as error:
                raise Refusal(
                    f"The state folder {folder} cannot be made or made private ({error}). "
                    "Choose one of your own with `--data DIR`."
                ) from error
        for name, size_bytes in SECRETS.items():
            if not self.secret_file(name).exists():
                write_private(self.secret_file(name), secrets.token_urlsafe(size_bytes))

    # --- secrets ---

    def secret_file(self, name: str) -> Path:
        return self.root / "secrets" / name

    def secret(self, name: str) -> str:
        return self.secret_file(name).read_text().strip()

    def remember(self, name: str, value: dict[str, Any]) -> None:
        """Keep a JSON document among the secrets."""
        write_private(self.secret_file(name + ".json"), json.dumps(value))

    def recall(self, name: str) -> dict[str, Any]:
        return dict(read_json(self.secret_file(name + ".json")))

    # --- ports ---

    def choose_ports(self) -> dict[str, int]:
        """A port for each of `PORTS`: the last run's where it is free, else another."""
        known = self.ports()
        chosen = {name: keep_or_choose(known.get(name)) for name in PORTS}
        self.keep_ports(chosen)
        return chosen

    def ports(self) -> dict[str, int]:
        return dict(read_json(self.root / "ports.json"))

    def keep_ports(self, ports: dict[str, int]) -> None:
        write_private(self.root / "ports.json", json.dumps(ports))

    # --- who runs here ---

    def lock(self, **owner: Any) -> None:
        """Own this folder for as long as we live; raises Refusal that says who owns it."""
        lock = open(self.root / "lock", "a+")
        # A `status` that looks holds it for an instant; an owner holds it for life.
        if not until(lambda: _locked(lock), limit_s=0.5):
            lock.close()
            raise Refusal(self._taken())
        lock.truncate(0)
        lock.write(json.dumps({"pid": os.getpid(), "started_at": now(), **owner}))
        lock.flush()
        self._lock = lock

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def owner(self) -> dict[str, Any] | None:
        """The living supervisor of this folder, as it described itself; None without one."""
        try:
            with open(self.root / "lock") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    return read_json(self.root / "lock") or {"pid": None}
        except OSError:
            pass
        return None

    def record(self, running: list[Recorded]) -> None:
        write_private(self.root / "running.json", json.dumps([asdict(one) for one in running]))

    def recorded(self) -> list[Recorded]:
        rows = read_json(self.root / "running.json", default=[])
        return [Recorded(**row) for row in rows]

    def _taken(self) -> str:
        owner = self.owner() or {}
        where = f" at {owner['address']}" if owner.get("address") else ""
        return (
            f"Clearhouse already runs on {self.root}{where}, pid {owner.get('pid')}, since "
            f"{owner.get('started_at', 'just now')}. Use that one, stop it with Ctrl-C or "
            f"`kill {owner.get('pid')}`, or start another with `--data DIR --port N`."
        )


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def read_json(path: Path, default: Any = None) -> Any:
    """The document at `path`; `default` (an empty dict) when it is missing or cut short."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {} if default is None else default


def write_private(path: Path, text: str) -> None:
    """Write a file for the owner's eyes, whole or not at all."""
    making = path.with_name(path.name + ".new")
    making.unlink(missing_ok=True)
    descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    making.replace(path)
