"""What `status` finds in a state folder, and what it makes of it."""

import argparse
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from standalone import pids, status
from standalone.postgres import Postgres
from standalone.state import Recorded, State, now


@pytest.fixture
def state(folder: Path) -> State:
    state = State(folder / "state")
    state.prepare()
    return state


def recorded(name: str, kind: str = "program", birth: str = "") -> Recorded:
    birth = birth or pids.birth(os.getpid())
    return Recorded(name=name, kind=kind, pid=os.getpid(), birth=birth, started_at=now())


def test_a_folder_that_was_never_used_says_how_to_start(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = status.run(argparse.Namespace(data=folder / "none", json=False))

    assert code == status.NOTHING
    assert "does not run" in capsys.readouterr().out
    assert not (folder / "none").exists()


def test_an_owner_without_programs_is_still_starting(state: State) -> None:
    state.lock(address="http://127.0.0.1:1", port=1)
    state.record([recorded("postgresql", kind="server")])

    report = status.look(state)

    assert report.exit_code == status.HALF
    assert "is still starting" in " ".join(report.findings)


def test_a_program_that_has_ended_under_a_living_supervisor_is_named(state: State) -> None:
    state.lock(address="http://127.0.0.1:1", port=1)
    state.record([recorded("web"), recorded("effects", birth="0:1")])

    report = status.look(state)

    assert [row.state for row in report.rows] == ["running", "gone"]
    assert report.findings[0].startswith("effects (pid")


def test_a_server_without_a_supervisor_is_found_by_its_folder(state: State) -> None:
    with Postgres(state.root, durable=False) as server:
        report = status.look(state)

        assert report.exit_code == status.HALF
        assert f"postgresql (pid {server.pid}) runs without a supervisor" in report.findings[0]


def test_a_first_start_that_was_cut_short_is_explained(state: State) -> None:
    (state.root / "postgres.making").mkdir()

    report = status.look(state)

    assert report.exit_code == status.HALF
    assert "cut short" in report.findings[0]


def test_the_table_shows_pid_age_and_restarts(state: State) -> None:
    state.lock(address="http://127.0.0.1:1", port=1)
    state.record([recorded("web")])

    text = status.as_text(status.look(state))

    assert "http://127.0.0.1:1, not ready" in text
    assert str(os.getpid()) in text
    assert "0 s" in text


def test_programs_read_the_same_facts_as_one_line(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    state.lock(address="http://127.0.0.1:1", port=1)
    state.record([recorded("web")])

    code = status.run(argparse.Namespace(data=state.root, json=True))

    facts = json.loads(capsys.readouterr().out)
    assert code == status.HALF
    assert facts["rows"][0]["name"] == "web"
    assert facts["ready"] is False


@pytest.mark.parametrize(
    ("seconds", "said"), [(5, "5 s"), (61, "1 min"), (7_300, "2 h"), (200_000, "2 d")]
)
def test_an_age_is_told_in_its_largest_unit(seconds: int, said: str) -> None:
    since = datetime.now(UTC) - timedelta(seconds=seconds)

    assert status.lasted(since.isoformat()) == said
