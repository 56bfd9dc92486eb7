"""What the outside saw: mails, payments, artifacts, renders and runs, read from its own folders.

Nothing here asks the ledger. An effect carries its call's marker, or stands at its path.
"""

import json
import os
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.folder import SandboxFolder
from sandbox.marks import digest
from sandbox.rendering import started_at


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything the outside saw up to one moment. Counts are by marker, texts by path."""

    mails: Mapping[str, int]
    payments: Mapping[str, int]
    renders: Mapping[str, int]
    runs: Mapping[str, int]
    artifacts: Mapping[str, bytes]

    def effects(self, tool: str, call: str) -> int:
        """How often the effect of a call, by its 32 hex digits, is there."""
        marker = marker_of(call)
        match tool:
            case "sandbox.send_mail":
                return self.mails.get(digest(marker), 0)
            case "sandbox.pay":
                return self.payments.get(digest(marker), 0)
            case "sandbox.render":
                return self.renders.get(marker, 0)
        return 0


class World:
    """The sandbox's folders of one installation."""

    def __init__(self, data: Path) -> None:
        self.folder = SandboxFolder(data / "sandbox")

    def seen(self) -> Seen:
        """Look at everything once."""
        return Seen(
            mails=self._by_name(self.folder.mailbox),
            payments=self._by_name(self.folder.payments),
            renders=Counter(self._render_markers()),
            runs=self.runs(),
            artifacts=self._artifacts(),
        )

    def seen_of(self, tool: str, call: str) -> int:
        """How often the effect of one call is there, by its tool; 0 for a tool that makes none."""
        look = {
            "sandbox.send_mail": self.mails,
            "sandbox.pay": self.payments,
            "sandbox.render": self.renders,
        }.get(tool)
        return look(call) if look else 0

    def mails(self, call: str) -> int:
        """How many messages carry the marker of this call."""
        return self._by_name(self.folder.mailbox)[digest(marker_of(call))]

    def payments(self, call: str) -> int:
        """How many payments carry the marker of this call."""
        return self._by_name(self.folder.payments)[digest(marker_of(call))]

    def runs(self) -> Counter[str]:
        """How often `sandbox.tally` ran, by call."""
        try:
            lines = (self.folder.root / "tally.txt").read_text().splitlines()
        except FileNotFoundError:
            return Counter()
        return Counter(line.split()[0].replace("-", "") for line in lines)

    def artifact(self, path: str) -> bytes | None:
        """What stands at a path, or None."""
        file = self.folder.artifacts / path
        return file.read_bytes() if file.exists() else None

    def renders(self, call: str) -> int:
        """How many renders carry the marker of this call, those that were forgotten included."""
        return Counter(self._render_markers())[marker_of(call)]

    def progress(self, call: str) -> list[int]:
        """How many lines of progress each render of this call has written."""
        return [
            len((request.parent / "progress.txt").read_text().splitlines())
            for request in self._requests()
            if _marker(request) == marker_of(call) and (request.parent / "progress.txt").exists()
        ]

    def _by_name(self, folder: Path) -> Counter[str]:
        """Count files by the digest that stands second in their name: the marker's."""
        names = [name.split(".") for name in os.listdir(folder) if not name.startswith(".")]
        return Counter(parts[1] for parts in names if len(parts) == 4)

    def _requests(self) -> list[Path]:
        folder = self.folder.renders
        return [*folder.glob("*/request.json"), *folder.glob(".forgotten-*/request.json")]

    def _render_markers(self) -> list[str]:
        return [_marker(request) for request in self._requests()]

    def _artifacts(self) -> dict[str, bytes]:
        root = self.folder.artifacts
        return {
            str(file.relative_to(root)): file.read_bytes()
            for file in root.rglob("*")
            if file.is_file() and not file.name.startswith(".")
        }


def marker_of(call: str) -> str:
    """The mark of a call, by its id as the API shows it or by its 32 hex digits."""
    return f"clearhouse-{call.rpartition('_')[2]}"


def _marker(request: Path) -> str:
    found: dict[str, Any] = json.loads(request.read_bytes())
    return str(found["marker"])


def end_renders(folder: Path) -> None:
    """Kill the renders of a folder by the pids and instants of birth that they wrote down."""
    for file in folder.rglob("pid.json"):
        about = json.loads(file.read_bytes())
        if started_at(about["pid"]) == about["started"]:
            os.kill(about["pid"], signal.SIGKILL)
