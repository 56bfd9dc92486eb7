"""Drills from a page: who may, one at a time, nothing of this installation's environment."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from dashboard import drills
from dashboard.models import Deed
from tests import cast, waits
from tests.dashboard.watching import once, signed_in, text_of

pytestmark = pytest.mark.django_db

STAND_IN = """
import json, os, signal, sys
print("environment", json.dumps(sorted(os.environ)), flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
signal.pause()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder, and in place of `manage.py` a program that says what it was given."""
    (tmp_path / "manage.py").write_text(STAND_IN)
    monkeypatch.setattr(settings, "BASE_DIR", tmp_path)
    monkeypatch.setattr(settings.ENVIRONMENT, "data", tmp_path / "state")
    return tmp_path / "state" / "drills"


@pytest.fixture
def ended(folder: Path) -> Iterator[None]:
    """Whatever a test started is ended with it."""
    yield
    run = drills.latest()
    if run is not None and run.is_alive:
        os.kill(run.pid, signal.SIGKILL)


@pytest.fixture
def alma(acme: cast.Acme) -> Any:
    return cast.a_person("alma", acme.workspace, "operator")


def started(client: Any, key: str = "press") -> Any:
    return client.post("/drills", once(key) | {"kind": "tests"})


def kept(folder: Path, name: str, **report: Any) -> None:
    (folder / name).mkdir(parents=True)
    if report:
        (folder / name / "report.json").write_text(json.dumps(report))


@pytest.mark.usefixtures("ended")
def test_a_drill_is_started_once_and_gets_nothing_of_our_environment(
    alma: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://live")
    monkeypatch.setenv("CLEARHOUSE_SECRET_KEY", "secret")
    client = signed_in(alma)
    assert started(client).status_code == 302
    run = drills.latest()
    assert run is not None
    waits.until(lambda: "environment" in run.said, what="the drill to speak", limit_s=20)
    assert "DATABASE_URL" not in run.said
    assert "CLEARHOUSE" not in run.said
    assert started(client).status_code == 302  # the same press again
    assert drills.latest() == run
    assert started(client, "another").status_code == 409
    assert [each.deed for each in Deed.objects.all()] == ["started a drill: tests"]


@pytest.mark.usefixtures("ended")
def test_a_drill_can_be_stopped_and_then_another_begins(alma: Any, folder: Path) -> None:
    client = signed_in(alma)
    started(client)
    run = drills.latest()
    assert run is not None
    waits.until(lambda: "environment" in run.said, what="the drill to speak", limit_s=20)
    assert client.post("/drills/stop").status_code == 302
    waits.until(lambda: not run.is_alive, what="the drill to end", limit_s=20)
    assert client.post("/drills/stop").status_code == 404
    assert started(client, "another").status_code == 302


def test_a_viewer_starts_no_drill(acme: cast.Acme, folder: Path) -> None:
    client = signed_in(acme.vera)
    assert started(client).status_code == 403
    assert drills.latest() is None
    assert 'aria-disabled="true"' in text_of(client.get("/drills"))


def test_a_kind_that_there_is_not_starts_nothing(alma: Any, folder: Path) -> None:
    assert signed_in(alma).post("/drills", once("x") | {"kind": "--help"}).status_code == 404
    assert drills.latest() is None


def test_a_number_that_was_given_to_another_process_is_not_our_drill(folder: Path) -> None:
    folder.mkdir(parents=True)
    kept_run = {"pid": os.getpid(), "born": "1", "kind": "tests", "by": "alma",
                "started_at": "2026-01-01T00:00:00+00:00"}  # fmt: skip
    (folder / "running.json").write_text(json.dumps(kept_run))
    run = drills.latest()
    assert run is not None
    assert not run.is_alive


def test_reports_are_listed_newest_first_and_read(acme: cast.Acme, folder: Path) -> None:
    row = {"number": "1a", "name": "killed before", "killed": "worker", "where": "before",
           "expected": "repeat", "seen": "<b>repeat</b>", "passed": False, "seconds": 1.5,
           "answers": {"started": "no"}}  # fmt: skip
    kept(folder, "20260101T000000Z-tests", kind="tests", passed=False, seconds=9.0, rows=[row],
         findings=[{"kind": "invariant", "sentence": "I1 is broken", "call": ""}], figures={},
         again="python3 manage.py drill")  # fmt: skip
    kept(folder, "20260102T000000Z-chaos")
    assert [(each.kind, each.word) for each in drills.history()] == [
        ("chaos", "no report"), ("tests", "failed")
    ]  # fmt: skip
    page = text_of(signed_in(acme.vera).get("/drills/reports/20260101T000000Z-tests"))
    assert "I1 is broken" in page
    assert "&lt;b&gt;repeat" in page


@pytest.mark.parametrize("name", ["..", "20260101T000000Z-none", "%2e%2e"])
def test_a_name_is_looked_up_and_never_a_path(acme: cast.Acme, folder: Path, name: str) -> None:
    kept(folder, "20260101T000000Z-tests", kind="tests")
    assert signed_in(acme.vera).get(f"/drills/reports/{name}").status_code == 404


def test_an_installation_that_never_ran_one_says_what_they_rehearse(
    acme: cast.Acme, folder: Path
) -> None:
    assert "No drill has been run here yet" in text_of(signed_in(acme.vera).get("/drills"))
