"""What a transcript becomes: turns, messages and calls, each call with its recorded answer or none.

Pure. It is made of the transcript as the steps of a repair pair and settle it, before anything is
laid out for one provider; what they leave out is in the report and becomes no row. A turn begins
with what a person says behind a reply, and all turns are closed. Ids are made here.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from ledger import ids, strictjson
from ledger.imports.receiving import Received
from ledger.strictjson import NotStrict
from ledger.strictjson.limits import TRANSCRIPT
from ledger.transcripts import refusals, stored
from ledger.transcripts.arguments import UNPARSED
from ledger.transcripts.blocks import Block
from ledger.transcripts.neutral import Call, Result, Role, Text, Unreadable
from ledger.transcripts.pairing import Flow, Slot, Step
from ledger.transcripts.told import is_notice

TEXT = "text/plain; charset=utf-8"
ID_CHARACTERS, NAME_CHARACTERS = 255, 128


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


class _Planner:
    """Walks a settled flow once, in order, and puts each item into its turn."""

    def __init__(self, format: str) -> None:
        self.plan = Plan()
        self.format = format

    def take(self, item: Step | Block) -> None:
        if isinstance(item, Step):
            self._reply(item.reply, [slot for slot in item.slots if not slot.dropped])
        elif item.role is Role.ASSISTANT:
            self._reply(item, [])
        elif not item.screen_only:
            self._said(item)

    def _turn(self, *, new: bool) -> PlannedTurn:
        turns = self.plan.turns
        if not turns or (new and turns[-1].replies):
            turns.append(PlannedTurn(id=ids.new(), number=len(turns) + 1))
        return turns[-1]

    def _said(self, block: Block) -> None:
        parts = [piece.part for piece in block.pieces]
        if parts:
            turn = self._turn(new=block.role is Role.USER)
            self._append(turn, block, stored.written(parts))

    def _reply(self, block: Block, slots: Sequence[Slot]) -> None:
        """The reply with the calls that are kept; one that becomes empty goes with them (T10)."""
        kept = {id(slot.piece) for slot in slots}
        parts = [
            piece.part
            for piece in block.pieces
            if not isinstance(piece.part, Call) or id(piece) in kept
        ]
        if block.screen_only or not parts:
            return
        turn = self._turn(new=False)
        calls = [_planned_call(slot, position) for position, slot in enumerate(slots)]
        names = {position: call.name for position, call in enumerate(calls)}
        message = self._append(turn, block, stored.written(parts, names))
        message.model_step, message.calls = turn.replies, calls
        turn.replies += 1

    def _append(
        self, turn: PlannedTurn, block: Block, parts: list[stored.Written]
    ) -> PlannedMessage:
        message = PlannedMessage(
            id=ids.new(), role=str(block.role), position=len(turn.messages), model_step=None,
            format=self.format, parts=parts, stop_reason=block.stop_reason, failed=block.failed,
            calls=[],
        )  # fmt: skip
        turn.messages.append(message)
        return message


def planned(flow: Flow, format: str) -> Plan:
    """The plan of a conversation that is paired and settled."""
    planner = _Planner(format)
    for item in flow.items:
        planner.take(item)
    return planner.plan


def _planned_call(slot: Slot, position: int) -> PlannedCall:
    call = _call(slot.call, slot.piece.at, position)
    answer = slot.answer
    if answer is not None and isinstance(answer.part, Result) and not is_notice(answer.part):
        call.answer = _answer(answer.part, answer.at)
    return call


def _call(call: Call, entry: int, position: int) -> PlannedCall:
    arguments, cut_off = _arguments(call)
    return PlannedCall(
        id=ids.new(),
        entry=entry,
        position=position,
        provider_id=_short(call.id or "", ID_CHARACTERS),
        name=_short(call.name, NAME_CHARACTERS),
        arguments=arguments,
        cut_off=cut_off,
    )


def _short(text: str, characters: int) -> str:
    """The text, or where no column could hold it its beginning and a digest of the whole."""
    if len(text) <= characters:
        return text
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: characters - 17]}~{mark}"


def _arguments(call: Call) -> tuple[dict[str, Any], bool]:
    """The arguments as an object, and whether they arrived cut off (T10).

    A text may hold what no strict reader takes, behind an escape: it is kept as that text.
    """
    given = call.arguments
    if given is not None and set(given) != {UNPARSED}:
        try:
            strictjson.check(dict(given), limits=TRANSCRIPT)
        except NotStrict:
            return {UNPARSED: call.unparsed or ""}, True
        return dict(given), False
    return dict(given or {UNPARSED: call.unparsed or ""}), True


def _answer(result: Result, entry: int) -> Answer:
    body, media_type = _body(result)
    return Answer(
        entry=entry, body=body, media_type=media_type, is_error=result.is_error, text=result.text
    )


def _body(result: Result) -> tuple[bytes, str]:
    """A result's own bytes: its one text, or its parts where it is more than that."""
    plain = all(isinstance(part, Text) and not part.opaque for part in result.parts)
    if plain and len(result.parts) <= 1:
        return result.text.encode(), TEXT
    parts = stored.written(result.parts)
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode(), stored.PARTS


@contextmanager
def readable(received: Received) -> Iterator[None]:
    """Refuse what the format's reader could not read, with its place (T24)."""
    try:
        yield
    except Unreadable as error:
        raise refusals.unreadable(error, received.format) from None
