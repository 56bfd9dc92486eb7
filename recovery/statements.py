"""What people state without deciding: evidence they found, and that a machine is off.

Stating is a right of its own (R150). A statement moves the decision version and nothing else; a
proof of death is the weaker kind (reliability, section 5), is shown as such and has its own
instant from which denial unlocks.

Locks: call, attempt, then appends.
"""

from dataclasses import dataclass
from uuid import UUID

from ledger import evidence, journal, strictjson
from ledger.errors import Invalid, NotFound, PermissionMissing
from ledger.journal import Move
from ledger.models import Attempt, Evidence, ToolCall
from ledger.permissions import Person, Right
from ledger.transactions import repeatable
from ledger.vocabulary import Actor, CallState, Deadline, Effect, ProofOfDeath, spoken
from recovery import deeds, incidents, reports, resolutions
from recovery.models import Incident
from recovery.refusals import EvidenceIncomplete, call_or_refuse

TO_GIVE = {
    "checked": "What was checked needs a reference (an id at the provider, a handle, a link) or "
    "the record itself as its body. A sentence alone is a statement.",
    "document": "A document needs its text as the body, or a reference to where it lies. A "
    "sentence alone is a statement.",
}
"""What each kind has to bring besides its sentence (console, section 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a person found: `message` says what was looked at, `body` is a document's text."""

    kind: str
    finding: str
    message: str
    reference: str = ""
    body: str | None = None
    media_type: str = "text/plain"

    @property
    def is_traceable(self) -> bool:
        """Whether another person can look it up: it has a reference or the text itself."""
        return bool(self.reference.strip() or (self.body or "").strip())


@repeatable
def state_evidence(*, call_id: UUID, found: Found, by: Person) -> Evidence:
    """Put what a person found on the file of a call.

    Raises NotFound, PermissionMissing, and EvidenceIncomplete for what is said to be checked or a
    document and names nothing that another person could look at.
    """
    call = _locked(call_id, by, Right.STATE_EVIDENCE)
    if found.kind in TO_GIVE and not found.is_traceable:
        raise EvidenceIncomplete(detail=TO_GIVE[found.kind])
    body = found.message if found.body is None else found.body
    kept = evidence.state(
        call,
        kind=found.kind,
        finding=found.finding,
        message=found.message,
        reference=found.reference,
        stored=strictjson.storable(body.encode(), found.media_type),
        media_type=found.media_type,
        by=by,
    )
    facts = {"evidence": kept.id.hex, "kind": found.kind, "finding": found.finding}
    journal.append(
        [
            Move(
                call=call,
                kind="evidence_added",
                by=Actor.OPERATOR,
                by_id=deeds.actor_id(by.id),
                facts=facts,
            )
        ]
    )
    said = spoken(found.finding)
    incidents.note(call, rung="evidence", grounds=f"{by.name} found: {said}. {found.message}")
    resolutions.lapse(call)
    return kept


def _locked(call_id: UUID, by: Person, right: Right) -> ToolCall:
    rows = ToolCall.objects.filter(workspace=by.workspace_id)
    call = rows.select_for_update(of=("self",)).filter(id=call_id).first()
    if call is None:
        raise NotFound(noun="call")
    if not by.may(right):
        raise PermissionMissing(needed=f"the right to {spoken(right)}")
    return call


def call_of(incident_id: UUID, by: Person) -> UUID:
    """The call of an incident of the person's workspace. Raises NotFound and NoCall."""
    rows = Incident.objects.filter(workspace=by.workspace_id, id=incident_id)
    found = rows.values_list("call_id", flat=True)[:1]
    if not found:
        raise NotFound(noun="incident")
    return call_or_refuse(found[0])


@repeatable
def state_death(*, call_id: UUID, fence: int, grounds: str, by: Person) -> Attempt:
    """Take a person's word that the machine of a lost attempt is off (`host_gone`).

    Raises Invalid for an attempt that still holds its call or is proven dead already.
    """
    call = _locked(call_id, by, Right.DECIDE)
    attempt = Attempt.objects.filter(call=call, fence=fence).first()
    if attempt is None:
        raise Invalid(detail=f"This call has no attempt {fence}.")
    if attempt.ended_at is None:
        raise Invalid(
            detail=f"Attempt {fence} still holds the call; wait for the end of its lease."
        )
    if attempt.dead_proof:
        raise Invalid(detail=f"Attempt {fence} is proven dead already ({attempt.dead_proof}).")
    kept = evidence.state(
        call,
        kind="statement",
        finding="unknown",
        message=f"The machine of attempt {fence} is off: {grounds}",
        stored=strictjson.storable(grounds.encode(), "text/plain"),
        media_type="text/plain",
        by=by,
        attempt_id=attempt.id,
    )
    reports.prove_dead(attempt, ProofOfDeath.HOST_GONE, call.policy.call_policy.in_flight_grace_s)
    waits = call.state is CallState.INTERRUPTED and call.effect is Effect.POSSIBLE
    journal.append(
        [
            Move(
                call=call,
                kind="proven_dead",
                by=Actor.OPERATOR,
                by_id=deeds.actor_id(by.id),
                fence=fence,
                facts={
                    "proof": str(ProofOfDeath.HOST_GONE),
                    "grounds": grounds,
                    "evidence": kept.id.hex,
                },
                arm={Deadline.NEXT_STEP: 0.0} if waits else {},
                columns={"reason": "proven_dead"} if waits else {},
            )
        ]
    )
    incidents.note(call, rung="evidence", grounds=f"{by.name}: the machine is off. {grounds}")
    attempt.refresh_from_db()
    return attempt
