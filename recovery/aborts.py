"""Ending the machine's turn because a person says so (`recovery_aborted`; semantics, section 7).

The call becomes `ambiguous` at once instead of at the end of its recovery window; where no effect
is possible there is nothing to ask anybody, and it is cancelled. What is in hand still counts.

Locks: call, attempt, incident, then appends.
"""

from uuid import UUID

from ledger.errors import LedgerError, NotFound
from ledger.models import ToolCall
from ledger.transactions import repeatable
from ledger.vocabulary import CallState, ExhaustionReason
from recovery import acts, deadlines, decisions, snapshots
from recovery.models import Incident
from recovery.refusals import call_or_refuse


class NotRecovering(LedgerError):
    """The incident is not the machine's turn: there is nothing to stop."""

    code = "not_recovering"
    sentence = (
        "This incident is {state} and its call {call_state}: the machine takes no steps. Nothing "
        "was stopped. Read the incident: it says whose turn it is."
    )


@repeatable
def stop(
    *, workspace_id: UUID, incident_id: UUID, by_id: str, by_name: str, grounds: str
) -> Incident:
    """End the machine's turn; return the incident. Raises NotFound, NoCall and NotRecovering.

    The first step of the ladder is taken in any case: what is known already is not asked of a
    person. Told twice, it answers the same.
    """
    incident = Incident.objects.filter(workspace=workspace_id, id=incident_id).first()
    if incident is None:
        raise NotFound(noun="incident")
    call = ToolCall.objects.locked(call_or_refuse(incident.call_id))
    incident.refresh_from_db()
    if incident.reason == ExhaustionReason.RECOVERY_ABORTED:
        return incident
    if call.state is not CallState.INTERRUPTED or incident.closed_at is not None:
        raise NotRecovering(state=incident.state, call_state=call.state)
    if incident.steps_taken == 0:
        deadlines.step(call)
    if call.state is CallState.INTERRUPTED:
        _end(call, by_id=by_id, grounds=f"{by_name} stopped the machine: {grounds}")
    incident.refresh_from_db()
    return incident


def _end(call: ToolCall, *, by_id: str, grounds: str) -> None:
    case, _ = snapshots.of(call)
    decision = decisions.aborted(case, by_id=by_id, grounds=grounds)
    acts.carry_out(call, case, decision)
