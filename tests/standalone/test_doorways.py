"""The doors: `manage.py`'s own and Django's lead to the same three commands."""

import subprocess
import sys

import pytest

from standalone import entry
from standalone.places import MANAGE, ROOT


def ask(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(MANAGE), *words], capture_output=True, text=True, cwd=ROOT
    )


@pytest.mark.parametrize("name", entry.COMMANDS)
def test_help_needs_no_database(name: str) -> None:
    run = ask(name, "--help")

    assert run.returncode == 0
    assert entry.COMMANDS[name] in " ".join(run.stdout.split())


def test_a_command_that_is_not_ours_is_left_to_django() -> None:
    assert not entry.knows(["migrate"])
    assert not entry.knows([])


def test_status_answers_while_settings_are_broken() -> None:
    import os

    run = subprocess.run(
        [sys.executable, str(MANAGE), "status", "--data", "/nonexistent/state"],
        capture_output=True,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "no.such.module"},
    )

    assert run.returncode == 3
    assert "does not run" in run.stdout
