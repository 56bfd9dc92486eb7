"""The session file of Claude Code: one line for each block of a reply, and much for the screen.

Lines of the types `user` and `assistant` carry a message of the Messages API under `message`. A
reply is written block by block, so lines with one message id are one reply, wherever its results
already stand between them. Side chains, summaries, snapshots, progress and the client's own error
messages were never sent with this conversation. A line that was copied with its `uuid` counts once.
Source: public descriptions of the format; the vendor publishes none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ledger.transcripts.neutral import Entry, Opaque, OpaqueKind, Role, Unreadable
from ledger.transcripts.shapes.anthropic import Anthropic
from ledger.transcripts.shapes.places import Place, listed

SAID = ("user", "assistant")
FORM = "claude-code"


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """Reads the lines in the order of the file; a rewound branch is read like any other."""

    name: str = "claude-code"
    form: str = FORM
    itemised: bool = False
    names_results: bool = False

    def read(self, transcript: Any) -> list[Entry]:
        """One entry for each reply and each other line."""
        lines = listed(transcript, "lines", "entries")
        return _replies((_message_id(line), entry) for line, entry in _entries(lines))

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """Never: no provider takes it. Raises TypeError."""
        raise TypeError("This format is read, never sent. Choose a provider's format to write.")


def _entries(lines: Sequence[Place]) -> Iterable[tuple[Place, Entry]]:
    seen: set[str] = set()
    for at, line in enumerate(lines):
        uuid = line.member("uuid").maybe_text() or ""
        yield line, _screen(at, line) if uuid in seen or not _is_sent(line) else _said(at, line)
        seen |= {uuid} - {""}


def _is_sent(line: Place) -> bool:
    """Whether the model was sent this line, or sent it."""
    kind = line.member("type").maybe_text()
    aside = any(line.member(name).value is True for name in ("isSidechain", "isApiErrorMessage"))
    return kind in SAID and not aside


def _said(at: int, line: Place) -> Entry:
    message = line.member("message")
    try:
        [entry] = Anthropic().read([message.mapping()])
    except Unreadable as error:
        # The message's reader saw it alone: its place is within this line.
        raise Unreadable(message.pointer + error.pointer.removeprefix("/0"), error.detail) from None
    # Ids, usage and the model's name are of the answer that came, not of what is sent.
    return replace(entry, at=at, raw=None, opaque={})


def _screen(at: int, line: Place) -> Entry:
    part = Opaque(OpaqueKind.OTHER, FORM, line.value)
    return Entry(Role.SYSTEM, (part,), at=at, screen_only=True)


def _message_id(line: Place) -> str:
    message = line.member("message").value
    given = message.get("id") if isinstance(message, Mapping) else None
    return given if isinstance(given, str) else ""


def _replies(read: Iterable[tuple[str, Entry]]) -> list[Entry]:
    """The blocks of one reply as one entry, at the place of the first."""
    entries: list[Entry] = []
    begun: dict[str, int] = {}
    for message_id, entry in read:
        of_reply = entry.role is Role.ASSISTANT and not entry.screen_only and message_id != ""
        if of_reply and message_id in begun:
            first = entries[begun[message_id]]
            entries[begun[message_id]] = replace(
                first,
                parts=first.parts + entry.parts,
                stop_reason=entry.stop_reason or first.stop_reason,
                failed=first.failed or entry.failed,
            )
            continue
        if of_reply:
            begun[message_id] = len(entries)
        entries.append(entry)
    return entries
