"""What the kernel says about real programs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from standalone import pids
from standalone.waiting import until

DEAF = (
    "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
)


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen(["sleep", "60"])
    yield child
    child.kill()
    child.wait()


def test_a_dead_program_that_nobody_waited_for_is_not_alive(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    assert pids.alive(sleeper.pid)

    sleeper.kill()

    assert until(lambda: not pids.alive(sleeper.pid), limit_s=5)


def test_births_tell_two_runs_apart(sleeper: "subprocess.Popen[bytes]") -> None:
    assert pids.birth(sleeper.pid) == pids.birth(sleeper.pid) != ""
    assert pids.birth(sleeper.pid) != pids.birth(os.getpid())


def test_a_birth_is_empty_for_a_pid_that_is_gone(sleeper: "subprocess.Popen[bytes]") -> None:
    sleeper.kill()
    sleeper.wait()

    assert pids.birth(sleeper.pid) == ""
    assert pids.command_line(sleeper.pid) == []
    assert pids.working_folder(sleeper.pid) == ""


def test_the_command_line_and_folder_are_those_it_was_started_with(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    assert until(lambda: pids.command_line(sleeper.pid) == ["sleep", "60"], limit_s=5)
    assert pids.working_folder(sleeper.pid) == os.getcwd()
    assert sleeper.pid in pids.children(os.getpid())


def test_a_deaf_program_is_ended_by_the_last_step() -> None:
    child = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()

    assert pids.end(child.pid, ((signal.SIGTERM, 0.2), (signal.SIGKILL, 5.0)))

    assert child.wait() == -signal.SIGKILL
