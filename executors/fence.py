"""What the kernel guarantees when our own code no longer can: the self-fence and its parts.

An attempt that lost its lease must be dead before anybody may say "it did not happen". So the
launcher arms a timer on CLOCK_BOOTTIME (it counts through suspend) whose signal is SIGKILL:
neither SIGSTOP nor a blocked signal holds it back (K2). What is below the launcher follows by
PDEATHSIG, and by the end of its PID namespace where the host allows one (K5).

Never: arm a timer in a namespace's init (K4), exec in a process that carries one (K3), or call
anything here from a thread other than the main one (K6). Linux only; no Django, no database.
Source: reliability, sections 2 (the kernel) and 5 (kernel self-fence).
"""

import ctypes
import os
import resource
import signal
import time
from collections.abc import Callable
from enum import StrEnum
from functools import cache

from ledger.vocabulary import FenceKind

SELF_FENCE_SHARE = 0.8
"""The part of a lease, counted from before it was asked for, after which the fence fires."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_CLONE_NEWUSER, _CLONE_NEWPID = 0x10000000, 0x20000000
_TIMER_ABSTIME = 1


class Mechanism(StrEnum):
    """By what the launcher dies in time."""

    BOOTTIME_TIMER = "boottime_timer"
    """`timer_create(CLOCK_BOOTTIME)` with SIGKILL: the kernel fence."""

    INTERVAL_TIMER = "interval_timer"
    """`setitimer` with SIGALRM at its default: a stopped launcher dies only when it is woken (K1),
    and what is below it runs on until then. Better than nothing, no proof of death."""

    NONE = "none"
    """No timer at all."""


class Namespaces(StrEnum):
    """How this host lets us put a tool into a PID namespace of its own."""

    PRIVILEGED = "privileged"
    """`unshare(CLONE_NEWPID)` with CAP_SYS_ADMIN."""

    USER = "user"
    """Inside a new user namespace that maps our own ids to themselves."""

    NONE = "none"
    """Not at all: process group, PDEATHSIG and subreaper have to do."""


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class _Sigevent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),  # 0: SIGEV_SIGNAL
        ("padding", ctypes.c_char * 64),
    )


_libc = ctypes.CDLL(None, use_errno=True)


def _symbol(name: str) -> Callable[..., int]:
    """Find a C function; before glibc 2.34 the timers live in librt."""
    library = _libc if hasattr(_libc, name) else ctypes.CDLL("librt.so.1", use_errno=True)
    found: Callable[..., int] = getattr(library, name)
    return found


def _check(answer: int, what: str) -> None:
    if answer != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def boottime_s() -> float:
    """Read CLOCK_BOOTTIME, in seconds: the only clock by which fences are counted."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def instant(*, asked_at_s: float, lease_s: float) -> float:
    """Give the instant on CLOCK_BOOTTIME at which an attempt must be dead.

    `asked_at_s` is read *before* the claim or the heartbeat was sent, so the fence fires before
    the lease the database granted can end, however long the answer took.
    """
    return asked_at_s + SELF_FENCE_SHARE * lease_s


class Timer:
    """The calling process's own end, armed for an absolute instant on CLOCK_BOOTTIME.

    A fork does not inherit it and an exec deletes it (K3). An instant in the past fires at once.
    """

    def __init__(self) -> None:
        self.mechanism = available()
        self._id = _create_timer() if self.mechanism is Mechanism.BOOTTIME_TIMER else None

    def arm(self, at_s: float) -> None:
        """Die at `at_s`, instead of at any instant given before. Raises OSError if refused."""
        if self._id is not None:
            _set_timer(self._id, at_s)
        elif self.mechanism is Mechanism.INTERVAL_TIMER:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
            signal.setitimer(signal.ITIMER_REAL, max(at_s - boottime_s(), 1e-6))


def _create_timer() -> ctypes.c_void_p:
    event, timer = _Sigevent(signo=signal.SIGKILL), ctypes.c_void_p()
    answer = _symbol("timer_create")(time.CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(timer))
    _check(answer, "timer_create(CLOCK_BOOTTIME)")
    return timer


