"""Where a drill happens and where its report is kept."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drills.stack import Stack

LOG_BYTES_MAX = 2_000_000


def report_folder(data: Path, kind: str) -> Path:
    """Make the folder of one report below the state folder; its name sorts by time."""
    base = data.resolve() / "drills"
    for number in range(1, 1000):
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        folder = base / f"{stamp}-{kind}{'' if number == 1 else f'-{number}'}"
        try:
            folder.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(f"{base} holds a thousand reports of this second.")


@contextmanager
def own_stack(folder: Path, **options: Any) -> Iterator[Stack]:
    """A stack in a temporary folder, ended and deleted with the block.

    The logs of its programs are kept in the report's folder, each up to two megabytes of its end.
    """
    root = Path(tempfile.mkdtemp(prefix="clh-drill-"))
    stack = Stack(root, **options)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
        _keep_logs(stack.state.logs, folder / "logs")
        shutil.rmtree(root, ignore_errors=True)


def _keep_logs(logs: Path, kept: Path) -> None:
    kept.mkdir(exist_ok=True)
    for log in logs.glob("*.log"):
        (kept / log.name).write_bytes(log.read_bytes()[-LOG_BYTES_MAX:])
