"""Where the sandbox keeps what it is told: one folder below the installation's own.

files/      what `sandbox.lookup` reads
artifacts/  what `sandbox.write_artifact` writes
mailbox/    one file a message
payments/   one file a payment
renders/    one folder a render
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from sandbox import durable

SEEDS = {
    "opening-hours": {
        "monday-friday": "09:00-18:00",
        "saturday": "10:00-14:00",
        "sunday": "closed",
    },
    "address": {"street": "12 Quay Street", "city": "Galway", "country": "Ireland"},
    "returns": {"days": 30, "condition": "unused, with receipt"},
    "desks/exchange": {"open": True, "currencies": ["EUR", "GBP", "USD"]},
}


class NoSandbox(RuntimeError):
    """The sandbox cannot be used: it was not started, or another program holds its folder."""


@dataclass(frozen=True, slots=True)
class SandboxFolder:
    """The folders below `root`, which is the sandbox's own."""

    root: Path

    @classmethod
    def of_environment(cls) -> "SandboxFolder":
        """Return the folder below the installation's own."""
        return cls(data_folder() / "sandbox")

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def mailbox(self) -> Path:
        return self.root / "mailbox"

    @property
    def payments(self) -> Path:
        return self.root / "payments"

    @property
    def renders(self) -> Path:
        return self.root / "renders"

    def prepare(self) -> None:
        """Make all folders and put the seeded entries in place. Safe to repeat."""
        for folder in (self.files, self.artifacts, self.mailbox, self.payments, self.renders):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, entry in SEEDS.items():
            file = self.files / f"{name}.json"
            if not file.exists():
                file.parent.mkdir(mode=0o700, exist_ok=True)
                durable.write(file, json.dumps(entry, indent=2).encode())


def data_folder() -> Path:
    """Return the installation's folder: `CLEARHOUSE_DATA`, or `.clearhouse` where that is unset."""
    return Path(os.environ.get("CLEARHOUSE_DATA") or ".clearhouse").resolve()
