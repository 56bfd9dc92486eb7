"""CPU seconds of process trees, read from /proc (Linux)."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    # The name of a process may hold spaces and brackets; the fields begin behind the last one.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def tree(root: int) -> set[int]:
    """A process and everything below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
            except (OSError, IndexError):
                continue
    found, waiting = set(), [root]
    while waiting:
        pid = waiting.pop()
        found.add(pid)
        waiting += parents.get(pid, [])
    return found


def seconds(root: int) -> float:
    """CPU seconds that a tree has spent, its ended and buried children included."""
    total = 0
    for pid in tree(root):
        try:
            fields = _stat(pid)
        except OSError:
            continue
        total += sum(int(ticks) for ticks in fields[11:15])
    return total / TICKS


def spent_by_children() -> float:
    """CPU seconds of this process's ended children."""
    times = os.times()
    return times.children_user + times.children_system
