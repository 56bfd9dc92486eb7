"""Recording calls: intent before action (R1, R7; semantics, section 10).

`record(submits)` is the one way in. It takes a list, in one transaction, and answers each
submit by itself: a call, new or replayed, or the refusal of that one. Nothing is published
before the commit; what a submit may say of timeouts, retries or recovery is nothing (R17).

Locks: sessions, turns (shared), keys of templates, then nothing, since new rows are locked by
being new. What the session's lock is for: `ledger/repeats.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import DatabaseError, IntegrityError, transaction

from ledger import (
    bindings,
    clock,
    dispatch,
    gates,
    held,
    ids,
    journal,
    known,
    new_calls,
    pressure,
    registered,
)
from ledger.bindings import Drift
from ledger.errors import KeyReused, LedgerError
from ledger.known import Known, Same, is_asked_again, key_again, known_as
from ledger.models import ToolCall
from ledger.new_calls import Digested, NewCall
from ledger.pipelines import pipelined
from ledger.places import Places
from ledger.registered import Registered
from ledger.repeats import Before
from ledger.vocabulary import CallState, GateReason
from ledger.wishes import Ahead, Judged, judged, wishes_of, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """One wish of a model to use a tool, as the API took it."""

    workspace_id: UUID
    agent_id: UUID
    tool: str
    arguments: dict[str, Any]
    session_id: UUID | None = None
    turn_id: UUID | None = None
    tool_call_id: str = ""
    model_step: int = 0
    position: int = 0
    idempotency_key: str | None = None
    epoch: int | None = None
    working_directory: str | None = None
    host: str | None = None
    model: str | None = None
    api_key_id: str = ""
    repeat_intended: bool = False
    prompt_tokens: int | None = None
    traceparent: str | None = None
    call_id: UUID = field(default_factory=ids.new)

    @property
    def name(self) -> tuple[Any, ...] | None:
        """What makes two submits the same intent: the key, or the place in the model's reply."""
        if self.idempotency_key is not None:
            return ("key", self.agent_id, self.idempotency_key)
        if self.session_id is not None and self.tool_call_id:
            return self.place
        return None

    @property
    def place(self) -> tuple[Any, ...]:
        """Where in the model's reply it stands."""
        place = (self.session_id, self.turn_id, self.model_step, self.position)
        return ("place", self.agent_id, *place, self.tool_call_id)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The call of a submit. `replayed` when an equal submit had recorded it before."""

    call_id: UUID
    replayed: bool
    state: CallState


def record(submits: Sequence[Submit]) -> list[Recorded | LedgerError]:
    """Record the calls, or find the ones that equal submits have recorded.

    Each answer is a Recorded or the refusal of that submit; a refused one leaves no row.
    """
    try:
        with transaction.atomic():
            return _record(submits, known.read(submits))
    except DatabaseError as error:
        if not _is_there_already(error):
            raise
    # An equal submit of another process won between our look and our insert, or this very one
    # was committed and its answer lost: look again, by the ids too.
    with transaction.atomic():
        return _record(submits, known.read_again(submits))


def record_within(submits: Sequence[Submit]) -> list[Recorded | LedgerError]:
    """As `record`, in the caller's transaction, which goes on and commits it with its own rows.

    The caller holds the lock of the session that all of them belong to, so that no equal submit
    can come between the look and the insert.
    """
    return _record(submits, known.read(submits), commit=False)


CALL_HAS_EVENTS = "CH002"
"""What the guard of events says when a call is recorded a second time."""


def _is_there_already(error: DatabaseError) -> bool:
    sqlstate = getattr(error.__cause__, "sqlstate", "")
    return isinstance(error, IntegrityError) or sqlstate == CALL_HAS_EVENTS


def _record(
    submits: Sequence[Submit], found: Known, *, commit: bool = True
) -> list[Recorded | LedgerError]:
    batch = _Batch(submits, found)
    answers: list[Recorded | LedgerError] = []
    for n, submit in enumerate(submits):
        try:
            answers.append(batch.answer(n, submit))
        except LedgerError as refusal:
            answers.append(refusal)
    if batch.drifts:
        bindings.note(batch.drifts)
    if batch.new:
        _write(batch.new, commit=commit)
    return _with_lost_answers(submits, answers)


def _with_lost_answers(
    submits: Sequence[Submit], answers: list[Recorded | LedgerError]
) -> list[Recorded | LedgerError]:
    """The answers; Recorded where this very submit is, whatever would be refused by now.

    Its commit may have been made and the answer lost, and a gate have closed in between.
    """
    refused = {
        submit.call_id: n
        for n, (submit, answer) in enumerate(zip(submits, answers, strict=True))
        if isinstance(answer, LedgerError)
    }
    if refused:
        found = ToolCall.objects.filter(id__in=refused)
        for call_id, state in found.values_list("id", "state"):
            answers[refused[call_id]] = Recorded(call_id, False, CallState(state))
    return answers


def _write(new: Sequence[NewCall], *, commit: bool) -> None:
    """Write the calls, their first events, and what is beside the held ones."""
    rows = [each.row for each in sorted(new, key=new_calls.order_of)]
    dispatch.ring_after_commit({row["queue"] for row in rows if "ring_at" in row}, rows[0]["id"])
    holding = [written(each.submit, each.tool, each.why) for each in new if each.why]
    taken_at = clock.now() if holding else None
    with pipelined(commit=commit):
        journal.record(rows, [move for each in new for move in each.moves])
        if taken_at is not None:
            held.write(holding, taken_at=taken_at)


class _Batch:
    """What a batch of submits is judged by, read behind its locks, and what is new in it."""

    def __init__(self, submits: Sequence[Submit], found: Known) -> None:
        self.new: list[NewCall] = []
        self._known = found
        self._tools = registered.named({(s.workspace_id, s.tool) for s in submits})
        self._places = Places.locked(submits)
        self._digests = [new_calls.digested(submit.arguments) for submit in submits]
        self._wishes = wishes_of(submits, self._tools, self._digests, found)
        self._before = Before.read(self._wishes)

    @property
    def drifts(self) -> Sequence[Drift]:
        """What was stated of a session and differs from its binding."""
        return self._places.drifts

    def answer(self, n: int, submit: Submit) -> Recorded:
        """The call of submit `n`, new or replayed. Raises LedgerError; no row is left then."""
        digest, same = self._digests[n], known_as(submit, self._known)
        replayed = self._replayed(submit, digest, same)
        if replayed is not None:
            return replayed
        new = self._new_call(submit, digest, same, Ahead(self._before, n, self._wishes.get(n)))
        new_calls.ring(new)
        self.new.append(new)
        self._remember(new)
        return Recorded(submit.call_id, False, new.state)

    def _replayed(self, submit: Submit, digest: Digested, same: Same | None) -> Recorded | None:
        """What an equal submit has recorded, if this one asks for nothing new."""
        own = self._known.get(("id", submit.call_id))
        if own is not None:
            return Recorded(submit.call_id, False, CallState(own[2]))
        if same is None:
            return None
        call_id, sha256, state, tool, tool_call_id = same
        if sha256 != digest.sha256 or tool != submit.tool:
            raise KeyReused(earlier=f"a call of {tool} with arguments of digest {sha256}")
        if not is_asked_again(submit, tool_call_id):
            return Recorded(call_id, True, state)
        again = self._known.get(submit.place)
        return None if again is None else Recorded(again[0], True, again[2])

    def _new_call(
        self, submit: Submit, digest: Digested, same: Same | None, ahead: Ahead
    ) -> NewCall:
        tool = self._tools.get((submit.workspace_id, submit.tool))
        if tool is None:
            raise registered.unknown(submit.workspace_id, submit.tool)
        epoch = self._places.epoch_of(submit, tool)
        registered.check_arguments(tool, submit.arguments)
        row = new_calls.row(submit, tool, digest, epoch)
        if same is not None:
            # One key names one call; what the model asks again under it has a name of its own.
            row["idempotency_key"] = key_again(submit)
        rejected = self._why_rejected(submit, tool)
        found = Judged() if rejected else judged(submit, tool, row, same, ahead)
        if not rejected and found.why is None:
            # What is answered from the ledger, or waits, takes no trial and presses on no queue.
            rejected = _refused_by_gates(submit, tool)
        new = NewCall(submit, tool, row, found.why, rejected)
        if found.wish is not None:
            # After the gates: no equal submit of the batch may wait for a call that is refused.
            self._before.recorded(submit.call_id, found.wish, new.state, found.twin_of)
        return new

    def _why_rejected(self, submit: Submit, tool: Registered) -> str:
        if gates.is_switched_off(tool.gates):
            return str(GateReason.SWITCHED_OFF)
        return "stopped" if self._places.is_stopped(submit.session_id) else ""

    def _remember(self, new: NewCall) -> None:
        """An equal submit of the same batch is a repetition."""
        submit = new.submit
        if submit.name is not None:
            name = submit.name if submit.name not in self._known else submit.place
            self._known[name] = (
                submit.call_id, new.row["arguments_sha256"], new.state, submit.tool,
                submit.tool_call_id,
            )  # fmt: skip


def _refused_by_gates(submit: Submit, tool: Registered) -> str:
    """Why no call of this tool may start now. Raises QueueFull where too many wait."""
    refused = gates.refusal(tool.gates, submit.call_id, reads=tool.reads) if tool.gates else ""
    if not refused:
        pressure.refuse_if_full(submit.workspace_id, tool.name, tool.policy)
    return refused
