"""Paths that agents name, walked so that they cannot leave their folder (S19).

A path is refused by its text first, then walked part by part from an open folder without
following a link, so a link that is swapped in meanwhile leads nowhere. Never join a name
from an agent to a path by hand.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from executors.python.errors import Refused
from ledger.vocabulary import Cause

PART_BYTES_MAX = 255
PATH_BYTES_MAX = 1024
FILE_BYTES_MAX = 1024 * 1024
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
CONTROL = re.compile(r"[\x00-\x1f\x7f\\:]")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe does not block


class BadPath(Refused):
    """The path leads, or could lead, out of its folder. Nothing was opened."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            Cause.VALIDATION,
            f"The path {path[:80]!r} was refused: {why}. Nothing was opened. Name a path of "
            "plain parts below the sandbox folder, such as 'reports/may.txt'.",
        )


def parts_of(path: str) -> tuple[str, ...]:
    """Return the parts of a relative path. Raises `BadPath` for all that is not plain."""
    why = _why_not(path)
    parts = tuple(path.split("/"))
    why = why or next(filter(None, map(_why_not_part, parts)), "")
    if why:
        raise BadPath(path, why)
    return parts


def _why_not(path: str) -> str:
    try:
        size_bytes = len(path.encode())
    except UnicodeEncodeError:
        return "it is not valid Unicode"
    if size_bytes > PATH_BYTES_MAX:
        return f"it is longer than {PATH_BYTES_MAX} bytes"
    if CONTROL.search(path):
        return "it has a control character, a backslash or a colon"
    return ""


def _why_not_part(part: str) -> str:
    if part in ("", ".", ".."):
        return "it is absolute, empty, or has a part that is '.' or '..'"
    if part[0] in ".~":
        return "a part begins with a dot or a tilde"
    if part[-1] in ". ":
        return "a part ends with a dot or a space"
    if RESERVED.fullmatch(part):
        return "a part is a reserved name"
    if len(part.encode()) > PART_BYTES_MAX:
        return f"a part is longer than {PART_BYTES_MAX} bytes"
    return ""


@contextmanager
def folder_below(root: Path, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that holds `path` below `root`; yield its descriptor and the last part.

    With `make`, folders on the way are made. Raises `BadPath`, or `FileNotFoundError`.
    """
    *folders, name = parts_of(path)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            descriptor = _step(descriptor, part, path, make=make)
        yield descriptor, name
    finally:
        os.close(descriptor)


def _step(folder: int, part: str, path: str, *, make: bool) -> int:
    if make:
        try:
            os.mkdir(part, 0o700, dir_fd=folder)
        except FileExistsError:
            pass
    below = _opened(part, FOLDER, folder, path)
    os.close(folder)
    return below


def read(root: Path, path: str, *, size_bytes_max: int = FILE_BYTES_MAX) -> bytes:
    """Return the body of a plain file below `root`, at most `size_bytes_max` of it.

    Raises `BadPath` for a link or anything that is not a plain file, `FileNotFoundError`.
    """
    with folder_below(root, path) as (folder, name):
        descriptor = _opened(name, FILE, folder, path)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise BadPath(path, "it is not a plain file")
        with os.fdopen(descriptor, "rb") as file:
            return file.read(size_bytes_max)


def _opened(name: str, flags: int, folder: int, path: str) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise BadPath(path, "a part of it is a link or not a folder") from error
        raise
