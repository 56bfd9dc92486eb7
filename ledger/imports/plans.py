"""What a transcript becomes: turns, messages and calls, each call with its recorded answer or none.

Pure. The transcript is repaired in the neutral form, so that every result stands behind its call;
what the repair left out is in its report and becomes no row. A turn begins with what a person says
behind a reply, and all turns are closed. Ids are made here, before the rows.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from ledger import ids, strictjson
from ledger.errors import LedgerError
from ledger.imports.receiving import Received
from ledger.strictjson import NotStrict
from ledger.strictjson.limits import TRANSCRIPT
from ledger.transcripts import stored
from ledger.transcripts.arguments import UNPARSED
from ledger.transcripts.neutral import Call, Entry, Result, Role, Text, Unreadable

TEXT = "text/plain; charset=utf-8"
PARTS = "application/vnd.clearhouse.parts+json"
"""The media type of a result that is more than one plain text: its neutral parts as JSON."""
ID_CHARACTERS, NAME_CHARACTERS = 255, 128


class TranscriptUnreadable(LedgerError):
    """The transcript is not of the format named; it is refused whole, never read half (T24)."""

    code = "transcript_unreadable"
    http = 422
    sentence = (
        "The transcript cannot be read as {format}, at {pointer}: {detail}. Nothing was recorded. "
        "Name the format that it has, or mend that entry."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result that a transcript holds for a call: its bytes, and the entry that brought it."""

    entry: int
    body: bytes
    media_type: str
    is_error: bool
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()

    @property
    def why_not_json(self) -> str:
        return strictjson.storable(self.body, self.media_type).why_not_json[:300]


@dataclass(slots=True, kw_only=True)
class PlannedCall:
    """A call to be kept. `entry` is its reply's place in the input; `answer` None: unanswered."""

    id: UUID
    entry: int
    position: int
    provider_id: str
    name: str
    arguments: dict[str, Any]
    cut_off: bool
    answer: Answer | None = None


@dataclass(slots=True, kw_only=True)
class PlannedMessage:
    """A message to be kept; a reply has a model step and its calls."""

    id: UUID
    role: str
    position: int
    model_step: int | None
    format: str
    parts: list[stored.Written]
    stop_reason: str
    failed: bool
    calls: list[PlannedCall]

    @property
    def sha256(self) -> str:
        whole = json.dumps([self.role, self.format, self.parts], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()


@dataclass(slots=True, kw_only=True)
class PlannedTurn:
    """A turn to be kept; `replies` counts its model steps."""

    id: UUID
    number: int
    messages: list[PlannedMessage] = field(default_factory=list)
    replies: int = 0


@dataclass
class Plan:
    """All that is to be written, in order."""

    turns: list[PlannedTurn] = field(default_factory=list)

    @cached_property
    def messages(self) -> list[tuple[PlannedTurn, PlannedMessage]]:
        return [(turn, message) for turn in self.turns for message in turn.messages]

    @cached_property
    def calls(self) -> list[PlannedCall]:
        return [call for _, message in self.messages for call in message.calls]

    @property
    def tool_names(self) -> set[str]:
        return {call.name for call in self.calls}

    @property
    def changes(self) -> int:
        """By how much the transcript's version rises: each turn opened and closed, each message."""
        return 2 * len(self.turns) + len(self.messages)

    def counts(self, registered: Collection[str]) -> dict[str, Any]:
        """What was made of the transcript, for the import's report."""
        unanswered = sum(call.answer is None for call in self.calls)
        return {
            "turns": len(self.turns),
            "messages": len(self.messages),
            "calls": len(self.calls),
            "results": len(self.calls) - unanswered,
            "interrupted": unanswered,
            "cut_off": sum(call.cut_off for call in self.calls),
            "tools_not_registered": sorted(self.tool_names - set(registered)),
        }
