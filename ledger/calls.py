"""Reading calls and asking for their cancellation."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Model, Q

from ledger import bindings, holds, interrupts, journal, partials, unresolved, waiting
from ledger.errors import AlreadySettled, Invalid, NotFound, PermissionMissing
from ledger.journal import Move
from ledger.models import Event, Fetch, Notice, Result, Session, ToolCall
from ledger.models.calls import ToolCallQuerySet
from ledger.models.fields import ClockTimestamp, hydrated
from ledger.partials import Unfinished
from ledger.permissions import Person, Right, roles_with
from ledger.pipelines import rows
from ledger.tables import table
from ledger.transactions import repeatable
from ledger.vocabulary import Actor, CallState, Effect, InterruptEnd

OF_ITS_OWN = ("stopped", "turn_interrupted")
"""Why a twin was cancelled that has a text of its own, whatever becomes of the other call."""
AT_REST = (CallState.RECORDED, CallState.PAUSED, CallState.SCHEDULED, CallState.BACKING_OFF)


@dataclass(frozen=True, slots=True)
class Fetchable:
    """A call with its result, as one read brings them; without one, what it brought so far.

    `notice` is the text kept for its agent, `read_before` whether that fetched it earlier;
    `waits_for` the call that holds it, `other` the one whose outcome a twin shares, `scope` the
    retry budget that was spent.
    """

    call: ToolCall
    result: Result | None
    unfinished: Unfinished | None = None
    notice: Notice | None = None
    read_before: bool = False
    waits_for: UUID | None = None
    other: "Fetchable | None" = None
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: an agent its own calls, a person (no agent) those of the workspace."""

    workspace_id: UUID
    agent_id: UUID | None = None

    @property
    def calls(self) -> ToolCallQuerySet:
        """The calls that this reader may see."""
        of_workspace = ToolCall.objects.filter(workspace=self.workspace_id)
        if self.agent_id is None:
            return of_workspace
        # Who asked for a call keeps it readable when it has changed hands.
        asked = Q(agent=self.agent_id)
        return of_workspace.filter(asked | unresolved.owned_by_agent(self.agent_id))

    def may_read(self, call: ToolCall) -> bool:
        """Whether `calls` holds it; the database is asked only of what changed hands."""
        own = self.agent_id in (None, call.agent_id) or unresolved.is_owned_by(call, self.agent_id)
        return own and call.workspace_id == self.workspace_id


def read_many(wanted: Sequence[tuple[Reader, UUID]]) -> list[Fetchable | Exception]:
    """Read calls by reader and id; absent and foreign ones are NotFound alike (R110)."""
    found = _read({id_ for _, id_ in wanted})
    return [_given(reader, call_id, found.get(call_id)) for reader, call_id in wanted]


def read_session(session_id: UUID, leave_out: Collection[UUID] = ()) -> list[Fetchable]:
    """All calls of a session but these, in a fixed number of queries however many there are."""
    ids_ = set(ToolCall.objects.filter(session=session_id).values_list("id", flat=True))
    wanted = ids_.difference(leave_out)
    return list(_read(wanted).values()) if wanted else []


def read_calls(call_ids: Collection[UUID]) -> list[Fetchable]:
    """These calls in the order given, in a fixed number of queries."""
    found = _read(call_ids)
    return [found[call_id] for call_id in call_ids]


def _read(call_ids: Collection[UUID]) -> dict[UUID, Fetchable]:
    # Written out, because building this query costs the ORM more than running it does.
    text, parameters = table((("id", "uuid"),), [(id_,) for id_ in call_ids])
    read = map(_fetchable, rows(READ.format(text), parameters))
    found = {fetched.call.id: fetched for fetched in read}
    _add_unfinished(found)
    _add_told(found)
    _add_held(found)
    _add_spent(found)
    _add_others(found)
    return found


def _add_spent(found: dict[UUID, Fetchable]) -> None:
    """Add which budget refused a repeat; no query where none did."""
    spent = [call_id for call_id, each in found.items() if each.call.reason == "budget_spent"]
    settlements = Event.objects.filter(call__in=spent, settles=True) if spent else ()
    for event in settlements:
        scope = event.facts_json.get("scope", "")
        found[event.call_id] = replace(found[event.call_id], scope=scope)


