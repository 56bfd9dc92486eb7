"""Secrets in containers: completed from files, never configured."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from standalone import compose_secrets, container
from standalone.places import ROOT


def test_the_password_of_a_file_completes_the_url(folder: Path) -> None:
    (folder / "password").write_text("p/ß:@\n")
    environ = {
        "DATABASE_URL": "postgresql://clearhouse@postgres:5432/clearhouse?x=1",
        "DATABASE_PASSWORD_FILE": str(folder / "password"),
        "REDIS_URL": "redis://valkey:6379/0",
        "REDIS_PASSWORD_FILE": str(folder / "password"),
    }

    whole = container.completed(environ)

    secret = "p%2F%C3%9F%3A%40"
    assert whole["DATABASE_URL"] == f"postgresql://clearhouse:{secret}@postgres:5432/clearhouse?x=1"
    assert whole["REDIS_URL"] == f"redis://:{secret}@valkey:6379/0"


def test_urls_without_a_file_stay_as_they_are() -> None:
    environ = {"DATABASE_URL": "postgresql://me:mine@db/clearhouse"}

    assert container.completed(environ) == environ


def test_it_becomes_the_command_and_keeps_its_exit_code(folder: Path) -> None:
    (folder / "password").write_text("secret")
    code = "import os, sys; print(os.environ['REDIS_URL']); sys.exit(9)"
    command = [sys.executable, "-m", "standalone.container", sys.executable, "-c", code]
    environ = {"REDIS_URL": "redis://valkey/0", "REDIS_PASSWORD_FILE": str(folder / "password")}

    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environ)

    assert run.stdout == "redis://:secret@valkey/0\n"
    assert run.returncode == 9


def test_secret_files_are_made_once_in_a_closed_folder(folder: Path) -> None:
    closed = folder / ".secrets"

    first = compose_secrets.make(closed)
    kept = {path.name: path.read_text() for path in closed.iterdir()}

    assert set(first) == set(kept)
    assert compose_secrets.make(closed) == []
    assert {path.name: path.read_text() for path in closed.iterdir()} == kept
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_the_broker_and_its_clients_have_the_same_password(folder: Path) -> None:
    compose_secrets.make(folder / ".secrets")

    password = (folder / ".secrets" / "valkey-password").read_text()
    assert f"requirepass {password}\n" in (folder / ".secrets" / "valkey.conf").read_text()


@pytest.mark.parametrize("name", [*compose_secrets.RANDOM, "valkey.conf"])
def test_every_secret_that_compose_names_is_made(name: str) -> None:
    assert f"{name}: {{file: .secrets/{name}}}" in (ROOT / "compose.yaml").read_text()
