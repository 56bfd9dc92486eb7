"""The session file of Codex CLI, a rollout: each line a type and a payload.

Lines of the type `response_item` carry an item of the Responses API; what else there is (session
and turn data, events, compactions, snapshots) is for the client. Older files hold the items bare,
behind a first line about the session. Source: public descriptions of the format and the client's
open source.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ledger.transcripts.neutral import Entry, Opaque, OpaqueKind, Role, Unreadable
from ledger.transcripts.shapes.items import CALLS, OUTPUTS
from ledger.transcripts.shapes.places import Place, listed
from ledger.transcripts.shapes.responses import Responses

FORM = "codex"
ITEMS = frozenset({"message", "reasoning", "web_search_call", *CALLS, *OUTPUTS})


@dataclass(frozen=True, slots=True)
class Codex:
    """Reads the lines in the order of the file."""

    name: str = "codex"
    form: str = FORM
    itemised: bool = True
    names_results: bool = False

    def read(self, transcript: Any) -> list[Entry]:
        """One entry for each line."""
        return [_entry(at, line) for at, line in enumerate(listed(transcript, "lines", "entries"))]

    def write(self, entries: Sequence[Entry], around: Mapping[str, Any] | None = None) -> Any:
        """Never: no provider takes it. Raises TypeError."""
        raise TypeError("This format is read, never sent. Choose a provider's format to write.")


def _entry(at: int, line: Place) -> Entry:
    item = _item(line)
    if item is None:
        part = Opaque(OpaqueKind.OTHER, FORM, line.value)
        return Entry(Role.SYSTEM, (part,), at=at, screen_only=True)
    try:
        [entry] = Responses().read([item.mapping()])
    except Unreadable as error:
        # The item's reader saw it alone: its place is within this line.
        raise Unreadable(item.pointer + error.pointer.removeprefix("/0"), error.detail) from None
    return replace(entry, at=at, raw=None)


def _item(line: Place) -> Place | None:
    """The item of a line; None where it is for the client."""
    if line.member("payload").value is not None:
        payload = line.member("payload")
        sent = line.member("type").value == "response_item"
        return payload if sent and payload.member("type").value in ITEMS else None
    return line if line.member("type").value in ITEMS else None
