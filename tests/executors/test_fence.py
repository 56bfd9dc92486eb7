"""The parts of the kernel fence, each asked of the real kernel."""

import os
import signal
import subprocess
import sys

import pytest

from executors import fence
from ledger.vocabulary import FenceKind
from tests.executors.watched import (
    forked,
    read_within,
    require_boottime_timer,
    require_namespaces,
    stay,
)


def told_by_a_child(question) -> bytes:
    asked, told = os.pipe()

    def life() -> None:
        os.write(told, repr(question()).encode())

    with forked(life):
        answer = read_within(asked)
    os.close(asked)
    os.close(told)
    return answer


def test_the_fence_fires_before_the_lease_that_was_asked_for_can_end():
    assert fence.instant(asked_at_s=100.0, lease_s=15.0) == 112.0


def test_an_instant_in_the_past_fires_at_once():
    require_boottime_timer()

    def life() -> None:
        fence.Timer().arm(fence.boottime_s() - 5)
        stay()

    with forked(life) as child:
        assert os.WTERMSIG(child.wait_status()) == signal.SIGKILL


def test_a_later_instant_replaces_the_earlier_one():
    require_boottime_timer()
    later_s = fence.boottime_s() + 3.0

    def life() -> None:
        timer = fence.Timer()
        timer.arm(later_s - 1.0)  # a fork on a busy machine takes a while, too
        timer.arm(later_s)
        stay()

    with forked(life) as child:
        child.wait_status()
    assert fence.boottime_s() >= later_s


def test_the_interval_timer_also_fires_where_the_alarm_was_ignored_and_blocked(monkeypatch):
    monkeypatch.setattr(fence, "available", lambda: fence.Mechanism.INTERVAL_TIMER)

    def life() -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        fence.Timer().arm(fence.boottime_s() + 0.1)
        stay()

    with forked(life) as child:
        assert os.WTERMSIG(child.wait_status()) == signal.SIGALRM


@pytest.mark.parametrize(
    ("mechanism", "space", "may_spawn", "declared"),
    [
        ("boottime_timer", "privileged", True, FenceKind.KERNEL),
        ("boottime_timer", "user", True, FenceKind.KERNEL),
        ("boottime_timer", "none", True, FenceKind.NONE),
        ("boottime_timer", "none", False, FenceKind.KERNEL),
        ("interval_timer", "privileged", True, FenceKind.NONE),
        ("none", "none", False, FenceKind.NONE),
    ],
)
def test_only_a_fence_that_proves_the_death_of_everything_is_declared_as_kernel(
    monkeypatch, mechanism, space, may_spawn, declared
):
    monkeypatch.setattr(fence, "available", lambda: fence.Mechanism(mechanism))
    monkeypatch.setattr(fence, "namespaces", lambda: fence.Namespaces(space))
    assert fence.kind(may_spawn=may_spawn) is declared


def test_a_concealed_process_leaves_no_core_file():
    def limit() -> str:
        fence.conceal()
        with open("/proc/self/limits", encoding="utf-8") as file:
            return next(line for line in file if line.startswith("Max core")).split()[4]

    assert told_by_a_child(limit) == b"'0'"


def test_a_process_that_gave_up_root_still_gets_a_namespace():
    require_namespaces()
    if os.geteuid() != 0:
        pytest.skip("Only root can give up root.")

    def question() -> str:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        fence.namespaces.cache_clear()
        return str(fence.namespaces())

    assert told_by_a_child(question) in (b"'user'", b"'none'")


def test_the_children_of_a_process_are_listed_the_same_by_both_ways():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in fence._children_by_thread()
        assert fence._children_by_thread() == fence._children_by_scan()
        child.communicate(b"\n")


def test_the_kernels_count_of_memory_kills_is_read():
    assert fence.memory_kills() >= 0
