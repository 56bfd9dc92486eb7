"""What is done to the database between its start and the first program, each time anew.

Each is a Django command in an interpreter of its own, so that the supervisor stays small and
single-threaded. All are harmless to repeat.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from standalone import logs
from standalone.errors import Refusal
from standalone.places import ROOT
from standalone.programs import NO_POOL, managed
from standalone.state import State

PROVISIONED = "provisioned"


def migrate(environ: Mapping[str, str], log: Path) -> None:
    """Bring the schema up to date."""
    run(managed("migrate", "--noinput"), environ, log)


def provision(state: State, environ: Mapping[str, str]) -> dict[str, Any]:
    """Make workspace, operator and agent key where they are missing; returns what is known.

    The key is told once, when it is made, so it is kept among the secrets; on later starts
    the kept one is returned. None as `api_key`: it was made elsewhere and is not known here.
    """
    password = state.secret_file("operator-password")
    command = managed("provision", "--json", "--operator-password-file", str(password))
    told = json.loads(run(command, environ, state.logs / "provision.log").splitlines()[-1])
    kept = state.recall(PROVISIONED)
    if not told.get("api_key") and kept.get("workspace") == told.get("workspace"):
        told["api_key"] = kept.get("api_key")
    state.remember(PROVISIONED, told)
    return dict(told)


def demonstrate(environ: Mapping[str, str], log: Path) -> None:
    """Seed interrupted calls, so that the console is not empty."""
    run(managed("demo"), environ, log)


def run(command: tuple[str, ...], environ: Mapping[str, str], log: Path) -> str:
    """Run to the end; returns standard output. Raises Refusal with the last words of `log`.

    In a session of its own: Ctrl-C reaches the supervisor alone, which then ends it.
    """
    with logs.opened(log) as file:
        done = subprocess.run(  # noqa: S603
            command,
            stdout=subprocess.PIPE,
            stderr=file,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**environ, **NO_POOL},
            start_new_session=True,
        )
        file.write(done.stdout.encode() if done.returncode else b"")
    if done.returncode:
        words = " ".join(command[1:])
        raise Refusal(
            f"`{words}` failed ({done.returncode}), so nothing was started. {log} ends with:\n"
            + logs.tail(log)
        )
    return done.stdout
