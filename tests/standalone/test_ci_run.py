"""`.ci/run` in a checkout whose tools only say their names: order, and the first failure."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from standalone.places import ROOT

TOOLS = ("ruff", "mypy", "lint-imports", "deptry")
STEPS = [
    "system packages",
    "bootstrap",
    "format",
    "lint",
    "types",
    "import contracts",
    "dependencies",
    "tests",
]


def program(path: Path, code: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "ran $(basename "$0") $*"\nexit {code}\n')
    path.chmod(0o755)


@pytest.fixture
def checkout(folder: Path) -> Path:
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    for tool in TOOLS:
        program(folder / ".venv" / "bin" / tool)
    for command in ("python3", "chromium", "bwrap"):
        program(folder / "path" / command)
    return folder


def run(checkout: Path) -> "subprocess.CompletedProcess[str]":
    environ = {**os.environ, "PATH": f"{checkout}/path:{os.environ['PATH']}"}
    return subprocess.run(
        [str(checkout / ".ci" / "run"), "-x"], capture_output=True, text=True, env=environ, cwd="/"
    )


def test_each_step_is_named_with_its_seconds_and_tests_come_last(checkout: Path) -> None:
    done = run(checkout)

    lines = done.stdout.splitlines()
    ok = [line.split(": ok, ")[0] for line in lines if ": ok, " in line]
    assert done.returncode == 0, done.stderr
    assert ok == [f"=== {step}" for step in STEPS]
    assert "ran python3 manage.py verify -- -x" in lines
    assert lines[-1].startswith("=== all steps ok, ")


def test_the_first_failure_ends_the_run_with_its_code(checkout: Path) -> None:
    program(checkout / ".venv" / "bin" / "mypy", code=3)

    done = run(checkout)

    assert done.returncode == 3
    assert "=== types: failed with 3" in done.stderr
    assert "lint-imports" not in done.stdout
