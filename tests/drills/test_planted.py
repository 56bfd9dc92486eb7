"""Planted bugs stand where the product has functions, and nowhere outside a drill."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drills.planted.bugs import BUGS
from drills.planted.running import PLANTED
from drills.planted.scenes import SCENES
from ledger import faults

PLANT_ALL = """
from drills.planted import bugged
from drills.planted.bugs import BUGS
for name in BUGS:
    bugged.plant(name)
print("planted", len(BUGS))
"""


def run(*words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", **environ},
    )


def test_every_bug_is_planted_in_some_program_and_has_its_scene() -> None:
    assert set(PLANTED) == set(BUGS)
    assert {scene for _, scene in PLANTED.values()} == set(SCENES)


def test_there_are_ten_bugs_or_more() -> None:
    assert len(BUGS) >= 10


def test_what_each_bug_replaces_exists() -> None:
    # mypy knows only that the names exist, so each bug is planted once for real.
    done = run("-c", PLANT_ALL)
    assert done.stdout == f"planted {len(BUGS)}\n", done.stderr


@pytest.mark.parametrize("name", ["no_self_fence"])
def test_a_bug_cannot_be_planted_outside_a_drill(name: str, tmp_path: Path) -> None:
    words = ("-m", "drills.planted.bugged", name, "-c", "print('ran')")
    done = run(*words, **{faults.VARIABLE: str(tmp_path)})
    assert done.returncode != 0
    assert "does not name the folder of a drill" in done.stderr
    assert "ran" not in done.stdout


def test_the_product_knows_no_bug() -> None:
    root = Path(faults.__file__).parents[1]
    texts = "".join(
        file.read_text()
        for name in ("ledger", "executors", "recovery", "dashboard", "config")
        for file in (root / name).rglob("*.py")
    )
    assert [name for name in BUGS if name in texts] == []
