"""A model's reply and its calls, recorded in one transaction before any may be scheduled (R89).

Turn, model step and position tie a call to its reply. A call that cannot run is kept with the
reply and the fixed text that answers it, never executed, and the others go on: one whose
arguments were cut off (R84), one of an unknown tool, one that does not fit its tool's schema, and
every new call of a reply that broke off, since its last one may be half-written.

What the reply as a whole may not do, a stale epoch or a full queue among it, refuses all of it,
and nothing is stored. Locks: the session, then those of `ledger/submits.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from django.db.models import Max

from ledger import bindings, messages, strictjson, submits
from ledger.errors import (
    BindingDrift,
    Invalid,
    KeyReused,
    LedgerError,
    StepTaken,
    ToolUnknown,
    TurnClosed,
)
from ledger.messages import ENTRIES_MAX, Place
from ledger.models import Message, Session, ToolCall, Turn
from ledger.models.calls import ToolCallQuerySet
from ledger.notices import Told, quoted, render
from ledger.submits import Recorded, Submit
from ledger.transactions import repeatable
from ledger.transcripts import stored
from ledger.transcripts.neutral import Call, Entry, Part, Role

CALLS_MAX = 100
ID_CHARACTERS_MAX = 255
BROKE_OFF = frozenset({"error", "aborted", "cancelled", "interrupted", "failed"})
"""Stop reasons of a reply that broke off (transcripts: failed reply)."""

CUT = frozenset(
    {"length", "max_tokens", "max_output_tokens", "incomplete", "model_length",
     "model_context_window_exceeded"}
)  # fmt: skip
"""Stop reasons of a reply that ended at a limit: a call at its very end may be half-written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A reply as its agent sent it.

    `names` are the ledger's tools by the name that the model used, where the two differ; a
    `model_step` of None is the next one. `stop_reason` counts before the entries' own.
    """

    format: str
    entries: Sequence[Entry]
    model_step: int | None = None
    key: str = ""
    stop_reason: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    epoch: int | None = None
    working_directory: str | None = None
    host: str | None = None
    api_key_id: str = ""
    prompt_tokens: int | None = None
    traceparent: str | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(part for entry in self.entries for part in entry.parts)

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(part for part in self.parts if isinstance(part, Call))

    @property
    def stopped_by(self) -> str:
        """Why the model stopped, as it was said."""
        reasons = [each.stop_reason for each in self.entries if each.stop_reason]
        return self.stop_reason or (reasons[-1] if reasons else "")

    @property
    def broke_off(self) -> bool:
        return self.stopped_by.lower() in BROKE_OFF or any(each.failed for each in self.entries)

    def is_cut(self, call: Call) -> bool:
        """Whether a call arrived half-written, or may have."""
        ends_it = self.stopped_by.lower() in CUT and call is self.parts[-1]
        return call.arguments is None or ends_it

    def tool_of(self, call: Call) -> str:
        """The ledger's name of the tool that a call asks for."""
        name = call.name.strip()
        return self.names.get(name, name)


