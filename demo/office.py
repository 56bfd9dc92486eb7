"""What the people of the office do: look outside, put what they found on the file, decide."""

from uuid import UUID

from ledger.conditions import Seen
from ledger.models import Evidence, ToolCall
from ledger.permissions import Person
from ledger.vocabulary import ResolutionAnswer
from recovery import casefiles, changes, corrections, resolutions, rulings, statements
from recovery.models import Incident, Resolution
from recovery.resolutions import Decision
from recovery.rulings import Wish


def incident_of(call_id: UUID) -> Incident:
    """The recovery incident of a call that was opened last."""
    return Incident.objects.filter(call=call_id, kind="recovery").latest("opened_at")


def found(
    call_id: UUID, finding: str, message: str, *, kind: str = "checked", by: Person, **more: str
) -> Evidence:
    """Put on a call's file what somebody found outside."""
    return statements.state_evidence(
        call_id=call_id,
        found=statements.Found(kind=kind, finding=finding, message=message, **more),
        by=by,
    )


def decide(
    call_id: UUID, answer: str, grounds: str, *, by: Person, then: str = "", evidence: Evidence
) -> Resolution:
    """Decide on this evidence, having seen the file as it stands."""
    decision = _decision(call_id, answer, grounds, then, evidence)
    return resolutions.record(incident_id=incident_of(call_id).id, decision=decision, by=by)


def correct(
    call_id: UUID, answer: str, grounds: str, *, by: Person, evidence: Evidence
) -> Resolution:
    """Correct what was decided; what was settled stays."""
    decision = _decision(call_id, answer, grounds, "", evidence)
    return corrections.correct(call_id=call_id, decision=decision, by=by)


def _decision(call_id: UUID, answer: str, grounds: str, then: str, evidence: Evidence) -> Decision:
    call = ToolCall.objects.get(id=call_id)
    return Decision(
        wish=Wish(
            answer=ResolutionAnswer(answer), then=then, grounds=grounds, evidence=(evidence.id,)
        ),
        seen=Seen(version=changes.version_after(changes.of(call_id))),
        confirm=f"{call.tool} 1",
    )


def denial_unlocked(call_id: UUID) -> bool:
    """Whether somebody may say by now that it did not happen."""
    call = ToolCall.objects.get(id=call_id)
    return rulings.lock_of(casefiles.of(call, incident_of(call_id))) is None
