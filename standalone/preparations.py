"""What is done to the database between its start and the first program, each time anew.

Each is a Django command in an interpreter of its own, so that the supervisor stays small and
single-threaded. All are harmless to repeat.
"""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from standalone import logs
from standalone.errors import Refusal
from standalone.places import ROOT
from standalone.programs import NO_POOL, managed
from standalone.state import State

PROVISIONED = "provisioned"


def prepare(state: State, environ: Mapping[str, str]) -> dict[str, Any]:
    """Bring the schema up to date, make the first login and key once, register the tools.

    The key is told once, when it is made, so it is kept among the secrets with the identity
    of its database; on that database later starts return it and make no other. Where neither
    the code nor the database has changed since, there is nothing to do.
    """
    database, code = identity(environ["DATABASE_URL"]), code_stamp(environ)
    kept = state.recall(PROVISIONED)
    if kept.get("database") != database:
        kept = {}
    if kept.get("api_key") and kept.get("code") == code:
        return kept
    password = state.secret_file("operator-password")
    words = ["provision", "--json", "--migrate", "--operator-password-file", str(password)]
    words += ["--tools-only"] if kept.get("api_key") else []
    made = told(words, environ, state.logs / "provision.log")
    first = {**kept, **made, "database": database, "code": code}
    state.remember(PROVISIONED, first)
    return first


def code_stamp(environ: Mapping[str, str]) -> str:
    """What tells one state of the code and of the named tool modules from another."""
    modules = environ.get("CLEARHOUSE_TOOL_MODULES", "")
    if modules:
        # Modules of other projects may lie anywhere: theirs are registered at each start.
        modules += str(time.time_ns())
    parts = [modules, sys.version]
    for folder in ("config", "ledger", "executors", "recovery", "sandbox", "standalone"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            found = file.stat()
            parts.append(f"{file.relative_to(ROOT)} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def told(words: list[str], environ: Mapping[str, str], log: Path) -> dict[str, Any]:
    """The JSON that a command writes as its last line."""
    said = run(managed(*words), environ, log).strip().splitlines()
    try:
        return dict(json.loads(said[-1]))
    except (IndexError, ValueError):
        raise Refusal(f"`{words[0]}` did not end with a line of JSON; its log is {log}.") from None


def identity(database_url: str) -> str:
    """What tells one database from another: cluster and name, wherever it listens today.

    A host that hides its cluster's number is told by its address instead.
    """
    question = (
        "select system_identifier::text || '/' || current_database() from pg_control_system()"
    )
    try:
        with psycopg.connect(database_url, connect_timeout=5) as link:
            row = link.execute(question).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        row = None
    return str(row[0]) if row else database_url.rpartition("@")[2]


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
