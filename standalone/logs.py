"""Log files of servers and programs: appended to, one old copy kept, read from the end."""

import os
from pathlib import Path
from typing import BinaryIO

SIZE_BYTES_MAX = 10 * 2**20  # looked at when a program starts; the copy replaces an older one
TAIL_BYTES = 16_384


def opened(path: Path) -> BinaryIO:
    """The log at `path`, private, for a child to append to; a large one is moved aside."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > SIZE_BYTES_MAX:
        path.replace(path.with_name(path.name + ".1"))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def tail(path: Path, lines: int = 12, since_byte: int = 0) -> str:
    """The last lines of a log from `since_byte` on, or a remark when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(since_byte, path.stat().st_size - TAIL_BYTES))
            kept = log.read().decode("utf-8", "replace").strip().splitlines()[-lines:]
    except OSError:
        kept = []
    return "\n".join(kept) or "(nothing was written)"
