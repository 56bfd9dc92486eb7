"""The sandbox's mailbox: one file a message, found again by marker or Message-ID.

A file is named `<nanoseconds>-<n>.<marker>.<message id>.eml`, the last two as digests. The
name is the index, so a message and its index entry appear in one rename: an answer from here
is authoritative, there is no moment at which a message is accepted and cannot be found.
"""

import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from pathlib import Path
from typing import Any

from sandbox import durable
from sandbox.marks import digest

MARKER_HEADER = "X-Clearhouse-Marker"
_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted message as the view shows it. `received_at` is in seconds since 1970, UTC."""

    file: str
    received_at: float
    size_bytes: int
    marker: str
    message_id: str
    sender: str
    to: str
    subject: str


class Mailbox:
    """The messages below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def accept(self, body: bytes) -> str:
        """Keep a message and return its file name once it is on disk."""
        message = message_from_bytes(body)
        marks = [digest(_header(message, name)) for name in (MARKER_HEADER, "Message-ID")]
        name = ".".join([f"{time.time_ns()}-{os.getpid()}-{next(_counter)}", *marks, "eml"])
        durable.write(self._folder / name, body)
        return name

    def find(self, *, marker: str = "", message_id: str = "") -> list[Entry]:
        """Return the messages with this marker or Message-ID, oldest first; all without either."""
        wanted = [(1, marker), (2, message_id)]
        names = (
            parts
            for parts in self._names()
            if all(not text or parts[place] == digest(text) for place, text in wanted)
        )
        return [self._entry(".".join(parts)) for parts in sorted(names, key=_age)]

    def _names(self) -> Iterator[list[str]]:
        for name in os.listdir(self._folder):
            parts = name.split(".")
            if len(parts) == 4 and not name.startswith("."):
                yield parts

    def _entry(self, name: str) -> Entry:
        body = (self._folder / name).read_bytes()
        message = message_from_bytes(body)
        return Entry(
            file=name,
            received_at=_age(name.split("."))[0] / 1e9,
            size_bytes=len(body),
            marker=_header(message, MARKER_HEADER),
            message_id=_header(message, "Message-ID"),
            sender=_header(message, "From"),
            to=_header(message, "To"),
            subject=_header(message, "Subject"),
        )


def shown(entries: list[Entry]) -> list[dict[str, Any]]:
    """Return entries as plain JSON."""
    return [asdict(entry) for entry in entries]


def _header(message: Message, name: str) -> str:
    value = message.get(name, "")
    try:
        return str(make_header(decode_header(value))).strip()
    except (ValueError, LookupError):  # a wrong encoding is shown as it came
        return str(value).strip()


def _age(parts: list[str]) -> tuple[int, int]:
    received_ns, _, number = parts[0].split("-")
    return int(received_ns), int(number)
