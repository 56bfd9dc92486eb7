"""Corrections of settled calls: previewed, recorded, told to the agent. No key makes one."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger import calls, ids
from ledger.api import masks
from ledger.api.auth import KeyOrLogin, Login, reader_of
from ledger.api.conditions import seen_of
from ledger.permissions import Person
from ledger.vocabulary import ResolutionAnswer
from recovery import changes, corrections, statements
from recovery.api import decision_shapes, intents
from recovery.api.schemas import CorrectionIn, EvidenceIn
from recovery.resolutions import Decision
from recovery.rulings import Wish

router = Router(tags=["corrections"])
READ, PERSON = KeyOrLogin("calls:read"), Login()


def _decision(request: HttpRequest, body: CorrectionIn) -> Decision:
    return Decision(
        wish=Wish(
            answer=ResolutionAnswer(body.answer),
            grounds=body.grounds,
            evidence=tuple(ids.read("evidence", each) for each in body.evidence),
            result=ids.read("evidence", body.result) if body.result else None,
        ),
        seen=seen_of(request, body.decision_version),
        confirm=body.confirm,
    )


@router.post("/{call_id}/corrections/preview", auth=PERSON, response=dict)
def preview(request: HttpRequest, call_id: str, body: CorrectionIn) -> dict[str, Any]:
    """What the very same body would do, with the text for an agent that read the earlier one."""
    correction = corrections.preview(
        call_id=ids.read("call", call_id),
        decision=_decision(request, body),
        by=request.auth,  # type: ignore[attr-defined]
    )
    return decision_shapes.preview(
        correction.facts, correction.ruling, correction=correction.text or None
    )


@router.post("/{call_id}/corrections", auth=PERSON, response={201: dict})
def correct(request: HttpRequest, call_id: str, body: CorrectionIn) -> HttpResponse:
    """Supersede what holds of a settled call, or say that it stands against a finding.

    The settlement stays; the verdict and what the agent reads follow the latest correction.
    """
    person: Person = request.auth  # type: ignore[attr-defined]

    def deed() -> dict[str, Any]:
        made = corrections.correct(
            call_id=ids.read("call", call_id), decision=_decision(request, body), by=person
        )
        return decision_shapes.resolution(made)

    return intents.once(request, deed)


@router.post("/{call_id}/evidence", auth=PERSON, response={201: dict})
def evidence(request: HttpRequest, call_id: str, body: EvidenceIn) -> HttpResponse:
    """Put on a call's file what a person found outside; also after it is settled."""
    person: Person = request.auth  # type: ignore[attr-defined]

    def deed() -> dict[str, Any]:
        found = statements.Found(**body.model_dump())
        kept = statements.state_evidence(call_id=ids.read("call", call_id), found=found, by=person)
        return decision_shapes.evidence(kept)

    return intents.once(request, deed)


@router.get("/{call_id}/file", auth=READ, response=dict)
def file(request: HttpRequest, call_id: str) -> dict[str, Any]:
    """What lies on a call's file: evidence, resolutions, and the decision version they make."""
    reader = reader_of(request.auth)  # type: ignore[attr-defined]
    call = calls.get(reader=reader, call_id=ids.read("call", call_id))
    moved = changes.of(call.id)
    body = {
        "call": ids.shown("call", call.id),
        "decision_version": changes.version_after(moved),
        "changes": [each.sentence for each in moved],
    } | decision_shapes.on_file(call)
    return dict(masks.about_call(request.auth, call, body))  # type: ignore[attr-defined]
