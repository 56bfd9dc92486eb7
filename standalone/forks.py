"""A program that begins as a fork of this interpreter: what is imported here, it need not import.

It gets what a fresh interpreter would have: a session, log, environment and words of its own,
default signals, none of the parent's files, and a bond to the parent. It must never return
into the frames of its parent, whose `finally` would stop the parent's children; so it ends by
`os._exit`. Linux only, and only for a parent with one thread and no open connection.
"""

import atexit
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from standalone import titles
from standalone.bonds import bond
from standalone.places import ROOT

FILES_MAX = 65_536


class Fork:
    """A child made by `fork`; answers as `subprocess.Popen` does."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, -N after signal N, None while it runs."""
        if self._code is None:
            pid, ending = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(ending) if pid else None
        return self._code


def fork(
    command: Sequence[str],
    *,
    title: str,
    environ: Mapping[str, str],
    log: int,
    begin: Callable[[], Any],
) -> Fork:
    """Run a Python command line, `(interpreter, "-m", module, ...)` or `(interpreter, file, ...)`.

    `begin` is called in the child first, `log` is the file it writes to.
    """
    parent = os.getpid()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()  # else the child would write it a second time
    # A signal between the fork and the child's own dispositions would ring the parent's ears.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        _live(lambda: _become(parent, title, environ, log, begin), command)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Fork(pid)


def _live(become: Callable[[], None], command: Sequence[str]) -> NoReturn:
    code = 1
    try:
        become()
        code = _run(command)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code & 0xFF)


def _become(
    parent: int, title: str, environ: Mapping[str, str], log: int, begin: Callable[[], Any]
) -> None:
    os.setsid()
    _take_files(log)
    _take_signals()
    bond(signal.SIGTERM, parent=parent)
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environ)
    titles.show(title)
    begin()


def _take_files(log: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, number in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, number)
    # The objects that own the rest live on in the parent's frames, which never unwind here.
    os.closerange(3, FILES_MAX)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=True)  # type: ignore[union-attr]


def _take_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _run(command: Sequence[str]) -> int:
    """Run the command's code to its end, and what an interpreter does after it."""
    try:
        _run_main(command)
        code = 0
    except SystemExit as ending:
        code = _exit_code(ending.code)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    return code


def _run_main(command: Sequence[str]) -> None:
    _, first, *rest = command
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def _exit_code(said: Any) -> int:
    if said is None or isinstance(said, int):
        return said or 0
    print(said, file=sys.stderr)
    return 1
