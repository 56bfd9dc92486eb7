"""Stopping a session and letting it go on: a person's act, on grounds."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from ledger import ids
from ledger.api import shapes
from ledger.api.auth import Login
from ledger.api.schemas import GroundsIn
from ledger.permissions import Person
from recovery import stops

router = Router(tags=["sessions"])
OPERATOR = Login("operator")


def _by(request: HttpRequest, body: GroundsIn) -> tuple[Person, stops.Person]:
    person: Person = request.auth  # type: ignore[attr-defined]
    return person, stops.Person(str(person.id), person.name, body.grounds)


@router.post("/{session_id}/stop", auth=OPERATOR)
def stop(request: HttpRequest, session_id: str, body: GroundsIn) -> dict[str, Any]:
    """Stop a session: no new attempt begins. What crossed its boundary is left to end.

    Stopping a stopped session changes nothing. New calls are recorded and rejected at once.
    """
    person, by = _by(request, body)
    return shapes.session(
        stops.stop(
            workspace_id=person.workspace_id, session_id=ids.read("session", session_id), by=by
        )
    )


@router.post("/{session_id}/resume", auth=OPERATOR)
def resume(request: HttpRequest, session_id: str, body: GroundsIn) -> dict[str, Any]:
    """Let a stopped session take calls again; what was cancelled stays cancelled.

    A session that is not stopped stays as it is, so told twice is told once.
    """
    person, by = _by(request, body)
    return shapes.session(
        stops.resume(
            workspace_id=person.workspace_id, session_id=ids.read("session", session_id), by=by
        )
    )
