"""`manage.py bench pages`, small: an installation is filled, and every page of it can be read."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from dashboard.context import RAIL

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    words = ["bench", "pages", "--calls", "400", "--incidents", "20", "--rounds", "1", "--json"]
    words += ["--data", str(tmp_path_factory.mktemp("pages"))]
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT, env=os.environ | {"CLEARHOUSE_DATABASE_POOL": "0"}, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_no_page_breaks(report: dict[str, Any]) -> None:
    assert [each["path"] for each in report["pages"] if each["status"] >= 500] == []


def test_every_page_of_a_row_finds_its_row(report: dict[str, Any]) -> None:
    lost = [each["path"] for each in report["pages"] if each["status"] == 404]
    *silent, result, looked_for = lost
    assert all(each.endswith("/partial") for each in silent)  # of attempts that said nothing yet
    assert result.endswith("/result")  # of a call that has none yet
    assert looked_for == "/go?q=nothing-like-it"


def test_every_list_of_the_rail_is_read(report: dict[str, Any]) -> None:
    read = {each["path"] for each in report["pages"]}
    assert {reverse(name) for name, _ in RAIL} <= read


def test_each_page_says_what_it_asked_of_postgresql(report: dict[str, Any]) -> None:
    (inbox,) = (each for each in report["pages"] if each["path"] == "/inbox")
    assert inbox["queries"] > 5
    assert inbox["rows"] >= 20
