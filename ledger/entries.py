"""A session as neutral entries: each reply with its calls, each call answered where it stands.

The ledger made the pairs, so nothing is matched here. A call that was submitted without its reply
stands in a reply of its own. Corrections stand in the turn that they were offered to, as text of
the user's side, never between a reply and its results. Equal rows give equal entries.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from ledger import carry_over, ids
from ledger.calls import Fetchable
from ledger.conversations import CORRECTION, Conversation, as_shown
from ledger.models import Delivery, Message, ToolCall
from ledger.outcomes import Shown
from ledger.transcripts import stored
from ledger.transcripts.neutral import Call, Entry, Opaque, Part, Result, Role, Text
from ledger.transcripts.profiles import formats

NAME_CHARACTERS_MAX = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Answered:
    """What one call is shown as: a line of the manifest, in order."""

    fetched: Fetchable
    provider_id: str
    shown: Shown | None  # None: left open


@dataclass(frozen=True, slots=True)
class Told:
    """A session as entries, and what each of its calls is shown as."""

    entries: list[Entry]
    answered: list[Answered]


def entries(conversation: Conversation, *, form: str = "", open_stay_open: bool = False) -> Told:
    """The whole conversation.

    `form` is the one that it will be written in: members of another form's messages are left out.
    `open_stay_open`: calls of the last step that have no outcome have no result either.
    """
    told = Told([], [])
    teller = _Teller(conversation, told, form)
    teller.begin()
    teller.without_turn()
    for turn_id in conversation.turns:
        teller.turn(turn_id)
    teller.taken_over()
    return _with_open_calls(told) if open_stay_open else told


def _with_open_calls(told: Told) -> Told:
    """The same, the last step's calls without outcome left open."""
    last = told.entries[-1] if told.entries else None
    if last is None or last.role is not Role.TOOL:
        return told
    unsettled = {
        ids.shown("call", each.fetched.call.id)
        for each in told.answered
        if not each.fetched.call.is_settled
    }
    open_ids = unsettled & {each.ledger_id for each in last.results}
    left = tuple(each for each in last.results if each.ledger_id not in open_ids)
    answered = [
        replace(each, shown=None) if ids.shown("call", each.fetched.call.id) in open_ids else each
        for each in told.answered
    ]
    return Told([*told.entries[:-1], *([replace(last, parts=left)] if left else [])], answered)


def provider_id_of(call: ToolCall) -> str:
    """The id that the model gave the call, or ours where it gave none."""
    return call.tool_call_id or ids.shown("call", call.id)


def name_fit(name: str) -> str:
    """A tool's name as every provider takes it; one that fits already stays (transcripts, a)."""
    return _NOT_IN_NAMES.sub("_", name.strip())[:NAME_CHARACTERS_MAX] or "unnamed"


def call_part(call: ToolCall, beside: stored.Written | None = None) -> Call:
    """A call as the model made it; `beside` is what its reply keeps with its place."""
    beside = beside or {}
    return Call(
        id=provider_id_of(call),
        name=name_fit(beside.get("name", call.tool)),
        arguments=json.loads(call.arguments_received or call.arguments),
        kind=beside.get("kind", "function"),
        ledger_id=ids.shown("call", call.id),
        opaque=beside.get("opaque", {}),
    )


def result_part(call: ToolCall, shown: Shown, beside: Call | None = None) -> Result:
    """What stands behind a call."""
    return Result(
        answers=provider_id_of(call),
        parts=shown.parts or (Text(shown.text),),
        name=beside.name if beside else name_fit(call.tool),
        is_error=shown.is_error,
        kind=beside.kind if beside else "function",
        ledger_id=ids.shown("call", call.id),
        delivery=str(shown.kind),
    )


Later = list[tuple[datetime, tuple[Entry, ...]]]
"""What is told at an instant within a turn."""


def _as_offered(delivery: Delivery, fetched: Fetchable) -> tuple[Entry, ...]:
    if delivery.template == CORRECTION:
        return (Entry(Role.USER, (Text(delivery.text),)),)
    return pair(fetched, as_shown(delivery, fetched))


