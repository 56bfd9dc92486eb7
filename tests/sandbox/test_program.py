"""The sandbox program: one per folder, ports announced, gone when told."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from sandbox import addresses
from sandbox.addresses import HTTP_PORT, SMTP_PORT, Ports
from sandbox.folder import NoSandbox, SandboxFolder
from sandbox.rendering import started_at
from tests.sandbox.test_renders import asked, pid_of
from tests.sandbox.world import PROGRAM, Child, World, a_world, until


def test_a_second_program_on_the_same_folder_is_refused(world: World) -> None:
    second = Child(sys.executable, "-c", PROGRAM, str(world.data))
    second.wait_for("Another sandbox program holds this folder")
    assert second.end() == 1
    assert world.ask("GET", "/healthz")[0] == 200


def test_a_port_that_is_taken_is_named_with_its_remedy(tmp_path: Path, world: World) -> None:
    child = Child(
        *(sys.executable, "-c", PROGRAM, str(tmp_path)), **{HTTP_PORT: str(world.ports.http)}
    )
    child.wait_for("A port of the sandbox is taken")
    assert child.end() == 1


def test_it_ends_at_once_when_told_to(own_world: World) -> None:
    assert own_world.stop() == 0


def test_after_a_kill_it_starts_again_with_what_it_had(own_world: World) -> None:
    paid = {"marker": "kept", "payee": "x", "amount_cents": 1, "currency": "EUR"}
    own_world.ask("POST", "/payments", paid)
    own_world.kill()
    own_world.start()
    assert len(own_world.ask("GET", "/payments?marker=kept")[1]) == 1


def test_the_environment_names_the_ports_before_the_file_does(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert addresses.known() == world.ports
    monkeypatch.setenv(SMTP_PORT, "1025")
    assert addresses.known() == Ports(smtp=1025, http=world.ports.http)
    monkeypatch.setenv(HTTP_PORT, "0")
    assert addresses.known().http == world.ports.http


def test_a_sandbox_that_never_started_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEARHOUSE_DATA", str(tmp_path))
    with pytest.raises(NoSandbox, match=r"Start it with `manage.py sandbox`"):
        addresses.known()


def test_seeded_entries_are_there_and_never_overwritten(tmp_path: Path) -> None:
    folder = SandboxFolder(tmp_path)
    folder.prepare()
    entry = folder.files / "opening-hours.json"
    assert json.loads(entry.read_bytes())["sunday"] == "closed"
    entry.write_text('{"changed": true}')
    folder.prepare()
    assert json.loads(entry.read_bytes()) == {"changed": True}


def test_the_management_command_serves(tmp_path: Path) -> None:
    settings = tmp_path / "only_sandbox.py"
    settings.write_text('INSTALLED_APPS = ["sandbox"]\nSECRET_KEY = "test"\nUSE_TZ = True\n')
    path = os.pathsep.join([str(tmp_path), os.getcwd()])
    child = Child(
        sys.executable,
        *("-m", "django", "sandbox", "--settings", "only_sandbox"),
        PYTHONPATH=path,
        CLEARHOUSE_DATA=str(tmp_path),
        **{SMTP_PORT: "", HTTP_PORT: ""},
    )
    try:
        child.wait_for("The sandbox listens")
        child.process.send_signal(signal.SIGTERM)
        assert child.end() == 0
    finally:
        child.process.kill()


def test_renders_of_a_test_are_ended_with_it(tmp_path: Path) -> None:
    with a_world(tmp_path) as world:
        pid = pid_of(world, asked(world, "leftover", seconds=600))
    until(lambda: started_at(pid) is None, "the render is gone")
