"""Which open calls a session answers for: its own that it still has, and those that it took over.

Agent, session and turn of a call are those that asked for it, for ever. Who owns it today is said
by its latest accepted hand-off, `ToolCall.handed_off`; it is empty for nearly every call, so who
reads, claims or settles one pays nothing for it (decision 0027).
"""

from uuid import UUID

from django.db.models import Q

from ledger.models import HandOff, ToolCall
from ledger.models.calls import ToolCallQuerySet
from ledger.vocabulary import HandOffEnd


def owned_by(session_id: UUID) -> Q:
    """The calls whose results and texts belong to this session today, settled ones too.

    Served by `call_of_session` and `call_handed_off`.
    """
    taken = HandOff.objects.filter(to_session=session_id, ended_as=HandOffEnd.ACCEPTED)
    still_own = Q(session=session_id, handed_off__isnull=True)
    return still_own | Q(handed_off__in=list(taken.values_list("id", flat=True)))


def owned_by_agent(agent_id: UUID) -> Q:
    """The same for every session of an agent, and for its calls without a session."""
    taken = HandOff.objects.filter(to_agent=agent_id, ended_as=HandOffEnd.ACCEPTED)
    still_own = Q(agent=agent_id, handed_off__isnull=True)
    return still_own | Q(handed_off__in=list(taken.values_list("id", flat=True)))


def is_owned_by(call: ToolCall, agent_id: UUID | None) -> bool:
    """Whether an agent has taken a call over; no query for one that never changed hands."""
    return (
        call.handed_off_id is not None
        and HandOff.objects.filter(id=call.handed_off_id, to_agent=agent_id).exists()
    )


def of_session(session_id: UUID) -> list[ToolCall]:
    """Its unresolved calls: own ones by turn, model step and position, then those taken over."""
    return _ordered(session_id, list(_open(session_id)))


def held(session_id: UUID) -> list[ToolCall]:
    """The same under the locks of their rows; the caller holds the session's.

    With the session's lock no call comes, with the calls' locks none is settled.
    """
    return _ordered(
        session_id, list(_open(session_id).select_for_update(of=("self",), no_key=True))
    )


def _open(session_id: UUID) -> ToolCallQuerySet:
    rows = ToolCall.objects.open().filter(owned_by(session_id)).order_by("id")
    return rows.select_related("turn", "tool_version")


def _ordered(session_id: UUID, calls: list[ToolCall]) -> list[ToolCall]:
    def place(call: ToolCall) -> tuple[bool, int, int, int, UUID]:
        turn = call.turn.number if call.turn else 0
        return (call.session_id != session_id, turn, call.model_step, call.position, call.id)

    return sorted(calls, key=place)
