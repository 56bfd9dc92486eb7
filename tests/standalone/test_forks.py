"""A fork gets what a fresh interpreter gets, ends as one, and never lives its parent's life."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from standalone import pids
from standalone.places import ROOT
from standalone.waiting import until

LIMIT_S = 20
PARENT = Path(__file__).parent / "parent_of_a_fork.py"
ABOUT = """
import json, os, signal, sys
print(json.dumps({
    "words": sys.argv,
    "environ": dict(os.environ),
    "name": __name__,
    "leads_a_session": os.getsid(0) == os.getpid(),
    "files": sorted(os.readlink(f"/proc/self/fd/{n}") for n in (0, 1, 2)),
    "more_files": [n for n in range(3, 64) if os.path.exists(f"/proc/self/fd/{n}")],
    "on_stop": str(signal.getsignal(signal.SIGTERM)),
    "on_user": str(signal.getsignal(signal.SIGUSR1)),
    "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "folder": os.getcwd(),
}))
"""
SLEEP = "import time\nprint('asleep')\nwhile True: time.sleep(60)"


class Forking:
    """A parent that forked one program."""

    def __init__(self, parent: "subprocess.Popen[str]", log: Path) -> None:
        assert parent.stdout is not None
        self.parent, self._log = parent, log
        *self.said, pid = parent.stdout.readline().split()
        self.pid = int(pid)

    @property
    def logged(self) -> str:
        return self._log.read_text()

    def code(self) -> int:
        assert self.parent.stdout is not None
        return int(self.parent.stdout.readline())

    def sleeps(self) -> bool:
        return "asleep" in self.logged


Begin = Callable[..., Forking]


@pytest.fixture
def forked(folder: Path) -> Iterator[Begin]:
    """Fork a program by its words, as they stand behind the interpreter's name."""
    began: list[Forking] = []

    def begin(*words: str) -> Forking:
        log = folder / "log"
        command = [sys.executable, str(PARENT), str(log), sys.executable, *words]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
        began.append(Forking(parent, log))
        return began[-1]

    yield begin
    for one in began:
        one.parent.kill()
        one.parent.communicate(timeout=LIMIT_S)
        pids.send(one.pid, signal.SIGKILL)


@pytest.fixture
def program(folder: Path) -> Callable[[str], str]:
    """A file with this text, as a program."""

    def write(text: str) -> str:
        path = folder / "program.py"
        path.write_text(text)
        return str(path)

    return write


Write = Callable[[str], str]


def test_a_fork_gets_what_a_fresh_interpreter_gets(forked: Begin, program: Write) -> None:
    file = program(ABOUT)
    child = forked(file, "--flag", "a word")
    assert child.code() == 0

    begun, about = child.logged.splitlines()
    log = str(Path(file).parent / "log")
    assert begun == "begun this alone"
    assert json.loads(about) == {
        "words": [file, "--flag", "a word"],
        "environ": {"TOLD": "this alone"},
        "name": "__main__",
        "leads_a_session": True,
        "files": sorted([os.devnull, log, log]),
        "more_files": [],
        "on_stop": str(signal.Handlers.SIG_DFL),
        "on_user": str(signal.Handlers.SIG_IGN),
        "blocked": 0,
        "folder": str(ROOT),
    }


def test_a_module_runs_as_with_dash_m(forked: Begin, program: Write) -> None:
    child = forked("-m", "json.tool", "--compact", program('{"it": "runs"}'))

    assert child.code() == 0
    assert child.logged.splitlines()[-1] == '{"it":"runs"}'


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        pytest.param("import sys; sys.exit(3)", 3, "", id="a number"),
        pytest.param("import sys; sys.exit()", 0, "", id="nothing"),
        pytest.param("raise SystemExit('no such setting')", 1, "no such setting", id="a sentence"),
        pytest.param("1 / 0", 1, "ZeroDivisionError", id="an error"),
        pytest.param("import os; os.kill(os.getpid(), 9)", -9, "", id="a signal"),
    ],
)
def test_a_fork_ends_as_an_interpreter_ends(
    forked: Begin, program: Write, text: str, code: int, said: str
) -> None:
    child = forked(program(text))

    assert child.code() == code
    assert said in child.logged


def test_threads_and_exit_functions_come_to_their_end(forked: Begin, program: Write) -> None:
    text = (
        "import atexit, threading\n"
        "atexit.register(print, 'last')\n"
        "go = threading.Event()\n"
        "threading.Thread(target=lambda: (go.wait(5), print('thread'))).start()\n"
        "threading.Timer(0.05, go.set).start()\n"
    )
    child = forked(program(text))

    assert child.code() == 0
    assert child.logged.split() == ["begun", "this", "alone", "thread", "last"]


def test_what_the_parent_had_not_yet_written_is_written_once(forked: Begin, program: Write) -> None:
    child = forked(program("print('mine')"))

    assert child.code() == 0
    assert child.said == ["said", "once"]
    assert "said once" not in child.logged


def test_a_stop_signal_ends_the_fork_and_not_its_parent(forked: Begin, program: Write) -> None:
    child = forked(program(SLEEP))
    assert until(child.sleeps, limit_s=LIMIT_S)

    pids.send(child.pid, signal.SIGTERM)

    assert child.code() == -signal.SIGTERM


def test_a_killed_parent_takes_its_fork_along(forked: Begin, program: Write) -> None:
    child = forked(program(SLEEP))
    assert until(child.sleeps, limit_s=LIMIT_S)

    child.parent.kill()

    assert until(lambda: not pids.alive(child.pid), limit_s=LIMIT_S)


def test_ps_shows_a_fork_by_its_own_name(forked: Begin, program: Write) -> None:
    child = forked(program(SLEEP))
    assert until(child.sleeps, limit_s=LIMIT_S)

    assert pids.command_line(child.pid) == ["clearhouse stand-in"]
    assert str(PARENT) in pids.command_line(child.parent.pid)
