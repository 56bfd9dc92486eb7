"""One attempt in a process tree of its own that dies, whole and provably, when its lease does.

    holder      claims and reports; holds the line to the ledger; forks from its main thread
    └ launcher  carries the kernel fence; blocks every signal; obeys re-arm messages only
      └ keeper  PID 1 of a PID namespace where the host allows one; waits for all below it
        └ tool  runs `body(channel)` in its own group, and leaves by `os._exit`

The kernel kills downwards: holder → launcher → keeper by PDEATHSIG, and a namespace ends with
its keeper. Without namespaces the keeper kills what the tool left behind; if it was killed
itself, that comes to the holder, which is a subreaper, and is killed there.

Never: exec in launcher or keeper, run tool code there, start anything else from a holder, or
touch an inherited socket (the ledger's, the broker's): their numbers are pointed at /dev/null.
Source: reliability, sections 2 (K1-K7) and 5; security, S24.
"""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from executors import fence
from executors.channel import Closed, HolderEnd, Message
from executors.tree import (
    ARMED,
    BEGAN,
    ENDED,
    ENDING,
    INSTANT,
    PACKET_BYTES_MAX,
    Body,
    fork,
    live_as_launcher,
    readable,
)
from ledger.vocabulary import ProofOfDeath

_START_LIMIT_S = 5.0
_ACKNOWLEDGE_LIMIT_S = 1.0
_RESOURCE_SIGNALS = {signal.SIGXCPU, signal.SIGXFSZ}


class LaunchFailed(Exception):
    """No tool child was started, so nothing has begun. Give the attempt back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """Proof that launcher, keeper, tool and all below have been waited for.

    `exit_code` and `signal` are the tool child's; both None when the keeper could not report
    them because it was killed. `fenced` says that the launcher ended by its own timer;
    `resource_killed` that the kernel ended the tool for memory, CPU time or file size.
    """

    proof: ProofOfDeath = ProofOfDeath.REAPED
    exit_code: int | None
    signal: int | None
    resource_killed: bool
    fenced: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Running:
    """A launched attempt as its holder sees it. Not for use by several threads."""

    tool: HolderEnd
    fence_at_s: float
    _control: socket.socket
    _launcher: int
    _launcher_fd: int
    _keeper: int = 0
    _keeper_fd: int = -1
    _others: set[int] = field(default_factory=set)
    _kills_before: int = 0
    _killed: bool = False
    _ending: int | None = None
    _death: Death | None = None

    def fileno(self) -> int:
        """Give the descriptor that is readable when a message or the end has come."""
        return self.tool.fileno()

    def receive(self, timeout_s: float) -> Message | Closed | None:
        """Wait up to `timeout_s` for the tool child's next message; None when none came."""
        return self.tool.receive(timeout_s)

    def answer(self, message: dict[str, object]) -> bool:
        """Answer the last message; False when the tool child cannot take it any more."""
        return self.tool.answer(message)

    def rearm(self, fence_at_s: float) -> bool:
        """Move the fence to an instant on CLOCK_BOOTTIME; True once the launcher has done so.

        False: it is dead or does not answer, and either instant may hold. Stop the attempt.
        """
        try:
            self._control.send(INSTANT.pack(fence_at_s), socket.MSG_NOSIGNAL)
            return self._acknowledged(fence_at_s)
        except OSError:
            return False

    def _acknowledged(self, fence_at_s: float) -> bool:
        until = time.monotonic() + _ACKNOWLEDGE_LIMIT_S
        while (packet := self._packet(until)) is not None:
            # An answer that came too late for an earlier re-arm is not the answer to this one.
            if packet == ARMED + INSTANT.pack(fence_at_s):
                self.fence_at_s = fence_at_s
                return True
        return False

    def _packet(self, until: float) -> bytes | None:
        """Read the control line; what the keeper says of the tool's end is kept on the way."""
        if not readable(self._control.fileno(), until):
            return None
        packet = self._control.recv(PACKET_BYTES_MAX)
        if packet[:1] == ENDED:
            (self._ending,) = ENDING.unpack(packet[1:])
        return packet or None

    def stop(self, grace_s: float) -> None:
        """Ask the tool's group to end (SIGTERM) and, after `grace_s` at most, kill everything.

        Messages wait meanwhile; to serve them during the grace use `terminate` and `kill`.
        """
        self.terminate()
        if self._death is None:
            readable(self._keeper_fd, time.monotonic() + grace_s)
        self.kill()

    def terminate(self) -> None:
        """Send SIGTERM to the tool's process group, through its keeper."""
        _send(self._keeper_fd, signal.SIGTERM)

    def kill(self) -> None:
        """Kill launcher, keeper and, with them, all below; `reap` gives the proof."""
        if self._death is not None:
            return
        # A tool that has ended by itself is not called killed by us.
        self._killed = self._killed or not readable(self._keeper_fd, 0)
        _send(self._keeper_fd, signal.SIGKILL)
        _send(self._launcher_fd, signal.SIGKILL)

    def reap(self, timeout_s: float) -> Death | None:
        """Wait up to `timeout_s` for the end of everything; None while any part may live."""
        until = time.monotonic() + timeout_s
        if self._death is None and self._all_gone(until):
            self._death = self._post_mortem()
            self._close()
        return self._death

    def _all_gone(self, until: float) -> bool:
        # A pidfd tells the end of a namespace's init only when all inside has been waited for.
        return (
            readable(self._launcher_fd, until)
            and readable(self._keeper_fd, until)
            and self._strays_gone(until)
        )

    def _strays_gone(self, until: float) -> bool:
        """Without a namespace: kill what was left to us, the subreaper, until nothing is."""
        if fence.namespaces() is not fence.Namespaces.NONE:
            return True
        own = self._others | {self._launcher, self._keeper}
        while strays := fence.children() - own:
            if not all(_end_stray(pid, until) for pid in strays):
                return False
        return True

    def _post_mortem(self) -> Death:
        launcher = _wait_status(self._launcher)
        _wait_status(self._keeper)  # ours to wait for only if its launcher was killed
        with contextlib.suppress(OSError):
            while self._packet(0) is not None:
                pass
        code = None if self._ending is None else os.waitstatus_to_exitcode(self._ending)
        cut = launcher is not None and os.WIFSIGNALED(launcher) and not self._killed
        fenced = cut and fence.boottime_s() >= self.fence_at_s
        ended_by = -code if code is not None and code < 0 else None
        return Death(
            exit_code=code if code is not None and code >= 0 else None,
            signal=ended_by,
            resource_killed=not self._killed and not fenced and self._for_resources(ended_by),
            fenced=fenced,
        )

    def _for_resources(self, ended_by: int | None) -> bool:
        """The machine's count may have risen for another's sake: both readings mean unknown."""
        if ended_by in _RESOURCE_SIGNALS:
            return True
        unreported = self._ending is None
        killed = unreported or ended_by == signal.SIGKILL
        return killed and fence.memory_kills() > self._kills_before

    def _close(self) -> None:
        self._control.close()
        for descriptor in {self._launcher_fd, self._keeper_fd} - {-1}:
            os.close(descriptor)
        self._launcher_fd = self._keeper_fd = -1

    def close(self) -> None:
        """Hang up the channel; call it when its last message has been read."""
        self.tool.close()