def _add_held(found: dict[UUID, Fetchable]) -> None:
    """Add what held calls wait for, or waited for; no query where none is held."""
    held = [call_id for call_id, each in found.items() if _is_held(each.call)]
    for call_id, waits_for in holds.waited_for(held).items() if held else ():
        found[call_id] = replace(found[call_id], waits_for=waits_for)


def _is_held(call: ToolCall) -> bool:
    return call.state is CallState.PAUSED or call.reason == "held"


def _add_others(found: dict[UUID, Fetchable]) -> None:
    """Add to each twin without a result the call whose text is its own."""
    wanted = {
        call_id: each.call.twin_of_id
        for call_id, each in found.items()
        if each.call.twin_of_id is not None
        and each.call.state is CallState.CANCELLED
        and each.call.reason not in OF_ITS_OWN
    }
    others = _read(set(wanted.values())) if wanted else {}
    for call_id, other_id in wanted.items():
        found[call_id] = replace(found[call_id], other=others.get(other_id))


def _add_unfinished(found: dict[UUID, Fetchable]) -> None:
    """Add what is known of those that stopped without a result; no query where there is none."""
    stopped = [
        call_id
        for call_id, each in found.items()
        if each.result is None and partials.may_have(each.call)
    ]
    for call_id, unfinished in partials.read(stopped).items():
        found[call_id] = replace(found[call_id], unfinished=unfinished)


def _columns(model: type[Model], alias: str) -> str:
    return ", ".join(f"{alias}.{field.column}" for field in model._meta.concrete_fields)


CALL_WIDTH = len(ToolCall._meta.concrete_fields)
READ = (
    f"SELECT {_columns(ToolCall, 'c')}, {_columns(Result, 'r')} FROM {{}} "  # noqa: S608 names come from the models
    "JOIN ledger_toolcall c ON c.id = v.id LEFT JOIN ledger_result r ON r.call_id = c.id"
)


def _fetchable(row: Sequence[Any]) -> Fetchable:
    result = row[CALL_WIDTH:]
    return Fetchable(
        hydrated(ToolCall, row[:CALL_WIDTH]),
        hydrated(Result, result) if any(value is not None for value in result) else None,
    )


def _add_told(found: dict[UUID, Fetchable]) -> None:
    """Add the texts kept for these calls, and whether their agents have read another one before."""
    kept = {each.call.id: each for each in found.values() if each.call.notice_seq}
    if not kept:
        return
    rows = Notice.objects.filter(call__in=kept)
    last = {row.call_id: row for row in rows if row.seq == kept[row.call_id].call.notice_seq}
    corrected = {call_id: row for call_id, row in last.items() if row.corrects}
    seen = Fetch.objects.filter(call__in=corrected) if corrected else ()
    read_before = {each.call_id for each in seen if _is_another(each, kept, corrected)}
    for call_id, notice in last.items():
        found[call_id] = replace(kept[call_id], notice=notice, read_before=call_id in read_before)


def _is_another(fetch: Fetch, kept: dict[UUID, Fetchable], corrected: dict[UUID, Notice]) -> bool:
    """Whether a fetch is its agent's, from before the correction, and of something else."""
    notice, call = corrected[fetch.call_id], kept[fetch.call_id].call
    is_earlier = fetch.event_seq < notice.seq and fetch.sha256 != notice.sha256
    return is_earlier and fetch.reader == call.agent_id.hex


def _given(reader: Reader, call_id: UUID, fetched: Fetchable | None) -> Fetchable | Exception:
    if fetched is None or not reader.may_read(fetched.call):
        return NotFound(noun="call", about=call_id)
    return fetched


def get(*, reader: Reader, call_id: UUID) -> ToolCall:
    """One call that this reader may see. Raises NotFound."""
    call = reader.calls.filter(id=call_id).first()
    if call is None:
        raise NotFound(noun="call", about=call_id)
    return call


