"""The kernel's facts K1 to K7, on which the self-fence stands. If one fails, so does the fence.

Source: reliability, section 2. The same facts on the real launcher: tests/executors/test_launcher.
"""

import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from executors import fence, tree
from tests.executors.watched import (
    Watched,
    forked,
    pending_signals,
    read_within,
    readable,
    require_boottime_timer,
    require_namespaces,
    stay,
    wait_until,
)

SOON_S = 0.2
LINGER_AND_RESET = struct.pack("ii", 1, 0)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


@pytest.mark.parametrize("repetition", range(5))
def test_k1_an_interval_timer_ends_a_stopped_child_before_one_more_instruction(pipe, repetition):
    def life() -> None:
        signal.setitimer(signal.ITIMER_REAL, SOON_S)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.write(pipe[1], b"late effect")

    with forked(life) as child:
        alarm = 1 << (signal.SIGALRM - 1)
        wait_until(lambda: bool(pending_signals(child.pid) & alarm), "the alarm is pending")
        child.send(signal.SIGCONT)
        assert os.WTERMSIG(child.wait_status()) == signal.SIGALRM
    assert not readable(pipe[0], 0)


def test_k1_without_a_timer_a_woken_child_acts_late(pipe):
    def life() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)
        os.write(pipe[1], b"late effect")

    with forked(life) as child:
        os.waitpid(child.pid, os.WUNTRACED)
        child.send(signal.SIGCONT)
        assert read_within(pipe[0]) == b"late effect"


def test_k2_a_boottime_timer_kills_a_stopped_child_that_blocks_every_signal():
    require_boottime_timer()
    at_s = fence.boottime_s() + SOON_S

    def life() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        fence.Timer().arm(at_s)
        os.kill(os.getpid(), signal.SIGSTOP)

    with forked(life) as child:
        assert os.WTERMSIG(child.wait_status()) == signal.SIGKILL
    assert at_s <= fence.boottime_s() < at_s + 1


def test_k3_exec_deletes_a_boottime_timer():
    require_boottime_timer()

    def life() -> None:
        fence.Timer().arm(fence.boottime_s() + SOON_S)
        os.execv("/bin/sleep", ["sleep", str(3 * SOON_S)])

    with forked(life) as child:
        assert child.wait_status() == 0


def test_k3_exec_keeps_an_interval_timer():
    def life() -> None:
        signal.setitimer(signal.ITIMER_REAL, SOON_S)
        os.execv("/bin/sleep", ["sleep", "5"])

    with forked(life) as child:
        assert os.WTERMSIG(child.wait_status()) == signal.SIGALRM


def test_k3_a_blocked_alarm_is_inherited_through_exec_and_disarms_the_timer():
    def life() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, SOON_S)
        os.execv("/bin/sleep", ["sleep", str(3 * SOON_S)])

    with forked(life) as child:
        assert child.wait_status() == 0


def test_k3_fork_inherits_neither_timer(pipe):
    require_boottime_timer()

    def life() -> None:
        fence.Timer().arm(fence.boottime_s() + SOON_S)
        signal.setitimer(signal.ITIMER_REAL, SOON_S)
        parent = os.getpid()
        if os.fork() == 0:
            wait_until(lambda: os.getppid() != parent, "the parent was killed by its timer")
            os.write(pipe[1], b"alive")
            os._exit(0)
        stay()

    with forked(life):
        assert read_within(pipe[0]) == b"alive"


def test_k4_the_init_of_a_pid_namespace_survives_its_own_timers(pipe):
    require_boottime_timer()
    require_namespaces()

    def init() -> None:
        at_s = fence.boottime_s() + SOON_S
        fence.Timer().arm(at_s)
        signal.setitimer(signal.ITIMER_REAL, SOON_S)
        wait_until(lambda: fence.boottime_s() > at_s + SOON_S, "both timers have fired")
        os.write(pipe[1], b"survived as %d" % os.getpid())

    def life() -> None:
        fence.enter_pid_namespace(fence.namespaces())
        os.waitpid(tree.fork(init), 0)

    with forked(life):
        assert read_within(pipe[0]) == b"survived as 1"


def test_k5_all_below_a_fenced_parent_dies_with_its_namespace(pipe):
    require_boottime_timer()
    require_namespaces()
    at_s = fence.boottime_s() + 0.8

    def tool() -> None:
        os.setsid()
        os.write(pipe[1], b"began")
        os.execv("/bin/sleep", ["sleep", "30"])

    def init() -> None:
        fence.die_with_parent()
        os.waitpid(tree.fork(tool), 0)

    def life() -> None:
        fence.enter_pid_namespace(fence.namespaces())
        fence.Timer().arm(at_s)
        tree.fork(init)
        stay()

    with forked(life) as parent:
        read_within(pipe[0])
        (below,) = parent.children()
        (sleeper,) = below.children()
        for process in (parent, below):
            process.stop()
        assert all(process.ends_within(2) for process in (parent, below, sleeper))
        assert at_s <= fence.boottime_s() < at_s + 1


def test_k6_a_child_of_an_ended_thread_is_killed_at_once(pipe):
    def start_from_a_thread() -> None:
        def grandchild() -> None:
            fence.die_with_parent()
            os.write(pipe[1], b"%d" % os.getpid())
            stay()

        def of_thread() -> None:
            tree.fork(grandchild)
            release.wait(5)

        release = threading.Event()
        thread = threading.Thread(target=of_thread)
        thread.start()
        signal.sigwait({signal.SIGUSR1})
        release.set()
        thread.join()
        stay()

    def life() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        start_from_a_thread()

    with forked(life) as parent:
        grandchild = Watched.of(int(read_within(pipe[0])))
        assert grandchild.is_alive
        parent.send(signal.SIGUSR1)
        assert grandchild.ends_within(5)
        assert parent.is_alive


def bytes_read_after_the_sender_was_killed(option: bytes | None) -> tuple[int, int]:
    """Fill a TCP socket's buffers, kill its owner, read: (bytes queued, bytes that arrived)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked, told = os.pipe()

        def life() -> None:
            line = socket.create_connection(server.getsockname())
            if option is not None:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
            line.settimeout(0.3)
            queued = 0
            with contextlib.suppress(TimeoutError):
                while True:
                    queued += line.send(bytes(65536))
            os.write(told, str(queued).encode())
            stay()

        with forked(life) as sender:
            peer, _ = server.accept()
            queued = int(read_within(asked))
            sender.send(signal.SIGKILL)
            assert sender.ends_within(5)
        os.close(asked)
        os.close(told)
        return queued, _drained(peer)


def _drained(peer: socket.socket) -> int:
    arrived = 0
    with peer, contextlib.suppress(ConnectionResetError):
        peer.settimeout(5)
        while chunk := peer.recv(1 << 20):
            arrived += len(chunk)
    return arrived


def test_k7_what_a_killed_sender_had_queued_still_arrives():
    queued, arrived = bytes_read_after_the_sender_was_killed(None)
    assert arrived == queued > 1 << 20


def test_k7_with_linger_zero_a_killed_sender_resets_its_connection():
    queued, arrived = bytes_read_after_the_sender_was_killed(LINGER_AND_RESET)
    assert arrived < queued


def test_the_boottime_clock_is_the_one_that_fences_are_counted_on():
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= fence.boottime_s() <= time.clock_gettime(time.CLOCK_BOOTTIME)
