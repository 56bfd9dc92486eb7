"""One render, as an operating-system process of its own: `python -m sandbox.rendering FOLDER`.

It begins a session of its own, so neither the worker that asked for it nor the sandbox
server that started it takes it along when it dies. All it knows and says is in its folder:

    request.json   what was asked: frames, seconds, fails, forget_after_s
    pid.json       its pid and start time, so that it is found again after a restart
    progress.txt   one line a frame, as it goes
    output.svg     what it renders
    result.json    written last: `done` with the artifact's checksum, or `failed`
"""

import fcntl
import hashlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from sandbox import durable

FORGOTTEN = ".forgotten-"


def main(folder: Path) -> int:
    """Render what `request.json` in `folder` asks for. Returns 1 where another one does."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 1  # two starts of one render, across a restart of the server: one renders
        _say(folder, "pid.json", {"pid": os.getpid(), "started": started_at(os.getpid())})
        _render(folder, json.loads((folder / "request.json").read_bytes()))
    return 0


def started_at(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot, or None if it has ended.

    Pid and start time together name one process for ever; a pid alone is used again.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # proc(5): the name before it may hold anything
    return None if fields[0] in "ZX" else int(fields[19])


def _render(folder: Path, request: dict[str, Any]) -> None:
    frames, seconds = request["frames"], request["seconds"]
    began = time.monotonic()
    with (folder / "progress.txt").open("a") as progress:
        for frame in range(1, frames + 1):
            _wait_until(began + seconds * frame / frames)
            progress.write(f"frame {frame} of {frames}\n")
            progress.flush()
            folder = _forgotten(folder, request, since_s=time.monotonic() - began)
    _say(folder, "result.json", _failed(request) or _finished(folder, frames))


def _wait_until(instant: float) -> None:
    threading.Event().wait(max(0.0, instant - time.monotonic()))


def _forgotten(folder: Path, request: dict[str, Any], *, since_s: float) -> Path:
    """Take the folder out of sight when its time has come: the outside forgets the handle."""
    due = request["forget_after_s"]
    if due is None or since_s < due or folder.name.startswith(FORGOTTEN):
        return folder
    hidden = folder.with_name(f"{FORGOTTEN}{os.getpid()}-{folder.name}")
    folder.rename(hidden)
    return hidden


def _failed(request: dict[str, Any]) -> dict[str, Any] | None:
    if not request["fails"]:
        return None
    return {"state": "failed", "error": "The render ended with an error, as it was asked to."}


def _finished(folder: Path, frames: int) -> dict[str, Any]:
    drawing = _drawing(frames).encode()
    durable.write(folder / "output.svg", drawing)
    return {
        "state": "done",
        "artifact": "output.svg",
        "frames": frames,
        "sha256": hashlib.sha256(drawing).hexdigest(),
        "size_bytes": len(drawing),
    }


def _drawing(frames: int) -> str:
    bars = "".join(
        f'<rect x="{8 * n}" y="{64 - n % 64}" width="6" height="{n % 64 + 1}"/>'
        for n in range(frames)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{8 * frames}" height="65">{bars}</svg>'


def _say(folder: Path, name: str, value: dict[str, Any]) -> None:
    durable.write(folder / name, json.dumps(value).encode())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