@dataclass(frozen=True, slots=True)
class Refused:
    """A call of a reply that does not run, and the text that answers it."""

    position: int
    call: Call
    told: Told

    def to_json(self) -> dict[str, Any]:
        """As the message's row keeps it."""
        return {
            "position": self.position,
            "id": self.call.id,
            "name": self.call.name,
            "arguments": None if self.call.arguments is None else dict(self.call.arguments),
            "unparsed": self.call.unparsed,
            **self.told.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Replied:
    """The message of a reply and its calls by position; `new` is False for an equal one."""

    message: Message
    new: bool
    calls: Mapping[int, Recorded]

    @property
    def refused(self) -> list[dict[str, Any]]:
        """The calls that do not run, each with its position and the text that answers it."""
        return list(self.message.refused)


def reply(place: Place, heard: Heard) -> Replied:
    """Record a reply with its calls, or find the equal one of this step.

    Raises NotFound, TurnClosed, StepTaken where the step has another reply, KeyReused, Invalid,
    and whatever refuses a call of this session as a whole (`ledger/submits.py`).
    """
    try:
        return _reply(place, heard)
    except BindingDrift as refusal:
        bindings.note_refused(refusal)
        raise


@repeatable
def _reply(place: Place, heard: Heard) -> Replied:
    _check(heard)
    if heard.epoch is not None:
        place = replace(place, epoch=heard.epoch)
    session, turn = messages.held(place)
    sha256 = _digest(heard)
    known = _known(turn, heard, sha256)
    if known is not None:
        return Replied(known, False, _recorded(known))
    if not _takes(turn, heard):
        raise TurnClosed()
    step = _next_step(turn, heard) if heard.model_step is None else heard.model_step
    calls, refused = _record(place, session, turn, heard, step)
    message = messages.append(
        turn,
        role=Role.ASSISTANT,
        format=heard.format,
        parts=stored.written(heard.parts, _names(heard)),
        sha256=sha256,
        key=heard.key,
        model_step=step,
        refused=[each.to_json() for each in refused],
        model=turn.model,
        stop_reason=heard.stopped_by[:60],
        failed=heard.broke_off,
    )
    messages.raise_version(session)
    return Replied(message, True, calls)


def _check(heard: Heard) -> None:
    if not 0 < len(heard.entries) <= ENTRIES_MAX or not heard.parts:
        raise Invalid(detail="A reply holds a text, a call or something of its provider's.")
    if any(each.role is not Role.ASSISTANT or each.results for each in heard.entries):
        raise Invalid(
            detail="A reply is what the model said, without results: what people said goes to "
            "the messages of the turn, and results come from the calls."
        )
    if len(heard.calls) > CALLS_MAX:
        raise Invalid(detail=f"A reply has at most {CALLS_MAX} calls.")
    if any(len(each.id or "") > ID_CHARACTERS_MAX for each in heard.calls):
        raise Invalid(detail=f"The id of a call has at most {ID_CHARACTERS_MAX} characters.")


def _takes(turn: Turn, heard: Heard) -> bool:
    """A reply that was broken off by the interruption is still kept: nothing of it begins."""
    return turn.takes_calls or (turn.closed_at is None and heard.broke_off)


def _digest(heard: Heard) -> str:
    whole = [stored.written(heard.parts), [_whole(each) for each in heard.calls], heard.broke_off]
    return messages.digest_of(Role.ASSISTANT, heard.format, whole)


def _whole(call: Call) -> list[Any]:
    arguments = call.unparsed if call.arguments is None else dict(call.arguments)
    return [call.id, call.name, arguments]


def _names(heard: Heard) -> dict[int, str]:
    return {n: heard.tool_of(each) for n, each in enumerate(heard.calls)}


# The same reply again


def _known(turn: Turn, heard: Heard, sha256: str) -> Message | None:
    """The equal reply that stands where this one would. Raises StepTaken, KeyReused."""
    if heard.key:
        named = turn.messages.filter(key=heard.key).first()
        if named is not None and named.sha256 != sha256:
            raise KeyReused(earlier="another message of this turn")
        if named is not None:
            return named
    replies = turn.messages.filter(role=Role.ASSISTANT)
    if heard.model_step is None:
        last = replies.order_by("position").last()
        # Sent again after an answer that was lost: no model says a whole reply twice in a row.
        return last if last is not None and not heard.key and last.sha256 == sha256 else None
    there = replies.filter(model_step=heard.model_step).first()
    if there is not None and there.sha256 != sha256:
        raise StepTaken(step=heard.model_step, what="reply")
    return there


def _calls_of(turn: Turn) -> ToolCallQuerySet:
    """Served by `call_of_session`; no index is on the turn alone."""
    return ToolCall.objects.filter(session=turn.session_id, turn=turn)


def _next_step(turn: Turn, heard: Heard) -> int:
    """The step behind the last reply, and behind calls that were submitted without one.

    Unless these are the reply's own, submitted while it was coming.
    """
    said = turn.messages.aggregate(last=Max("model_step"))["last"]
    asked = _calls_of(turn).aggregate(last=Max("model_step"))["last"]
    following = 0 if said is None else int(said) + 1
    if asked is None or asked < following:
        return following
    try:
        return asked if _present(turn, asked, heard) else following
    except StepTaken:
        if _shares_a_call(turn, asked, heard):
            raise  # told otherwise than it was submitted: a next step would run it again
        return int(asked) + 1


def _shares_a_call(turn: Turn, step: int, heard: Heard) -> bool:
    named = [each.id for each in heard.calls if each.id]
    return _calls_of(turn).filter(model_step=step, tool_call_id__in=named).exists()


def _recorded(message: Message) -> dict[int, Recorded]:
    """The calls that a recorded reply holds, as they stand now."""
    found = _calls_of(message.turn).filter(model_step=message.model_step or 0)
    held_back = {each["position"] for each in message.refused}
    return {
        each.position: Recorded(each.id, True, each.state)
        for each in found.order_by("position", "recorded_at")
        if each.position not in held_back
    }


# Its calls


def _record(
    place: Place, session: Session, turn: Turn, heard: Heard, step: int
) -> tuple[dict[int, Recorded], list[Refused]]:
    """Record the calls of a reply; those that the ledger knows at their place are taken."""
    present = _present(turn, step, heard)
    refused: list[Refused] = []
    wanted: list[tuple[int, Submit]] = []
    for n, call in enumerate(heard.calls):
        why = _why_not(heard, call)
        if n in present:
            continue
        if why is not None:
            refused.append(Refused(n, call, why))
        else:
            wanted.append((n, _submit(place, heard, call, step, n)))
    answers = submits.record_within([each for _, each in wanted]) if wanted else []
    calls = dict(present)
    for (n, _), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, LedgerError):
            refused.append(Refused(n, heard.calls[n], _told(answer)))
        else:
            calls[n] = answer
    return calls, sorted(refused, key=lambda each: each.position)


