"""The drill as an operator runs it: one command, a report that is kept, an exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from standalone.places import MANAGE, ROOT

pytestmark = pytest.mark.acceptance

LIMIT_S = 240


def test_an_operator_rehearses_a_read_and_an_irreversible_send(tmp_path: Path) -> None:
    words = ["drill", "--only", "1", "--only", "6", "--json", "--data", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(MANAGE), *words],
        capture_output=True, text=True, cwd=ROOT, timeout=LIMIT_S,
    )  # fmt: skip

    report = json.loads(done.stdout)
    assert done.returncode == 0, report
    assert [(row["number"], row["passed"]) for row in report["rows"]] == [("1", True), ("6", True)]
    (folder,) = (tmp_path / "drills").iterdir()
    assert json.loads((folder / "report.json").read_text()) == report
    for row in report["rows"]:
        assert json.loads(Path(row["verdict"]).read_text())["started"]["answer"] == "yes"