def _set_timer(timer: ctypes.c_void_p, at_s: float) -> None:
    # A value of zero would disarm; an instant long past fires at once.
    nanoseconds = max(int(at_s * 1_000_000_000), 1)
    setting = _Itimerspec(value=_Timespec(*divmod(nanoseconds, 1_000_000_000)))
    answer = _symbol("timer_settime")(timer, _TIMER_ABSTIME, ctypes.byref(setting), None)
    _check(answer, "timer_settime")


@cache
def available() -> Mechanism:
    """Say which timer this kernel gives us, found out by asking for one."""
    try:
        _symbol("timer_delete")(_create_timer())
    except (OSError, AttributeError):
        return Mechanism.INTERVAL_TIMER if hasattr(signal, "setitimer") else Mechanism.NONE
    return Mechanism.BOOTTIME_TIMER


def kind(*, may_spawn: bool = True) -> FenceKind:
    """Say which fence an attempt launched here may declare at its claim.

    `kernel` only where the end of the lease proves the death of *everything*: PDEATHSIG reaches
    the tool but not what it has started itself, so a tool that `may_spawn` needs a PID
    namespace besides the timer.
    """
    enough = not may_spawn or namespaces() is not Namespaces.NONE
    if available() is Mechanism.BOOTTIME_TIMER and enough:
        return FenceKind.KERNEL
    return FenceKind.NONE


def die_with_parent() -> None:
    """Have the kernel kill this process when the *thread* that forked it ends (K6).

    A parent that ended before this call sends nothing: look afterwards whether it still lives.
    """
    _check(_libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl(PDEATHSIG)")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that it can be waited for."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(CHILD_SUBREAPER)")


def conceal() -> None:
    """Leave no core file and let no other process of this user read our memory (S24).

    Afterwards `/proc/self` belongs to root: the maps of a user namespace are written before.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl(DUMPABLE)")


def enter_pid_namespace(how: Namespaces) -> None:
    """Let the next fork of this process be PID 1 of a new PID namespace.

    Raises OSError where the host refuses. With `Namespaces.NONE` it does nothing.
    """
    if how is Namespaces.PRIVILEGED:
        _check(_libc.unshare(_CLONE_NEWPID), "unshare(CLONE_NEWPID)")
    elif how is Namespaces.USER:
        user, group = os.geteuid(), os.getegid()
        # A process that gave up root is not dumpable, and then its maps are not its own to write.
        _check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl(DUMPABLE)")
        _check(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWPID), "unshare(CLONE_NEWUSER)")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/setgroups", "deny")  # without this an ordinary user's gid_map is refused
        _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


@cache
def namespaces() -> Namespaces:
    """Say how a PID namespace can be had here, found out once by making one."""
    ways = (Namespaces.PRIVILEGED, Namespaces.USER)
    return next((way for way in ways if _makes_an_init(way)), Namespaces.NONE)


def _makes_an_init(how: Namespaces) -> bool:
    def question() -> bool:
        enter_pid_namespace(how)
        return _ends_well(lambda: os.getpid() == 1)

    return _ends_well(question)


def _ends_well(question: Callable[[], bool]) -> bool:
    """Ask in a forked child, which leaves nothing behind."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if question() else 1)
        except BaseException:
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0


def children() -> set[int]:
    """List the direct children of this process, those it adopted included."""
    try:
        return _children_by_thread()
    except FileNotFoundError:
        return _children_by_scan()


def _children_by_thread() -> set[int]:
    found: set[int] = set()
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/children", encoding="utf-8") as file:
            found.update(int(pid) for pid in file.read().split())
    return found


def _children_by_scan() -> set[int]:
    """For kernels without CONFIG_PROC_CHILDREN."""
    return {
        int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _parent_of(pid) == os.getpid()
    }


def _parent_of(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def memory_kills() -> int:
    """Count the processes the kernel has killed for memory since boot, on the whole machine."""
    with open("/proc/vmstat", encoding="utf-8") as file:
        counts = dict(line.split() for line in file)
    return int(counts.get("oom_kill", 0))
