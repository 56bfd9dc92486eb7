"""The real launcher under real signals: K1 to K7 by name, then what its holder relies on.

Effects are bytes written to a pipe that a tool inherits as its output; death is what pidfds say.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from executors import fence, launcher
from executors.channel import Channel, Closed, Message
from executors.launcher import Death, Running
from executors.tree import BODY_RAISED
from tests.executors.watched import (
    Watched,
    forked,
    never_execed,
    read_within,
    require_boottime_timer,
    require_namespaces,
    stay,
    wait_until,
)
from tests.facts.test_kernel import LINGER_AND_RESET

SOON_S, LATER_S = 0.8, 30.0

Launch = Callable[..., Running]


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Launch as a holder does; whatever a test leaves behind is killed and reaped."""
    started: list[Running] = []

    def begin(body: Callable[[Channel], Any], *, fence_in_s: float = LATER_S) -> Running:
        started.append(launcher.launch(body, fence_at_s=fence.boottime_s() + fence_in_s))
        return started[-1]

    yield begin
    for running in started:
        if running.reap(0) is None:
            running.kill()
            assert running.reap(5) is not None, "The launcher's tree outlived its test."
        running.close()


@pytest.fixture
def without_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence, "namespaces", lambda: fence.Namespaces.NONE)


def tell(channel: Channel, **words: Any) -> dict[str, Any]:
    return channel.request(words)


def hear(running: Running, limit_s: float = 5.0) -> dict[str, Any]:
    """Receive one message and answer it."""
    message = running.receive(limit_s)
    assert isinstance(message, Message), message
    running.answer({})
    return message.body


def began_and_stays(channel: Channel) -> None:
    tell(channel, began=True)
    stay()


def deaf_and_stays(channel: Channel) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    began_and_stays(channel)


def leaves_a_daemon(channel: Channel) -> None:
    """Start a daemon that has its own session and a program of its own, and go on."""
    sleeper = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    tell(channel, daemon=sleeper.pid)


def leaves_a_daemon_and_stays(channel: Channel) -> None:
    leaves_a_daemon(channel)
    stay()


