"""Resolutions: read one, take it back, approve it, dispute it. A key does none but read."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger import ids
from ledger.api.auth import KeyOrLogin, Login, reader_of
from ledger.api.conditions import seen_of
from ledger.errors import NotFound
from ledger.permissions import Person
from ledger.vocabulary import ResolutionAnswer
from recovery import disputes, resolutions
from recovery.api import decision_shapes, intents
from recovery.api.schemas import ApprovalIn, DisputeIn, TakingBackIn
from recovery.models import Resolution
from recovery.rulings import Wish

router = Router(tags=["resolutions"])
READ, PERSON = KeyOrLogin("calls:read"), Login()


@router.get("/{resolution_id}", auth=READ)
def detail(request: HttpRequest, resolution_id: str) -> dict[str, Any]:
    """One resolution: what was decided, on what, by whom, and what became of it."""
    reader = reader_of(request.auth)  # type: ignore[attr-defined]
    rows = Resolution.objects.filter(workspace=reader.workspace_id)
    if reader.agent_id is not None:
        rows = rows.filter(call__agent=reader.agent_id)
    found = rows.filter(id=ids.read("resolution", resolution_id)).first()
    if found is None:
        raise NotFound(noun="resolution")
    return decision_shapes.resolution(found)


@router.post("/{resolution_id}/taking-back", auth=PERSON, response={201: dict})
def taking_back(request: HttpRequest, resolution_id: str, body: TakingBackIn) -> HttpResponse:
    """Take a resolution back while its delay runs, or its request waits; later 409."""
    person: Person = request.auth  # type: ignore[attr-defined]

    def deed() -> dict[str, Any]:
        taken = resolutions.take_back(
            resolution_id=ids.read("resolution", resolution_id), grounds=body.grounds, by=person
        )
        return decision_shapes.resolution(taken)

    return intents.once(request, deed)


@router.post("/{resolution_id}/approval", auth=PERSON, response={201: dict})
def approval(request: HttpRequest, resolution_id: str, body: ApprovalIn) -> HttpResponse:
    """Approve or decline as the second person; whoever recorded it is barred."""
    person: Person = request.auth  # type: ignore[attr-defined]

    def deed() -> dict[str, Any]:
        answered = resolutions.approve(
            resolution_id=ids.read("resolution", resolution_id),
            yes=body.approve,
            grounds=body.grounds,
            seen=seen_of(request, body.decision_version),
            by=person,
        )
        return decision_shapes.resolution(answered)

    return intents.once(request, deed)


@router.post("/{resolution_id}/dispute", auth=PERSON, response={201: dict})
def dispute(request: HttpRequest, resolution_id: str, body: DisputeIn) -> HttpResponse:
    """Dispute somebody else's decision: what waits is stopped, and a third person or admin decides.

    Where it was carried out the call keeps its state, and an incident asks for a correction.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    wish = Wish(answer=ResolutionAnswer(body.answer), then=body.then, grounds=body.grounds)

    def deed() -> dict[str, Any]:
        id_ = ids.read("resolution", resolution_id)
        return decision_shapes.dispute(disputes.begin(resolution_id=id_, wish=wish, by=person))

    return intents.once(request, deed)