def _check_epoch(agent_id: UUID, call_id: UUID, epoch: int | None) -> None:
    """Look at the session that owns a call, shared, so that no re-bind comes between."""
    owner = rows(
        "SELECT coalesce(h.to_session_id, c.session_id) FROM ledger_toolcall c "
        "LEFT JOIN ledger_handoff h ON h.id = c.handed_off_id WHERE c.id = %s",
        [call_id],
    )
    if not owner or owner[0][0] is None:
        return  # a call without session locks none
    # An owner that handed the call on meanwhile has a new epoch, and is refused by it.
    found = Session.objects.raw(
        "SELECT * FROM ledger_session WHERE id = %s AND agent_id = %s FOR SHARE",
        [owner[0][0], agent_id],
    )
    for session in found:
        bindings.check_epoch(session, epoch)


@repeatable
def cancel(
    *, workspace_id: UUID, agent_id: UUID, call_id: UUID, epoch: int | None = None
) -> ToolCall:
    """Ask for a call's end: at once where nothing runs, else before its boundary.

    Its owner of the day may. After the boundary the call is left to end, and what happened is told
    (R99). Asking again changes nothing. Raises NotFound, StaleEpoch where the owner's session was
    bound anew, and AlreadySettled for another settlement than this.
    """
    _check_epoch(agent_id, call_id, epoch)
    call = _to_cancel(workspace_id, call_id, unresolved.owned_by_agent(agent_id))
    return _cancel(call, by=Actor.AGENT, by_id=agent_id.hex)


@repeatable
def cancel_as_person(*, person: Person, call_id: UUID, grounds: str) -> ToolCall:
    """Ask for a call's end as `cancel` does, with a person's grounds in its event.

    Raises NotFound, PermissionMissing, Invalid without grounds, and AlreadySettled.
    """
    call = _to_cancel(person.workspace_id, call_id)
    if not person.may(Right.DECIDE):
        raise PermissionMissing(needed=f"the role {' or '.join(roles_with(Right.DECIDE))}")
    if not grounds.strip():
        raise Invalid(detail="Every change needs grounds: say why in one sentence.")
    facts = {"grounds": grounds.strip()}
    return _cancel(call, by=Actor.OPERATOR, by_id=str(person.id), facts=facts)


class Cancellation(NamedTuple):
    """What asking for a call's end would do now, and why it would do nothing."""

    at_once: bool
    why_not: str = ""


def cancellation_of(call: ToolCall) -> Cancellation:
    """Judge whether a call would end at once, or be asked to stop before its boundary."""
    if call.is_settled:
        return Cancellation(False, f"It is settled as {call.state}: there is nothing to cancel.")
    if call.state in AT_REST and call.effect is not Effect.POSSIBLE:
        return Cancellation(at_once=True)
    asked = call.cancel_requested_at
    why = f"Its end was asked for at {asked:%H:%M:%S} UTC already." if asked else ""
    return Cancellation(False, why)


def _to_cancel(workspace_id: UUID, call_id: UUID, owned: Q | None = None) -> ToolCall:
    rows = ToolCall.objects.select_for_update(of=("self",))
    call = rows.filter(owned or Q(), workspace=workspace_id, id=call_id).first()
    if call is None:
        raise NotFound(noun="call", about=call_id)
    return call


def _cancel(
    call: ToolCall, *, by: Actor, by_id: str, facts: Mapping[str, Any] = MappingProxyType({})
) -> ToolCall:
    if call.state is CallState.CANCELLED:
        return call
    if call.is_settled:
        raise AlreadySettled(state=call.state, current={"state": call.state, "effect": call.effect})
    if cancellation_of(call).at_once:
        journal.append([Move(call=call, kind="cancelled", by=by, by_id=by_id, facts=facts,
                             columns={"reason": "cancel_requested"})])  # fmt: skip
        interrupts.end([call.id], ended_as=InterruptEnd.WITHDRAWN, by=str(by), by_id=by_id)
        waiting.tell([call.id])
    elif call.cancel_requested_at is None:
        journal.append([Move(call=call, kind="cancel_requested", by=by, by_id=by_id, facts=facts)])
        ToolCall.objects.filter(id=call.id).update(cancel_requested_at=ClockTimestamp())
    call.refresh_from_db()
    return call
