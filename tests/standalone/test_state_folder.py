"""The state folder: private, made once, owned by one."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from standalone import pids
from standalone.attach import attach
from standalone.errors import Refusal
from standalone.places import ROOT
from standalone.state import SECRETS, Recorded, State, write_private

HOLD = (
    "import sys, time; from pathlib import Path; from standalone.state import State\n"
    "state = State(Path(sys.argv[1])); state.prepare()\n"
    "state.lock(address='http://127.0.0.1:8000', port=8000)\n"
    "print('held', flush=True); time.sleep(60)"
)


@pytest.fixture
def state(folder: Path) -> State:
    state = State(folder / "state")
    state.prepare()
    return state


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_and_secrets_are_for_the_owner_alone(state: State) -> None:
    assert [mode(path) for path in (state.root, state.logs)] == [0o700, 0o700]
    assert {mode(state.secret_file(name)) for name in SECRETS} == {0o600}


def test_secrets_are_made_once_and_differ(state: State) -> None:
    before = {name: state.secret(name) for name in SECRETS}

    state.prepare()

    assert {name: state.secret(name) for name in SECRETS} == before
    assert len(set(before.values())) == len(SECRETS)


def test_a_folder_that_was_opened_up_is_made_private_again(state: State) -> None:
    state.root.chmod(0o755)

    state.prepare()

    assert mode(state.root) == 0o700


def test_a_second_owner_is_told_who_the_first_is(state: State) -> None:
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(state.root)], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert held.stdout is not None
    held.stdout.readline()

    with pytest.raises(Refusal, match=rf"127\.0\.0\.1:8000, pid {held.pid}, since .*Use that one"):
        state.lock()

    held.kill()
    held.wait()
    state.lock()


def test_nobody_owns_a_folder_whose_owner_was_killed(state: State) -> None:
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(state.root)], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert held.stdout is not None
    held.stdout.readline()
    owner = state.owner()

    held.kill()
    held.wait()

    assert owner is not None
    assert owner["pid"] == held.pid
    assert state.owner() is None


def test_a_recorded_pid_counts_only_with_its_birth(state: State) -> None:
    me = Recorded(
        name="web", kind="program", pid=os.getpid(), birth=pids.birth(os.getpid()), started_at=""
    )
    another = Recorded(name="web", kind="program", pid=os.getpid(), birth="0:1", started_at="")
    state.record([me, another])

    assert [one.alive for one in state.recorded()] == [True, False]


def test_ports_stay_from_run_to_run(state: State) -> None:
    assert state.choose_ports() == state.choose_ports()


def test_a_half_written_file_reads_as_nothing(state: State) -> None:
    (state.root / "running.json").write_text('[{"name": "we')
    (state.root / "ports.json").write_text("")

    assert state.recorded() == []
    assert state.ports() == {}


def test_a_private_file_replaces_the_old_one_whole(folder: Path) -> None:
    path = folder / "secret"
    path.write_text("old")
    path.chmod(0o644)

    write_private(path, "new")

    assert path.read_text() == "new"
    assert mode(path) == 0o600


def test_a_folder_that_cannot_be_made_is_refused_with_a_way_out(folder: Path) -> None:
    (folder / "file").write_text("")

    with pytest.raises(Refusal, match="--data DIR"):
        State(folder / "file" / "state").prepare()


def test_a_command_beside_a_running_up_finds_its_database(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARHOUSE_DATA", str(state.root))
    state.remember("environment", {"DATABASE_URL": "postgresql://here", "REDIS_URL": "redis://r"})
    state.lock()
    environ = {"REDIS_URL": "redis://mine"}

    attach(environ)

    assert environ == {"DATABASE_URL": "postgresql://here", "REDIS_URL": "redis://mine"}


def test_the_addresses_of_a_stopped_up_are_not_handed_out(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARHOUSE_DATA", str(state.root))
    state.remember("environment", {"DATABASE_URL": "postgresql://here"})
    environ: dict[str, str] = {}

    attach(environ)

    assert environ == {}
    assert json.loads(state.secret_file("environment.json").read_text())