def pair(fetched: Fetchable, shown: Shown) -> tuple[Entry, Entry]:
    """A call in a reply of its own, and what stands behind it."""
    part = call_part(fetched.call)
    result = result_part(fetched.call, shown, part)
    return Entry(Role.ASSISTANT, (part,)), Entry(Role.TOOL, (result,))


class _Teller:
    """Appends entries in order; one use."""

    def __init__(self, conversation: Conversation, told: Told, form: str) -> None:
        self._of = conversation
        self._told = told
        self._form = form
        # By turn, looked through once: a session may have as many turns as calls.
        self._steps: dict[UUID | None, list[tuple[int, Sequence[Fetchable]]]] = defaultdict(list)
        for (turn_id, step), calls in conversation.of_step.items():
            self._steps[turn_id].append((step, calls))
        self._messages: dict[UUID, list[Message]] = defaultdict(list)
        for message in conversation.messages:
            self._messages[message.turn_id].append(message)
        self._offered: dict[UUID, list[tuple[Delivery, Fetchable]]] = defaultdict(list)
        for delivery, fetched in self._told_later():
            self._offered[delivery.turn_id].append((delivery, fetched))

    def begin(self) -> None:
        """The latest summary, headed by the calls that it does not settle (semantics, 16.3)."""
        compaction = self._of.compaction
        if compaction is None:
            return
        carried = carry_over.block(compaction.carry_over)
        if carried:
            self._say(Role.USER, carried)
        self._say(Role.ASSISTANT, compaction.summary)

    def without_turn(self) -> None:
        for _, calls in self._steps[None]:
            self._loose(calls)

    def turn(self, turn_id: UUID) -> None:
        """The messages of a turn, the replies that only their calls tell of, and corrections."""
        loose = [
            calls for step, calls in self._steps[turn_id] if (turn_id, step) not in self._of.replies
        ]
        later = self._later(turn_id)
        for message in self._messages[turn_id]:
            if self._of.covers(message):
                continue
            if message.model_step is not None:
                while loose and loose[0][0].call.model_step < message.model_step:
                    self._after(later, _began(loose[0]))
                    self._loose(loose.pop(0))
            self._after(later, message.at)
            self._message(message)
        for calls in loose:
            self._after(later, _began(calls))
            self._loose(calls)
        self._after(later, None)

    def taken_over(self) -> None:
        """The calls handed over to this session that no turn was shown yet."""
        self._loose([each for each in self._of.received if each.call.id not in self._of.seen])

    # What was said

    def _say(self, role: Role, text: str) -> None:
        self._told.entries.append(Entry(role, (Text(text),)))

    def _message(self, message: Message) -> None:
        if message.model_step is None:
            parts = self._read(message, _no_call)
            self._told.entries.append(Entry(Role(message.role), parts))
        else:
            self._reply(message)

    def _read(
        self, message: Message, call_of: Callable[[int, stored.Written], Part]
    ) -> tuple[Part, ...]:
        """The parts of a message; what only another form can hold stays behind."""
        parts = stored.read(message.parts_json, call_of)
        if _form_of(message.format) == self._form:
            return parts
        return tuple(_without_members(part) for part in parts)

    # Steps

    def _reply(self, message: Message) -> None:
        calls = list(self._of.of_step.get((message.turn_id, message.model_step or 0), ()))
        by_position = {each.call.position: each for each in reversed(calls)}
        refused = {each["position"]: each for each in message.refused}
        placed: list[Part | None] = []
        results: list[Result] = []

        def call_at(position: int, beside: stored.Written) -> Part:
            if position in refused:
                return _refused(message, refused[position], beside, results)
            return self._answer(by_position[position], results, beside)

        placed += self._read(message, call_at)
        named = {by_position[n].call.id for n in by_position if _is_placed(message, n)}
        # Submitted for this step, yet no part of the reply as it was recorded.
        placed += [self._answer(each, results) for each in calls if each.call.id not in named]
        self._step(tuple(part for part in placed if part is not None), results, message)

    def _loose(self, calls: Sequence[Fetchable]) -> None:
        left = [
            each
            for each in calls
            if each.call.session_id != self._of.session.id or not self._of.covers_call(each.call)
        ]
        results: list[Result] = []
        parts = tuple(self._answer(each, results) for each in left)
        if parts:
            self._step(parts, results)

    def _step(
        self, parts: tuple[Part, ...], results: Sequence[Result], reply: Message | None = None
    ) -> None:
        if parts:
            stop_reason = reply.stop_reason if reply else ""
            self._told.entries.append(Entry(Role.ASSISTANT, parts, stop_reason=stop_reason))
        if results:
            self._told.entries.append(Entry(Role.TOOL, tuple(results)))

    def _answer(
        self, fetched: Fetchable, results: list[Result], beside: stored.Written | None = None
    ) -> Call:
        part = call_part(fetched.call, beside)
        shown = self._of.in_place(fetched)
        results.append(result_part(fetched.call, shown, part))
        self._told.answered.append(Answered(fetched, part.id or "", shown))
        return part

    # Corrections

    def _later(self, turn_id: UUID) -> Later:
        """What this turn was shown of earlier calls, by the instant of its offer."""
        found: dict[tuple[UUID, str], tuple[datetime, tuple[Entry, ...]]] = {}
        for each, fetched in self._offered[turn_id]:
            said = _as_offered(each, fetched)
            found.setdefault((each.call_id, each.sha256), (each.offered_at, said))
        return [found[key] for key in sorted(found, key=lambda key: (found[key][0], key))]

    def _told_later(self) -> Iterator[tuple[Delivery, Fetchable]]:
        """Corrections, which are text, and pairs whose own place a summary stands for."""
        taken_over = {each.call.id for each in self._of.received}
        for fetched in [*self._of.calls, *self._of.received]:
            for each in self._of.seen.get(fetched.call.id, ()):
                # A call that was taken over has no place of its own here.
                placeless = fetched.call.id in taken_over or self._of.covers_call(fetched.call)
                if placeless or each.template == CORRECTION:
                    yield each, fetched

    def _after(self, later: Later, at: datetime | None) -> None:
        """Tell what was offered before this instant; all that is left without one."""
        while later and (at is None or later[0][0] <= at):
            self._told.entries.extend(later.pop(0)[1])


