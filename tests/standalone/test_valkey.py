"""The embedded Valkey, really started, killed and flushed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from standalone import pids
from standalone.places import ROOT
from standalone.valkey import Valkey, temporary_valkey
from standalone.waiting import until

LIMIT_S = 20


def link(server: Valkey) -> redis.Redis:
    return redis.Redis.from_url(server.url)


def test_it_answers_to_the_password_alone() -> None:
    with temporary_valkey() as server:
        assert link(server).ping()
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(host="127.0.0.1", port=server.port).ping()


def test_the_password_is_not_in_the_list_of_running_programs() -> None:
    with temporary_valkey() as server:
        assert "throw-away" not in " ".join(pids.command_line(server.pid))


def test_a_hostile_password_is_configured_as_it_is(folder: Path) -> None:
    with Valkey(folder, password='a "b\\ c#/@:', durable=False) as server:
        assert link(server).ping()


def test_a_server_that_was_launched_is_waited_for_and_not_started_twice(folder: Path) -> None:
    server = Valkey(folder, password="throw-away", durable=False)
    server.launch()
    launched = server.pid
    try:
        server.start()

        assert server.pid == launched
        assert link(server).ping()
    finally:
        server.stop()


def test_keys_are_never_evicted() -> None:
    with temporary_valkey() as server:
        assert link(server).config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_a_killed_server_comes_back_at_the_same_address() -> None:
    with temporary_valkey() as server:
        address = server.url

        server.kill()
        server.start()

        assert server.url == address
        assert link(server).ping()


def test_a_durable_server_keeps_what_it_wrote(folder: Path) -> None:
    with Valkey(folder, password="x") as server:
        link(server).set("bell", "rung")
    with Valkey(folder, password="x") as server:
        assert link(server).get("bell") == b"rung"


def test_a_flush_loses_everything() -> None:
    with temporary_valkey() as server:
        link(server).set("bell", "rung")

        server.flush()

        assert link(server).dbsize() == 0


def test_a_taken_port_makes_a_first_start_choose_another(folder: Path) -> None:
    with (
        Valkey(folder / "one", password="x") as first,
        Valkey(folder / "two", password="x", port=first.port) as second,
    ):
        assert second.port != first.port
        assert link(second).ping()


def test_a_server_left_behind_is_ended_before_the_next_start(folder: Path) -> None:
    first = Valkey(folder, password="x")
    first.start()

    with Valkey(folder, password="x") as second:
        assert not first.running
        assert link(second).ping()


def test_a_server_ends_with_a_killed_owner(folder: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from standalone.valkey import Valkey\n"
        "server = Valkey(Path(sys.argv[1]), password='x'); server.start()\n"
        "print(server.pid, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(folder)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())

    owner.send_signal(signal.SIGKILL)
    owner.wait(timeout=LIMIT_S)

    assert until(lambda: not pids.alive(pid), limit_s=LIMIT_S)
