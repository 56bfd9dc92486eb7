"""The demo beside a console that runs: its end is said, its failure ends nothing else."""

import sys
from pathlib import Path

import pytest

from standalone.demonstration import Demonstration
from tests import waits


def shown(tmp_path: Path, program: str) -> Demonstration:
    return Demonstration({}, tmp_path / "demo.log", command=(sys.executable, "-c", program))


def test_its_last_line_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo = shown(tmp_path, "print('The demo is ready (3 s).')")
    waits.until(lambda: demo.has_ended, what="the demo to end")
    demo.report()
    assert capsys.readouterr().err.splitlines()[-1] == "The demo is ready (3 s)."


def test_a_demo_that_stops_early_says_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = shown(tmp_path, "raise SystemExit('No workers.')")
    waits.until(lambda: demo.has_ended, what="the demo to end")
    demo.report()
    said = capsys.readouterr().err
    assert "everything else goes on" in said
    assert said.rstrip().endswith("No workers.")


def test_it_is_ended_with_what_it_plays_on(tmp_path: Path) -> None:
    demo = shown(tmp_path, "import time; time.sleep(60)")
    assert not demo.has_ended
    demo.end()
    assert demo.has_ended
