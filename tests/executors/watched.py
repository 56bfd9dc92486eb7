"""Processes under observation: started by a fork, awaited with a limit, never left behind."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from executors import fence, tree


@dataclass(frozen=True)
class Watched:
    """A process of which we hold a pidfd, so that its number can never mean another."""

    pid: int
    pidfd: int

    @classmethod
    def of(cls, pid: int) -> "Watched":
        return cls(pid, os.pidfd_open(pid))

    def ends_within(self, limit_s: float) -> bool:
        return readable(self.pidfd, limit_s)

    @property
    def is_alive(self) -> bool:
        return not self.ends_within(0)

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def stop(self) -> None:
        """Stop it, and return once the kernel shows it as stopped."""
        self.send(signal.SIGSTOP)
        wait_until(lambda: _stat(self.pid)[0] == "T", "the process is stopped")

    def children(self) -> list["Watched"]:
        return [Watched.of(pid) for pid in children_of(self.pid)]

    def wait_status(self, limit_s: float = 5.0) -> int:
        """Wait for it as its parent."""
        assert self.ends_within(limit_s), f"Process {self.pid} lived longer than {limit_s} s."
        return os.waitpid(self.pid, 0)[1]


@contextlib.contextmanager
def forked(life: Callable[[], None]) -> Iterator[Watched]:
    """Run `life` in a forked child with its signals open; kill and reap it in the end."""

    def open_life() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        life()

    child = Watched.of(tree.fork(open_life))
    try:
        yield child
    finally:
        child.send(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child.pid, 0)
        os.close(child.pidfd)


def readable(descriptor: int, limit_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(limit_s * 1000))


def read_within(descriptor: int, limit_s: float = 5.0) -> bytes:
    assert readable(descriptor, limit_s), f"Nothing was written within {limit_s} s."
    return os.read(descriptor, 65536)


def wait_until(condition: Callable[[], bool], name: str, limit_s: float = 5.0) -> None:
    """Return once the named condition holds; there is no event to wait for in /proc."""
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, f"Not within {limit_s} s: {name}."
        time.sleep(0.005)


def stay() -> None:
    """Live until killed."""
    while True:
        signal.pause()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def never_execed(pid: int) -> bool:
    """The kernel's PF_FORKNOEXEC: forked, and no exec since."""
    return bool(int(_stat(pid)[6]) & 0x40)


def pending_signals(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (mask,) = (line.split()[1] for line in lines if line.startswith("ShdPnd"))
    return int(mask, 16)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat after the name: state first."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return [""]


def require_namespaces() -> None:
    """Skip with a named reason, or fail where the lane asks that nothing be skipped."""
    if fence.namespaces() is not fence.Namespaces.NONE:
        return
    reason = "This host gives no PID namespace: neither CAP_SYS_ADMIN nor user namespaces."
    if os.environ.get("CLEARHOUSE_REQUIRE_NAMESPACES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def require_boottime_timer() -> None:
    """The same for the kernel fence itself."""
    if fence.available() is fence.Mechanism.BOOTTIME_TIMER:
        return
    reason = "This kernel gives no timer on CLOCK_BOOTTIME that delivers SIGKILL."
    if os.environ.get("CLEARHOUSE_REQUIRE_NAMESPACES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
