"""Incidents: what was found and tried, whose turn it is, and what people state and decide."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger import ids
from ledger.api import shapes as ledger_shapes
from ledger.api.auth import KeyOrLogin, Login, reader_of
from ledger.api.pages import page
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant
from ledger.errors import NotFound
from ledger.permissions import Person
from recovery import casefiles, changes, resolutions, rulings, statements
from recovery.api import intents, shapes
from recovery.api.decisions import decision_of
from recovery.api.schemas import EvidenceIn, ProofOfDeathIn, ResolutionIn
from recovery.models import Incident, Resolution

router = Router(tags=["incidents"])
READ, PERSON = KeyOrLogin("calls:read"), Login()


def shape(row: Incident, moved: list[changes.Change]) -> dict[str, Any]:
    """An incident with its timeline; `moved` is what lies on its call's file."""
    return {
        "id": ids.shown("incident", row.id),
        "call": ids.shown("call", row.call_id),
        "kind": row.kind,
        "state": row.state,
        "number": row.number,
        "cause": row.cause or None,
        "failure_point": row.failure_point or None,
        "exhausted_because": row.reason or None,
        "decision_version": changes.version_after(moved),
        "opened_at": instant(row.opened_at),
        "closed_at": instant(row.closed_at),
        "steps": [
            {
                "at": instant(step.at),
                "rung": step.rung,
                "taken": step.taken,
                "rule": step.rule or None,
                "grounds": step.grounds,
            }
            for step in row.steps.order_by("id")
        ],
    }


def _readable(request: HttpRequest) -> "QuerySet[Incident]":
    """The incidents of the calls that the caller may read."""
    reader = reader_of(request.auth)  # type: ignore[attr-defined]
    of_workspace = Incident.objects.filter(workspace=reader.workspace_id)
    return of_workspace.filter(call__agent=reader.agent_id) if reader.agent_id else of_workspace


@router.get("", auth=READ, response=PageOut)
def index(
    request: HttpRequest,
    open: bool | None = None,
    call: str = "",
    limit: int = 50,
    cursor: str = "",
) -> dict[str, Any]:
    """List incidents, newest first."""
    rows = _readable(request)
    if open is not None:
        rows = rows.filter(closed_at__isnull=open)
    if call:
        rows = rows.filter(call=ids.read("call", call))
    filters = {"open": open, "call": call}
    found, next_cursor = page(rows, filters=filters, limit=limit, cursor=cursor)
    moved = changes.of_calls([row.call_id for row in found])
    items = [shape(row, moved[row.call_id]) for row in found]
    return {"items": items, "next_cursor": next_cursor}


@router.get("/{incident_id}", auth=READ, response=dict)
def detail(request: HttpRequest, response: HttpResponse, incident_id: str) -> dict[str, Any]:
    """One incident with its evidence, its resolutions, and for a person what may be answered.

    Its `ETag` is the decision version, which a decision sends back in `If-Match`.
    """
    row = _readable(request).filter(id=ids.read("incident", incident_id)).first()
    if row is None:
        raise NotFound(noun="incident")
    moved = changes.of(row.call_id)
    response["ETag"] = f'"{changes.version_after(moved)}"'
    return shape(row, moved) | _on_file(row) | _for_person(row, request.auth)  # type: ignore[attr-defined]


def _on_file(row: Incident) -> dict[str, Any]:
    """What lies on the file of the incident's call, and the lock on denial."""
    lock = rulings.lock_of(casefiles.of(row.call, row))
    return shapes.on_file(row.call) | {
        "pending": row.pending_id and ids.shown("resolution", row.pending_id),
        "lock": lock and lock.to_json(),
        "locked_until": instant(lock.unlocks_at) if lock else None,
    }


def _for_person(row: Incident, reader: Any) -> dict[str, Any]:
    """What this person may answer now; nothing for a key, which never decides."""
    if not isinstance(reader, Person):
        return {"can": []}
    return {"can": [shapes.offer(each) for each in resolutions.offers(row.call, row, reader)]}


@router.post("/{incident_id}/resolutions/preview", auth=PERSON, response=dict)
def preview(request: HttpRequest, incident_id: str, body: ResolutionIn) -> dict[str, Any]:
    """What the very same body would do: outside, in the ledger, for the model, and afterwards."""
    facts, ruling = resolutions.preview(
        incident_id=ids.read("incident", incident_id),
        decision=decision_of(request, body),
        by=request.auth,  # type: ignore[attr-defined]
    )
    return shapes.preview(facts, ruling)


@router.post("/{incident_id}/resolutions", auth=PERSON, response={201: dict})
def resolve(request: HttpRequest, incident_id: str, body: ResolutionIn) -> HttpResponse:
    """Record a decision; it is carried out after the tool's delay, and can be taken back till then.

    Takes a person's login, `Idempotency-Key`, and the decision version in `If-Match` or the body.
    """
    decision = decision_of(request, body)

    def deed() -> dict[str, Any]:
        recorded = resolutions.record(
            incident_id=ids.read("incident", incident_id),
            decision=decision,
            by=request.auth,  # type: ignore[attr-defined]
        )
        return shapes.resolution(Resolution.objects.get(id=recorded.id))

    return intents.once(request, deed)


@router.post("/{incident_id}/evidence", auth=PERSON, response={201: dict})
def evidence(request: HttpRequest, incident_id: str, body: EvidenceIn) -> HttpResponse:
    """Put on the file what a person found outside. It decides nothing by itself."""
    person: Person = request.auth  # type: ignore[attr-defined]

    def deed() -> dict[str, Any]:
        call_id = statements.call_of(ids.read("incident", incident_id), person)
        found = statements.Found(**body.model_dump())
        return shapes.evidence(statements.state_evidence(call_id=call_id, found=found, by=person))

    return intents.once(request, deed)


@router.post("/{incident_id}/proof-of-death", auth=PERSON, response={201: dict})
def proof_of_death(request: HttpRequest, incident_id: str, body: ProofOfDeathIn) -> HttpResponse:
    """Say with grounds that the machine of a lost attempt is off: the weaker proof."""
    person: Person = request.auth  # type: ignore[attr-defined]

    def deed() -> dict[str, Any]:
        call_id = statements.call_of(ids.read("incident", incident_id), person)
        return ledger_shapes.attempt(
            statements.state_death(
                call_id=call_id, fence=body.attempt, grounds=body.grounds, by=person
            )
        )

    return intents.once(request, deed)