def _present(turn: Turn, step: int, heard: Heard) -> dict[int, Recorded]:
    """The calls that were submitted one by one while the reply was still coming."""
    found = _calls_of(turn).filter(model_step=step).order_by("-recorded_at")
    at: dict[int, ToolCall] = {each.position: each for each in found}
    if any(n >= len(heard.calls) or not _is(at[n], heard, heard.calls[n]) for n in at):
        raise StepTaken(step=step, what="call")
    return {n: Recorded(each.id, True, each.state) for n, each in at.items()}


def _is(row: ToolCall, heard: Heard, call: Call) -> bool:
    """Whether a recorded call is this one. What arrived cut off is known by its id alone."""
    same = row.tool_call_id == (call.id or "") and row.tool == heard.tool_of(call)
    if heard.is_cut(call):
        return same
    return same and row.arguments == strictjson.canonical(dict(call.arguments or {})).decode()


def _why_not(heard: Heard, call: Call) -> Told | None:
    """The text for a call that is not even submitted; None for one that is."""
    if heard.is_cut(call):
        return render("cut_off")
    if heard.broke_off:
        return render("reply_broke_off")
    return None if heard.tool_of(call) else render("tool_unknown")


def _submit(place: Place, heard: Heard, call: Call, step: int, position: int) -> Submit:
    return Submit(
        workspace_id=place.workspace_id,
        agent_id=place.agent_id,
        session_id=place.session_id,
        turn_id=place.turn_id,
        tool=heard.tool_of(call),
        arguments=orjson.loads(orjson.dumps(dict(call.arguments or {}))),
        tool_call_id=call.id or "",
        model_step=step,
        position=position,
        epoch=place.epoch,
        working_directory=heard.working_directory,
        host=heard.host,
        api_key_id=heard.api_key_id,
        prompt_tokens=heard.prompt_tokens,
        traceparent=heard.traceparent,
    )


def _told(refusal: LedgerError) -> Told:
    """The text for a call that could not be recorded. Raises what refuses the whole reply."""
    if isinstance(refusal, ToolUnknown):
        return render("tool_unknown")
    if type(refusal) is Invalid:
        return render("arguments_unfit", why=quoted(str(refusal.facts["detail"])))
    raise refusal
