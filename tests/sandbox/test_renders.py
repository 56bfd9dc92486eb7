"""A render outlives whoever asked for it and the server that started it."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.rendering import started_at
from sandbox.servers.renders import Renders
from tests.sandbox.world import PROJECT, World, until


def asked(world: World, marker: str, **wanted: Any) -> str:
    code, said = world.ask("POST", "/renders", {"marker": marker, **wanted})
    assert code == 202, said
    return said["handle"]


def state(world: World, handle: str) -> dict[str, Any]:
    return world.ask("GET", f"/renders/{handle}")[1]


def ended(world: World, handle: str) -> dict[str, Any]:
    return until(
        lambda: (found := state(world, handle))["state"] != "running" and found, "the render ends"
    )


def pid_of(world: World, handle: str) -> int:
    file = world.folder.renders / handle / "pid.json"
    until(file.exists, "the render writes its pid")
    return json.loads(file.read_bytes())["pid"]


def test_a_render_writes_its_frames_and_then_its_result(world: World) -> None:
    done = ended(world, asked(world, "ordinary", frames=3, seconds=0.2))
    assert done["state"] == "done"
    assert done["progress"] == "frame 1 of 3\nframe 2 of 3\nframe 3 of 3\n"
    drawing = (world.folder.renders / done["handle"] / done["artifact"]).read_bytes()
    assert done["sha256"] == hashlib.sha256(drawing).hexdigest()


@pytest.mark.parametrize("again", [{"key": "k1", "marker": "m9"}, {"key": "k9", "marker": "m1"}])
def test_the_same_key_or_marker_gives_the_same_render(world: World, again: dict) -> None:
    first = world.ask("POST", "/renders", {"key": "k1", "marker": "m1", "seconds": 0})[1]
    second = world.ask("POST", "/renders", {**again, "seconds": 0})[1]
    assert first["handle"] == second["handle"]
    assert len(list(world.folder.renders.glob(first["handle"].partition(".")[0] + ".*"))) == 1


def test_a_render_is_found_by_its_marker(world: World) -> None:
    handle = asked(world, "found", seconds=0)
    ended(world, handle)
    assert [found["handle"] for found in world.ask("GET", "/renders?marker=found")[1]] == [handle]
    assert world.ask("GET", "/renders?marker=other")[1] == []


def test_a_render_survives_the_death_of_the_server(own_world: World) -> None:
    handle = asked(own_world, "survivor", frames=1000, seconds=100)
    pid = pid_of(own_world, handle)
    own_world.kill()
    assert started_at(pid) is not None
    own_world.start()
    before = state(own_world, handle)
    assert before["state"] == "running"
    assert asked(own_world, "survivor") == handle
    assert pid_of(own_world, handle) == pid
    until(lambda: state(own_world, handle)["progress"] > before["progress"], "it goes on")


def test_a_render_is_in_no_group_or_session_of_its_server(own_world: World) -> None:
    handle = asked(own_world, "group", seconds=20)
    assert own_world.child is not None
    assert os.getpgid(pid_of(own_world, handle)) != os.getpgid(own_world.child.process.pid)
    assert os.getsid(pid_of(own_world, handle)) == pid_of(own_world, handle)


def test_a_killed_render_has_died_and_is_not_begun_anew(own_world: World) -> None:
    handle = asked(own_world, "killed", frames=100, seconds=30)
    pid = pid_of(own_world, handle)
    os.kill(pid, signal.SIGKILL)
    assert ended(own_world, handle)["state"] == "died"
    own_world.kill()
    own_world.start()
    assert state(own_world, handle)["state"] == "died"


def test_a_render_can_be_ended(world: World) -> None:
    handle = asked(world, "unwanted", seconds=60)
    pid_of(world, handle)
    assert world.ask("DELETE", f"/renders/{handle}")[0] == 202
    assert ended(world, handle)["state"] == "died"


def test_a_failing_render_says_so(world: World) -> None:
    assert ended(world, asked(world, "failing", seconds=0, fails=True))["state"] == "failed"


def test_a_forgotten_handle_is_unknown_while_the_work_goes_on(world: World) -> None:
    handle = asked(world, "forgotten", frames=2, seconds=0.2, forget_after_s=0)
    until(lambda: world.ask("GET", f"/renders/{handle}")[0] == 404, "the handle is forgotten")
    hidden = until(
        lambda: list(world.folder.renders.glob(f".forgotten-*{handle}/result.json")), "its result"
    )
    assert json.loads(hidden[0].read_bytes())["state"] == "done"
    assert world.ask("GET", "/renders?marker=forgotten")[1] == []


def test_a_render_recorded_and_never_begun_is_begun_by_the_next_server(tmp_path: Path) -> None:
    renders = Renders(tmp_path)
    handle = f"{'a' * 24}.{'b' * 24}"
    (tmp_path / handle).mkdir()
    request = {"frames": 1, "seconds": 0, "fails": False, "forget_after_s": None}
    (tmp_path / handle / "request.json").write_text(json.dumps(request))
    assert renders.resume() == [handle]
    until(lambda: (renders.state(handle) or {})["state"] == "done", "the render ends")
    assert renders.resume() == []


def test_two_starts_of_one_folder_are_one_render(tmp_path: Path) -> None:
    request = {"frames": 1, "seconds": 30, "fails": False, "forget_after_s": None}
    (tmp_path / "request.json").write_text(json.dumps(request))
    argv = [sys.executable, "-m", "sandbox.rendering", str(tmp_path)]
    first = subprocess.Popen(argv, cwd=PROJECT)
    try:
        until((tmp_path / "pid.json").exists, "the first one renders")
        assert subprocess.run(argv, cwd=PROJECT, timeout=20, check=False).returncode == 1
        assert json.loads((tmp_path / "pid.json").read_bytes())["pid"] == first.pid
    finally:
        first.kill()
        first.wait()


@pytest.mark.parametrize(
    "wrong",
    [{"marker": ""}, {"frames": 0}, {"frames": 1.5}, {"seconds": "1"}, {"forget_after_s": -1}],
)
def test_a_request_that_makes_no_sense_starts_nothing(world: World, wrong: dict) -> None:
    before = set(world.folder.renders.iterdir())
    assert world.ask("POST", "/renders", {"marker": "wrong", **wrong})[0] == 422
    assert set(world.folder.renders.iterdir()) == before


def test_a_pid_that_was_used_again_is_not_taken_for_the_render(tmp_path: Path) -> None:
    handle = f"{'c' * 24}.{'d' * 24}"
    (tmp_path / handle).mkdir()
    about = {"pid": os.getpid(), "started": (started_at(os.getpid()) or 0) + 1}
    (tmp_path / handle / "pid.json").write_text(json.dumps(about))
    renders = Renders(tmp_path)
    assert (renders.state(handle) or {})["state"] == "died"
    renders.end(handle)  # must not kill this interpreter
