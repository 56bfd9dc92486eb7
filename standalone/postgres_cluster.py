"""The data folder of one PostgreSQL: made whole or not at all, and never deleted.

It is made beside its place and renamed into it, so a cut-off `initdb` leaves nothing that
looks like a record. An older major version is refused, not converted. A server that an
earlier, killed supervisor left behind is believed only when `postmaster.pid` names a living
pid whose command line has this very folder; the stale file itself is PostgreSQL's matter.
"""

import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from standalone import pids
from standalone.errors import Refusal
from standalone.postgres_binaries import Binaries, Way, plain_environment

BUILTIN_LOCALE_SINCE = 17
LEFTOVER_STEPS = ((signal.SIGINT, 15.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))


def exists(folder: Path) -> bool:
    return (folder / "PG_VERSION").exists()


def make(
    folder: Path, binaries: Binaries, way: Way, *, superuser: str, password: str, durable: bool
) -> None:
    """Run `initdb` for `folder`. With a password every login is by SCRAM, without by trust."""
    making = folder.with_name(folder.name + ".making")
    # Not yet a record: it becomes one by the rename below, and a cut-off one never does.
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    way.hand_over(making)
    with tempfile.NamedTemporaryFile("w", prefix="clh-pw-") as secret:
        secret.write(password + "\n")
        secret.flush()
        way.hand_over(Path(secret.name))
        options = _options(binaries, superuser, secret.name if password else "", durable)
        _run(binaries, way, [*options, "-D", str(making)])
    making.rename(folder)


def check_version(folder: Path, binaries: Binaries) -> None:
    """Refuse a data folder of another major version; raises Refusal with both ways out."""
    found = (folder / "PG_VERSION").read_text().strip()
    if found != str(binaries.major):
        raise Refusal(
            f"The data folder {folder} was written by PostgreSQL {found}, and these programs are "
            f"PostgreSQL {binaries.major}: they cannot read it, and nothing was changed. Either "
            f"dump it with PostgreSQL {found} (`pg_dumpall`), move the folder away, start again "
            "and load the dump; or move it away and begin with an empty ledger."
        )


def leftover(folder: Path) -> int | None:
    """The pid of a server that still runs on `folder`, or None."""
    try:
        pid = int((folder / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None
    ours = pids.alive(pid) and str(folder) in pids.command_line(pid)
    return pid if ours else None


def end_leftover(folder: Path) -> int | None:
    """Stop a server that still runs on `folder`; returns its pid, or None when none did."""
    pid = leftover(folder)
    if pid is not None and not pids.end(pid, LEFTOVER_STEPS):
        raise Refusal(
            f"An earlier PostgreSQL (pid {pid}) still holds {folder} and does not end. Look why "
            f"with `ps -fp {pid}`, end it, and start again."
        )
    return pid


def _options(binaries: Binaries, superuser: str, secret: str, durable: bool) -> list[str]:
    options = [f"--username={superuser}", "--encoding=UTF8"]
    if binaries.major >= BUILTIN_LOCALE_SINCE:
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    else:
        options += ["--locale=C.UTF-8"]
    if secret:
        options += ["--auth=scram-sha-256", f"--pwfile={secret}"]
    else:
        options += ["--auth=trust"]
    return options + (["--data-checksums"] if durable else ["--no-sync"])


def _run(binaries: Binaries, way: Way, options: list[str]) -> None:
    made = subprocess.run(  # noqa: S603
        [*way.prefix, binaries.command("initdb"), *options],
        capture_output=True,
        text=True,
        cwd="/",
        env=plain_environment(),
        **way.identity(),
    )
    if made.returncode:
        said = (made.stderr or made.stdout).strip() or f"it ended with {made.returncode}"
        raise Refusal(f"initdb could not make a data folder ({way.name}): {said}")
