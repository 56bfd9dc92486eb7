"""The three processes below a holder: launcher, keeper and tool, each a few lines of life.

What they are for is told in `executors/launcher.py`, which starts them. Every one is forked with
all signals blocked, never runs the holder's handlers or cleanups, and leaves by `os._exit`.

The packets of the control line (one datagram each): from the holder an instant; from the launcher
BEGAN with the keeper's pid and pidfd, REFUSED with a reason, ARMED with the instant obeyed; from
the keeper ENDED with the tool's wait status.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import NoReturn

from executors import fence
from executors.channel import Channel

Body = Callable[[Channel], None]

BODY_RAISED = 70
"""The tool child's exit code when its body raised: EX_SOFTWARE of sysexits."""

BEGAN, REFUSED, ARMED, ENDED = b"B", b"R", b"A", b"E"
INSTANT, ENDING = struct.Struct("!d"), struct.Struct("!i")
PACKET_BYTES_MAX = 4096


def live_as_launcher(
    body: Body, fence_at_s: float, holder: int, channel: socket.socket, line: socket.socket
) -> None:
    try:
        timer = _secure(fence_at_s, holder, keep={channel.fileno(), line.fileno()})
        keeper, lifeline = _fork_keeper(body, channel, line)
        keeper_fd = os.pidfd_open(keeper)
    except OSError as error:
        line.send(REFUSED + str(error).encode())
        return
    channel.close()
    socket.send_fds(line, [BEGAN + str(keeper).encode()], [keeper_fd])
    _obey(line, timer, keeper_fd)
    os.waitpid(keeper, 0)
    os.close(lifeline)


def _secure(fence_at_s: float, holder: int, keep: set[int]) -> fence.Timer:
    """Take every precaution, in the only order that works; nothing has been started yet."""
    fence.enter_pid_namespace(fence.namespaces())  # writes maps: before `conceal`
    fence.die_with_parent()
    if os.getppid() != holder:
        os._exit(0)  # the holder ended before it could take us along
    _reset_signals()
    timer = fence.Timer()
    timer.arm(fence_at_s)
    os.setsid()
    _silence(keep)
    fence.conceal()
    return timer


def _reset_signals() -> None:
    """Drop the holder's handlers; all stay blocked until the tool child opens them again."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)


def _silence(keep: set[int]) -> None:
    """Point stdin and every inherited descriptor but `keep` and the outputs at /dev/null.

    Closing would free the number of the ledger's socket for the next file, and a stray write of
    its library would land there.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    for descriptor in _open_descriptors() - keep - {0, 1, 2, null}:
        os.dup2(null, descriptor, inheritable=False)
    os.close(null)


def _open_descriptors() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/fd")}


def _fork_keeper(body: Body, channel: socket.socket, line: socket.socket) -> tuple[int, int]:
    """Start the keeper; the pipe returned stays open exactly as long as the launcher lives."""
    read_end, write_end = os.pipe()

    def life() -> None:
        os.close(write_end)
        _live_as_keeper(body, channel, line, read_end)

    keeper = fork(life)
    os.close(read_end)
    return keeper, write_end


def _obey(line: socket.socket, timer: fence.Timer, keeper_fd: int) -> None:
    """Re-arm as told until the keeper ends; leave, and so kill, if the holder hangs up."""
    for ready in _events(line.fileno(), keeper_fd):
        if ready == keeper_fd:
            return
        order = line.recv(PACKET_BYTES_MAX)
        if not order:
            os._exit(0)
        (at_s,) = INSTANT.unpack(order)
        timer.arm(at_s)
        with contextlib.suppress(OSError):
            line.send(ARMED + order, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def _events(*descriptors: int) -> Iterator[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    while True:
        yield from (descriptor for descriptor, _ in poll.poll())


def _live_as_keeper(body: Body, channel: socket.socket, line: socket.socket, lifeline: int) -> None:
    fence.die_with_parent()
    if readable(lifeline, 0):
        os._exit(0)  # the launcher ended before it could take us along; its pid is not ours to see
    fence.adopt_orphans()
    keeper = os.getpid()

    def life() -> None:
        os.close(lifeline)
        line.close()
        _live_as_tool(body, channel, keeper)

    tool = fork(life)
    channel.close()
    ending = _wait_for(tool)
    with contextlib.suppress(OSError):
        line.send(ENDED + ENDING.pack(ending), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    _end_the_rest()


def _wait_for(tool: int) -> int:
    """Reap whatever ends until the tool itself has; pass SIGTERM on to its group."""
    while True:
        if signal.sigwait({signal.SIGCHLD, signal.SIGTERM}) == signal.SIGTERM:
            _terminate_group(tool)
        for pid, ending in _ended_children():
            if pid == tool:
                return ending


def _terminate_group(tool: int) -> None:
    try:
        os.killpg(tool, signal.SIGTERM)
    except ProcessLookupError:  # it has not made its group yet
        os.kill(tool, signal.SIGTERM)


def _ended_children() -> Iterator[tuple[int, int]]:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def _end_the_rest() -> None:
    """Kill what the tool left behind; as PID 1 of a namespace, leaving does it better."""
    if os.getpid() == 1:
        return
    while left := fence.children():
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _live_as_tool(body: Body, channel: socket.socket, keeper: int) -> None:
    os.setsid()
    fence.die_with_parent()
    if os.getppid() != keeper:
        return
    gc.freeze()  # the holder's objects are not ours to collect: no page is copied for it
    gc.enable()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    body(Channel(channel))


def fork(life: Callable[[], None]) -> int:
    """Fork with every signal blocked, so that no handler of the parent runs in the child.

    The collector rests: in the child it could close a connection object through its library
    before the descriptors have been pointed elsewhere.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    collecting = gc.isenabled()
    gc.disable()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _leave_after(life)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if collecting:
            gc.enable()
    return pid


def _leave_after(life: Callable[[], None]) -> NoReturn:
    """Live, then leave by `os._exit`: no cleanup of the holder's may run in its child."""
    code = BODY_RAISED
    try:
        life()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else BODY_RAISED
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def readable(descriptor: int, until: float) -> bool:
    """Wait, up to an instant of the monotonic clock, until a read would not block."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))
