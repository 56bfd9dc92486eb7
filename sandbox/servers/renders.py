"""Long work with a handle: each render is an operating-system process of its own.

`POST /renders {key, marker, frames, seconds, fails, forget_after_s}` starts one and answers
202 with its handle; the same key or marker asked again gives the same render. `GET
/renders/<handle>` tells its state, `GET /renders?marker=...` or `?key=...` finds it, `DELETE
/renders/<handle>` ends it. States: `running`, `done`, `failed`, and `died` for one that ended
without a result.

The folder's name, `<key>.<marker>` as digests, is the handle and the index. Nothing is kept
in memory but the children to reap, so a new server finds every render that an old one began.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sandbox import durable, rendering
from sandbox.marks import digest
from sandbox.servers.http import Answer, Request, Route

PROJECT = Path(__file__).resolve().parents[2]
PROGRESS_BYTES_MAX = 64 * 1024
FRAMES_MAX = 1000
SECONDS_MAX = 600
POLL_AFTER_S = 1
STARTING_S = 10  # an interpreter that has not written its pid by then has died
HANDLE = r"[0-9a-f]{24}\.[0-9a-f]{24}"
ONE = rf"/renders/(?P<handle>{HANDLE})"


class Renders:
    """The renders below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []

    def routes(self) -> list[Route]:
        """Return the addresses of renders."""
        return [
            Route("POST", "/renders", self._asked),
            Route("GET", "/renders", self._listed),
            Route("GET", ONE, self._shown),
            Route("DELETE", ONE, self._ended),
        ]

    def start(self, request: dict[str, Any]) -> str:
        """Return the handle of the render with this key or marker, started if it is new."""
        known = self.find(key=request["key"]) or self.find(marker=request["marker"])
        if known:
            return known[0]
        handle = f"{digest(request['key'])}.{digest(request['marker'])}"
        # Filled under a hidden name first: a folder that is seen has its request.
        hidden = self._folder / f".new-{handle}"
        shutil.rmtree(hidden, ignore_errors=True)
        hidden.mkdir(mode=0o700)
        durable.write(hidden / "request.json", json.dumps(request).encode())
        hidden.rename(self._folder / handle)
        self._launch(self._folder / handle)
        return handle

    def find(self, *, key: str = "", marker: str = "") -> list[str]:
        """Return the handles of renders with this key, or this marker."""
        wanted = f"{digest(key) if key else '*'}.{digest(marker) if marker else '*'}"
        names = (folder.name for folder in self._folder.glob(wanted))
        return sorted(name for name in names if re.fullmatch(HANDLE, name))

    def resume(self) -> list[str]:
        """Start renders that were recorded and never begun; return their handles.

        For a server that died between the record and the start. A render that began and died
        is left as it is: whether to begin anew is for those who asked for it.
        """
        never_begun = [
            handle for handle in self.find() if not (self._folder / handle / "pid.json").exists()
        ]
        for handle in never_begun:
            self._launch(self._folder / handle)
        return never_begun

    def state(self, handle: str) -> dict[str, Any] | None:
        """Return what is known of a render, or None if its handle is not known."""
        self._reap()
        folder = self._folder / handle
        if not folder.is_dir():
            return None
        alive = _is_alive(folder)  # before the result is read: it may end between the two
        ended = _json(folder / "result.json")
        progress = _text(folder / "progress.txt")
        facts = ended or {"state": "running" if alive else "died"}
        return {"handle": handle, "progress": progress, **facts}

    def end(self, handle: str) -> None:
        """Kill a render that runs; what it wrote stays."""
        about = _json(self._folder / handle / "pid.json")
        if about and _is_same(about):
            os.kill(about["pid"], signal.SIGKILL)

    def _launch(self, folder: Path) -> None:
        with (folder / "log.txt").open("ab") as log:
            child = subprocess.Popen(  # noqa: S603 - our own program, no shell, no outside words
                [sys.executable, "-m", "sandbox.rendering", str(folder)],
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._children.append(child)

    def _reap(self) -> None:
        self._children = [child for child in self._children if child.poll() is None]

    async def _asked(self, request: Request) -> Answer:
        wanted = _checked(request.fields)
        if isinstance(wanted, str):
            return Answer(422, {"error": "invalid_request", "error_description": wanted})
        return Answer(202, {"handle": self.start(wanted), "poll_after_s": POLL_AFTER_S})

    async def _listed(self, request: Request) -> Answer:
        named = {name: request.query.get(name, "") for name in ("key", "marker")}
        return Answer(200, [self.state(handle) for handle in self.find(**named)])

    async def _shown(self, request: Request) -> Answer:
        state = self.state(request.found["handle"])
        return Answer(200, state) if state else Answer(404, {"error": "unknown_handle"})

    async def _ended(self, request: Request) -> Answer:
        if not self.state(request.found["handle"]):
            return Answer(404, {"error": "unknown_handle"})
        self.end(request.found["handle"])
        return Answer(202, {"handle": request.found["handle"]})


def _checked(fields: Any) -> dict[str, Any] | str:
    """Return a whole request, or the sentence that says what is wrong with it."""
    forget = fields.get("forget_after_s")
    request = {
        "key": fields.get("key") or fields.get("marker"),
        "marker": fields.get("marker"),
        "frames": fields.get("frames", 10),
        "seconds": fields.get("seconds", 5),
        "fails": fields.get("fails", False) is True,
        "forget_after_s": forget,
    }
    if not all(isinstance(request[name], str) and request[name] for name in ("key", "marker")):
        return "A render needs a marker, by which it is found again. Give it one."
    if not _within(request["frames"], 1, FRAMES_MAX) or not isinstance(request["frames"], int):
        return f"frames is a whole number from 1 to {FRAMES_MAX}."
    if not _within(request["seconds"], 0, SECONDS_MAX):
        return f"seconds is a number from 0 to {SECONDS_MAX}."
    if forget is not None and not _within(forget, 0, SECONDS_MAX):
        return f"forget_after_s is a number from 0 to {SECONDS_MAX}, or absent."
    return request


def _within(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _is_alive(folder: Path) -> bool:
    about = _json(folder / "pid.json")
    if about is None:
        return time.time() - folder.stat().st_mtime < STARTING_S
    return _is_same(about)


def _is_same(about: dict[str, Any]) -> bool:
    return about["started"] is not None and rendering.started_at(about["pid"]) == about["started"]


def _json(file: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
        return found
    except FileNotFoundError:
        return None


def _text(file: Path) -> str:
    try:
        return file.read_bytes()[-PROGRESS_BYTES_MAX:].decode()
    except FileNotFoundError:
        return ""