def pids_of(pid: int) -> list[int]:
    """The ids of a process, outermost namespace first; every user may read them."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return [int(each) for line in lines if line.startswith("NSpid:") for each in line.split()[1:]]


def tree_of(running: Running) -> list[Watched]:
    """Launcher, keeper, and all below, the eldest first."""
    found = [Watched.of(running._launcher)]
    for process in found:
        found += process.children()
    return found


def dead(running: Running, limit_s: float = 5.0) -> Death:
    death = running.reap(limit_s)
    assert death is not None, f"Something still lives after {limit_s} s."
    return death


# --- K1 to K7 --------------------------------------------------------------------------------


def test_k1_under_the_interval_timer_a_stopped_launcher_dies_when_it_is_woken(launch, monkeypatch):
    monkeypatch.setattr(fence, "available", lambda: fence.Mechanism.INTERVAL_TIMER)
    running = launch(began_and_stays, fence_in_s=SOON_S)
    hear(running)
    processes = tree_of(running)
    processes[0].stop()
    assert running.reap(1.2 * SOON_S) is None
    processes[0].send(signal.SIGCONT)
    assert dead(running).fenced
    assert not any(process.is_alive for process in processes)


@pytest.mark.parametrize("body", [began_and_stays, deaf_and_stays])
def test_k2_launcher_keeper_and_tool_die_in_time_though_all_are_stopped(launch, body):
    require_boottime_timer()
    running = launch(body, fence_in_s=SOON_S)
    hear(running)
    processes = tree_of(running)
    assert len(processes) == 3
    for process in processes:
        process.stop()
    assert dead(running).fenced
    assert running.fence_at_s <= fence.boottime_s() < running.fence_at_s + 1
    assert not any(process.is_alive for process in processes)


def test_k3_neither_launcher_nor_keeper_execs(launch):
    running = launch(began_and_stays)
    hear(running)
    assert all(never_execed(process.pid) for process in tree_of(running))


def test_k3_the_fence_is_no_one_elses_timer(launch):
    require_boottime_timer()
    running = launch(began_and_stays)
    hear(running)
    timers = [Path(f"/proc/{process.pid}/timers") for process in tree_of(running)]
    if not timers[0].exists():
        pytest.skip("This kernel does not show timers in /proc (CONFIG_CHECKPOINT_RESTORE).")
    if os.geteuid():
        pytest.skip("The kernel shows the timers of a concealed process to root alone.")
    assert "signal: 9/" in timers[0].read_text()
    assert [timer.read_text() for timer in timers[1:]] == ["", ""]


def test_k4_the_keeper_is_the_init_and_the_launcher_outside_carries_the_fence(launch):
    require_namespaces()
    running = launch(began_and_stays)
    hear(running)
    launcher, keeper, tool = (pids_of(process.pid) for process in tree_of(running))
    outside = len(pids_of(os.getpid()))
    assert (len(launcher), len(keeper), len(tool)) == (outside, outside + 1, outside + 1)
    assert keeper[-1] == 1 != tool[-1]


def test_k5_a_daemon_with_its_own_session_dies_with_the_fence(launch):
    require_boottime_timer()
    require_namespaces()
    running = launch(leaves_a_daemon_and_stays, fence_in_s=SOON_S)
    hear(running)
    processes = tree_of(running)
    assert len(processes) == 4
    for process in processes[:2]:
        process.stop()
    assert dead(running).fenced
    assert not any(process.is_alive for process in processes)


def test_k6_a_launch_from_another_thread_is_refused():
    refusals: list[str] = []

    def of_thread() -> None:
        with contextlib.suppress(AssertionError):
            try:
                launcher.launch(began_and_stays, fence_at_s=fence.boottime_s() + 1)
            except RuntimeError as refusal:
                refusals.append(str(refusal))

    thread = threading.Thread(target=of_thread)
    thread.start()
    thread.join(5)
    assert "main thread" in refusals[0]


def holder_of(body: Callable[[Channel], Any], told: int, fence_in_s: float) -> Callable[[], None]:
    """A holder in a process of its own: launches, tells the pids of its tree, and stays."""

    def life() -> None:
        running = launcher.launch(body, fence_at_s=fence.boottime_s() + fence_in_s)
        hear(running)
        os.write(told, json.dumps([process.pid for process in tree_of(running)]).encode())
        stay()

    return life


@contextlib.contextmanager
def held_elsewhere(
    body: Callable[[Channel], Any], *, fence_in_s: float = LATER_S
) -> Iterator[tuple[Watched, list[Watched]]]:
    asked, told = os.pipe()
    with forked(holder_of(body, told, fence_in_s)) as holder:
        yield holder, [Watched.of(pid) for pid in json.loads(read_within(asked))]
    os.close(asked)
    os.close(told)


@pytest.mark.parametrize("body", [began_and_stays, deaf_and_stays])
def test_k6_all_die_when_the_holder_is_killed(body):
    with held_elsewhere(body) as (holder, processes):
        holder.send(signal.SIGKILL)
        assert all(process.ends_within(5) for process in processes)


def test_k6_a_daemon_dies_when_the_holder_is_killed():
    require_namespaces()
    with held_elsewhere(leaves_a_daemon_and_stays) as (holder, processes):
        holder.send(signal.SIGKILL)
        assert all(process.ends_within(5) for process in processes)


def test_all_die_at_the_fence_while_the_holder_is_stopped():
    require_boottime_timer()
    with held_elsewhere(deaf_and_stays, fence_in_s=SOON_S) as (holder, processes):
        holder.stop()
        assert all(process.ends_within(5) for process in processes)


def test_k7_a_fenced_tool_with_linger_zero_resets_its_connection(launch):
    require_boottime_timer()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        address = server.getsockname()

        def body(channel: Channel) -> None:
            line = socket.create_connection(address)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_AND_RESET)
            line.sendall(b"x" * 1000)
            began_and_stays(channel)

        running = launch(body, fence_in_s=SOON_S)
        peer, _ = server.accept()
        hear(running)
        assert dead(running).fenced
        with peer, pytest.raises(ConnectionResetError):
            _read_to_the_end(peer)


def _read_to_the_end(peer: socket.socket) -> None:
    while peer.recv(10):
        pass


# --- re-arming -------------------------------------------------------------------------------


def test_a_rearmed_fence_fires_at_the_new_instant(launch):
    running = launch(began_and_stays, fence_in_s=SOON_S)
    hear(running)
    later_s = running.fence_at_s + SOON_S
    assert running.rearm(later_s)
    dead(running)
    assert later_s <= fence.boottime_s() < later_s + 1


def test_a_dead_launcher_cannot_be_rearmed(launch):
    running = launch(began_and_stays)
    hear(running)
    running.kill()
    Watched.of(running._launcher).ends_within(5)
    assert running.rearm(fence.boottime_s() + LATER_S) is False


def test_a_stopped_launcher_does_not_acknowledge(launch):
    running = launch(began_and_stays)
    hear(running)
    tree_of(running)[0].stop()
    assert running.rearm(fence.boottime_s() + LATER_S) is False


def test_a_lease_already_over_leaves_nothing_alive(launch):
    require_boottime_timer()
    with pytest.raises(launcher.LaunchFailed, match="Nothing has begun"):
        launch(began_and_stays, fence_in_s=-1)


# --- ending ----------------------------------------------------------------------------------


def test_a_body_that_returns_ends_with_zero_and_everything_reaped(launch):
    running = launch(lambda channel: None)
    assert dead(running) == Death(exit_code=0, signal=None, resource_killed=False)
    assert running.receive(1) == Closed()


def test_a_body_that_raises_ends_with_its_own_code(launch):
    def body(channel: Channel) -> None:
        raise ValueError("a fault of the tool, as this test asked")

    assert dead(launch(body)).exit_code == BODY_RAISED


def test_a_body_may_choose_its_exit_code(launch):
    assert dead(launch(lambda channel: sys.exit(3))).exit_code == 3


def test_a_tool_that_kills_itself_is_told_by_its_signal(launch):
    death = dead(launch(lambda channel: os.kill(os.getpid(), signal.SIGKILL)))
    assert (death.signal, death.resource_killed, death.fenced) == (signal.SIGKILL, False, False)


def test_a_tool_over_its_cpu_time_is_killed_for_resources(launch):
    def body(channel: Channel) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (1, 10))
        while True:
            pass

    assert dead(launch(body), limit_s=20).resource_killed


def test_a_tool_killed_for_memory_is_told_apart_from_a_lost_one(launch):
    group = Path("/sys/fs/cgroup/memory/clearhouse-test")
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(32 << 20))
    except OSError:
        pytest.skip("This host gives no memory cgroup to kill a tool by.")

    def body(channel: Channel) -> None:
        (group / "cgroup.procs").write_text("0")
        hoard = [bytearray(b"x" * (1 << 20)) for _ in range(200)]
        tell(channel, survived=len(hoard))

    try:
        death = dead(launch(body))
    finally:
        group.rmdir()
    assert (death.signal, death.resource_killed) == (signal.SIGKILL, True)


def test_a_living_tool_is_not_reaped(launch):
    running = launch(began_and_stays)
    hear(running)
    assert running.reap(0.05) is None


def test_a_stop_lets_the_tool_end_by_itself(launch):
    def body(channel: Channel) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
        began_and_stays(channel)

    running = launch(body)
    hear(running)
    running.stop(grace_s=5)
    assert dead(running).exit_code == 5


def test_a_stop_reaches_the_tools_whole_group(launch):
    def body(channel: Channel) -> None:
        with subprocess.Popen(["/bin/sleep", "60"]) as child:
            tell(channel, began=True)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            sys.exit(-child.wait())

    running = launch(body)
    hear(running)
    running.terminate()
    assert dead(running).signal in (None, signal.SIGTERM)


def test_a_stop_kills_a_tool_that_does_not_listen(launch):
    running = launch(deaf_and_stays)
    hear(running)
    processes = tree_of(running)
    running.stop(grace_s=0.1)
    assert dead(running).resource_killed is False
    assert not any(process.is_alive for process in processes)


def test_what_has_been_reaped_cannot_be_stopped_or_rearmed_any_more(launch):
    running = launch(lambda channel: None)
    death = dead(running)
    running.stop(grace_s=5)
    running.kill()
    assert running.rearm(fence.boottime_s() + LATER_S) is False
    assert running.reap(0) is death


def test_messages_are_served_during_the_grace(launch):
    def body(channel: Channel) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        tell(channel, began=True)
        signal.sigwait({signal.SIGTERM})
        tell(channel, last="words")

    running = launch(body)
    hear(running)
    running.terminate()
    assert hear(running) == {"last": "words"}
    assert dead(running).exit_code == 0


def test_a_daemon_does_not_outlive_a_tool_that_ended_well(launch):
    require_namespaces()
    running = launch(leaves_a_daemon)
    hear(running)
    daemons = tree_of(running)[2:]
    assert dead(running).exit_code == 0
    assert not any(daemon.is_alive for daemon in daemons)


def test_a_killed_launcher_takes_all_along(launch):
    running = launch(deaf_and_stays)
    hear(running)
    processes = tree_of(running)
    processes[0].send(signal.SIGKILL)
    assert dead(running).fenced is False
    assert not any(process.is_alive for process in processes)


def test_a_killed_keeper_takes_the_tool_along(launch):
    running = launch(deaf_and_stays)
    hear(running)
    processes = tree_of(running)
    processes[1].send(signal.SIGKILL)
    assert dead(running).exit_code is None
    assert not any(process.is_alive for process in processes)


def test_many_launches_leave_no_descriptor_and_no_child_behind(launch):
    dead(launch(lambda channel: None))
    before, children = len(os.listdir("/proc/self/fd")), fence.children()
    for _ in range(5):
        running = launch(lambda channel: None)
        dead(running)
        running.close()
    assert (len(os.listdir("/proc/self/fd")), fence.children()) == (before, children)


def test_a_host_that_refuses_a_namespace_has_begun_nothing(launch, monkeypatch):
    def refuse(how: fence.Namespaces) -> None:
        raise OSError(28, "No space left: the limit of namespaces is reached")

    monkeypatch.setattr(fence, "enter_pid_namespace", refuse)
    children = fence.children()
    with pytest.raises(launcher.LaunchFailed, match="limit of namespaces is reached"):
        launch(began_and_stays)
    assert fence.children() == children


# --- without namespaces ----------------------------------------------------------------------


@pytest.mark.usefixtures("without_namespaces")
def test_without_namespaces_the_keeper_ends_a_daemon_left_behind(launch):
    running = launch(leaves_a_daemon)
    daemon = Watched.of(hear(running)["daemon"])
    assert dead(running).exit_code == 0
    assert not daemon.is_alive


@pytest.mark.usefixtures("without_namespaces")
@pytest.mark.parametrize("victim", [0, 1])
def test_without_namespaces_the_holder_ends_a_daemon_left_to_it(launch, victim):
    running = launch(leaves_a_daemon_and_stays)
    hear(running)
    processes = tree_of(running)
    assert len(processes) == 4
    processes[victim].send(signal.SIGKILL)
    dead(running)
    assert not any(process.is_alive for process in processes)


@pytest.mark.usefixtures("without_namespaces")
def test_without_namespaces_a_child_the_holder_already_had_is_spared(launch):
    with subprocess.Popen(["/bin/sleep", "60"]) as bystander:
        running = launch(leaves_a_daemon_and_stays)
        hear(running)
        running.kill()
        dead(running)
        assert bystander.poll() is None
        bystander.kill()


@pytest.mark.usefixtures("without_namespaces")
def test_without_namespaces_the_fence_still_ends_launcher_and_tool(launch):
    require_boottime_timer()
    running = launch(deaf_and_stays, fence_in_s=SOON_S)
    hear(running)
    processes = tree_of(running)
    processes[0].stop()
    assert dead(running).fenced
    assert not any(process.is_alive for process in processes)


# --- what a tool child inherits --------------------------------------------------------------


def answer_of(launch: Launch, question: Callable[[], Any]) -> Any:
    running = launch(lambda channel: tell(channel, answer=question()))
    answer = hear(running)["answer"]
    dead(running)
    return answer


def test_an_inherited_socket_leads_nowhere_and_stays_open_for_its_holder(launch):
    ours, theirs = socket.socketpair()
    with ours, theirs:

        def misuse() -> int:
            os.write(ours.fileno(), b"garbage in the ledger's protocol")
            ours.close()
            return os.open(os.devnull, os.O_RDONLY)

        answer_of(launch, misuse)
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(100)


def test_a_tool_child_holds_only_its_outputs_and_its_channel(launch, tmp_path):
    def kinds() -> list[str]:
        return sorted(kind for number in range(3, 1024) if (kind := kind_of(number)) != "null")

    def kind_of(number: int) -> str:
        try:
            found = os.fstat(number)
        except OSError:
            return "null"
        null = found.st_rdev == os.stat(os.devnull).st_rdev
        return "null" if null else "socket" if stat.S_ISSOCK(found.st_mode) else "other"

    with (tmp_path / "lock").open("w"), socket.socketpair()[0]:
        assert answer_of(launch, kinds) == ["socket"]


def test_a_tool_child_has_default_signals_and_none_blocked(launch):
    def question() -> list[Any]:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        return [len(blocked), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL]

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        assert answer_of(launch, question) == [0, True]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_tool_child_leads_its_own_session(launch):
    assert answer_of(launch, lambda: os.getsid(0) == os.getpgid(0) == os.getpid())


def test_no_other_process_may_read_the_tools_memory(launch):
    pr_get_dumpable = 3
    assert answer_of(launch, lambda: ctypes.CDLL(None).prctl(pr_get_dumpable, 0, 0, 0, 0)) == 0


# --- as an ordinary user ---------------------------------------------------------------------


def test_an_ordinary_user_launches_and_reaps_as_root_does():
    if os.geteuid() != 0:
        pytest.skip("These tests already run as an ordinary user.")
    asked, told = os.pipe()

    def life() -> None:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        fence.namespaces.cache_clear()
        running = launcher.launch(leaves_a_daemon, fence_at_s=fence.boottime_s() + 10)
        hear(running)
        (death, left) = (running.reap(5), fence.children())
        os.write(told, json.dumps([death is not None and death.exit_code, len(left)]).encode())

    with forked(life):
        assert json.loads(read_within(asked)) == [0, 0]
    os.close(asked)
    os.close(told)


def test_the_tree_of_a_holder_that_ended_is_gone():
    with held_elsewhere(began_and_stays) as (holder, processes):
        holder.send(signal.SIGTERM)
        wait_until(lambda: not any(p.is_alive for p in processes), "all below are dead")
