"""Files that are there in full or not at all: temporary file, fsync, rename, fsync of the folder.

A reader never sees half a file under its final name, and what was said to be written
survives the loss of power.
"""

import os
from pathlib import Path


def write(file: Path, body: bytes) -> None:
    """Put `body` at `file`, replacing what was there, in one step."""
    with folder_of(file.parent) as folder:
        write_in(folder, file.name, body, temporary=f".{file.name}.{os.getpid()}.part")


def write_in(folder: int, name: str, body: bytes, *, temporary: str) -> None:
    """The same in a folder that is open already, by way of the name `temporary`."""
    with opened(folder, temporary) as file:
        file.write(body)
    publish(folder, temporary, name)


def publish(folder: int, temporary: str, name: str) -> None:
    """Give a finished temporary file its final name, and make that last."""
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


class opened:
    """A new file in an open folder, synced to disk when its block ends well."""

    def __init__(self, folder: int, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb")

    def __enter__(self) -> "opened":
        return self

    def write(self, body: bytes) -> None:
        self._file.write(body)

    def sync(self) -> None:
        """Return when what was written is on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.sync()
        finally:
            self._file.close()


class folder_of:
    """An open folder, as a descriptor, for the length of a block."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