def _refused(
    message: Message, refused: Mapping[str, Any], beside: stored.Written, results: list[Result]
) -> Call:
    """A call that could not be recorded, never executed, with the text that answers it."""
    arguments = refused.get("arguments")
    if arguments is None:
        arguments = {"unparsed_arguments": refused.get("unparsed") or ""}
    part = Call(
        id=refused.get("id") or f"{ids.shown('message', message.id)}_{refused['position']}",
        name=name_fit(refused["name"]),
        arguments=arguments,
        kind=beside.get("kind", "function"),
        opaque=beside.get("opaque", {}),
    )
    results.append(
        Result(answers=part.id, parts=(Text(refused["text"]),), name=part.name, is_error=True,
               kind=part.kind, delivery="notice")
    )  # fmt: skip
    return part


def _form_of(format_: str) -> str:
    found = formats().get(format_)
    return found.form if found is not None else format_


def _without_members(part: Part) -> Part:
    return part if isinstance(part, Opaque) else replace(part, opaque={})


def line_of(line: Any) -> str:
    """A line of a carry-over block as text."""
    return line if isinstance(line, str) else str(line["said"])


def _no_call(position: int, beside: stored.Written) -> Part:
    raise ValueError(f"A message that is no reply has a call at {position}.")


def _is_placed(message: Message, position: int) -> bool:
    return any(part.get("call") == position for part in message.parts_json)


def _began(calls: Sequence[Fetchable]) -> datetime | None:
    return min((each.call.recorded_at for each in calls if each.call.recorded_at), default=None)