def launch(body: Body, *, fence_at_s: float) -> Running:
    """Start `body(channel)` in a process tree that is dead at `fence_at_s` unless re-armed.

    `fence_at_s` is absolute, in seconds on CLOCK_BOOTTIME: see `fence.instant`. Returns when the
    fence is armed and the keeper runs. Raises LaunchFailed, with nothing begun, when the host
    refuses a process, and RuntimeError when called from a thread other than the main one (K6).
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "launch() was called from a thread other than the main one. The tool would be killed "
            "when that thread ends. Call it from the main thread of the pool child."
        )
    fence.adopt_orphans()
    fence.namespaces()
    others, kills = fence.children(), fence.memory_kills()
    ours, theirs = socket.socketpair()
    control, line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, line:
        pid = _forked(lambda: live_as_launcher(body, fence_at_s, os.getppid(), theirs, line))
    running = Running(
        tool=HolderEnd(ours), fence_at_s=fence_at_s, _control=control, _launcher=pid,
        _launcher_fd=os.pidfd_open(pid), _others=others, _kills_before=kills,
    )  # fmt: skip
    return _begun(running)


def _forked(life: Callable[[], None]) -> int:
    try:
        return fork(life)
    except OSError as error:
        raise LaunchFailed(f"The host refused a process: {error}. Nothing has begun.") from error


def _begun(running: Running) -> Running:
    """Wait until the launcher says that its fence is armed and its keeper runs."""
    packet, descriptors = _first_packet(running._control)
    if packet[:1] != BEGAN:
        _give_up(running, packet[1:].decode("utf-8", "replace") or "it ended without a word")
    running._keeper, running._keeper_fd = int(packet[1:]), descriptors[0]
    return running


def _first_packet(control: socket.socket) -> tuple[bytes, list[int]]:
    if not readable(control.fileno(), time.monotonic() + _START_LIMIT_S):
        return b"", []
    packet, descriptors, _, _ = socket.recv_fds(control, PACKET_BYTES_MAX, 1)
    return packet, descriptors


def _give_up(running: Running, reason: str) -> NoReturn:
    _send(running._launcher_fd, signal.SIGKILL)
    _wait_status(running._launcher)
    running._close()
    running.close()
    raise LaunchFailed(
        f"The launcher could not start a tool child: {reason}. Nothing has begun. "
        "Look at the limits of this host for processes and namespaces, and give the attempt back."
    )


def _send(pidfd: int, number: int) -> None:
    if pidfd < 0:
        return  # it has been waited for
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def _wait_status(pid: int) -> int | None:
    """Wait for a child known to have ended; None when it was another's to wait for."""
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return None


def _end_stray(pid: int, until: float) -> bool:
    try:
        stray = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        _send(stray, signal.SIGKILL)
        if not readable(stray, until):
            return False
        _wait_status(pid)
        return True
    finally:
        os.close(stray)
