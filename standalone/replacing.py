"""Replaces a file in one step and keeps what it was as FILE.orig.

At every instant there is a whole FILE: the old one or the new one. An earlier FILE.orig is
never written over, since it may be the only copy of what was first received.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from standalone.errors import Refusal


def replace(path: Path, text: str) -> None:
    """Write `text` to the file, its mode as it was. Raises Refusal where FILE.orig is there."""
    path = path.resolve()  # a link stays a link
    kept = path.with_name(f"{path.name}.orig")
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, name)
        _keep(path, kept)
        os.replace(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _keep(path: Path, kept: Path) -> None:
    try:
        with path.open("rb") as old, kept.open("xb") as copy:
            shutil.copyfileobj(old, copy)
            os.fsync(copy.fileno())
    except FileExistsError:
        raise Refusal(
            f"{kept} is there from an earlier repair. Nothing was written. Move it away, or "
            "write elsewhere with -o."
        ) from None
    shutil.copystat(path, kept)
