"""What the kernel says about a pid: whether it lives, who it is, what it was started with.

A number alone proves nothing, for numbers are used again. A pid is believed only together
with the instant of its start (`birth`), its command line or its working directory. Linux
answers from /proc; elsewhere `ps` answers what it can and the rest is "not known".
"""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from standalone.waiting import until


def alive(pid: int) -> bool:
    """Whether `pid` runs; a zombie, dead but not yet waited for, does not."""
    state = _field_after_name(pid, 0)
    if state:
        return state not in "ZX"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return not _has_proc()
    return not _has_proc()


def birth(pid: int) -> str:
    """The instant `pid` began, as this boot's kernel counts it, or "" when it is gone.

    Boot id and clock ticks since boot: equal only for the very same program run.
    """
    if not _has_proc():
        return _ps(pid, "lstart")
    ticks = _field_after_name(pid, 19)
    return f"{_boot_id()}:{ticks}" if ticks else ""


def command_line(pid: int) -> list[str]:
    """The words `pid` was started with; empty when it is gone or hides them."""
    if not _has_proc():
        return _ps(pid, "args").split()
    with suppress(OSError):
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        return [word.decode("utf-8", "replace") for word in raw.split(b"\0") if word]
    return []


def working_folder(pid: int) -> str:
    """Where `pid` stands, or "" when it is gone, foreign, or the system has no /proc."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def children(pid: int) -> list[int]:
    """The direct children of `pid`, as of now; empty where there is no /proc."""
    with suppress(OSError):
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    return []


def resident_mb(pid: int) -> int | None:
    """Memory that `pid` holds, in MiB, shared pages included; None when not known."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
    return None


def send(pid: int, number: signal.Signals) -> None:
    """Signal `pid`; one that is gone already is no error."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def end(pid: int, steps: tuple[tuple[signal.Signals, float], ...]) -> bool:
    """Send each signal in turn and wait its seconds, until `pid` is gone. False: it is not."""
    for number, grace_s in steps:
        send(pid, number)
        if until(lambda: not alive(pid), limit_s=grace_s):
            return True
    return False


def _field_after_name(pid: int, index: int) -> str:
    """A field of /proc/<pid>/stat, counted behind the name, which may itself hold blanks."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[index]
    return ""


def _boot_id() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")


def _ps(pid: int, column: str) -> str:
    asked = subprocess.run(  # noqa: S603
        ["ps", "-o", f"{column}=", "-p", str(pid)],  # noqa: S607
        capture_output=True,
        text=True,
    )
    return asked.stdout.strip()
