"""Breakers: which are open and why, what changed them, and a person's hand on them (R50)."""

from typing import Annotated, Any, Literal

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from ledger import ids
from ledger.api.auth import KeyOrLogin, Login
from ledger.api.schemas import PageOut, Strict, shown
from ledger.api.shapes import instant
from ledger.errors import NotFound
from ledger.models import Gate
from ledger.permissions import Person
from ledger.vocabulary import BreakerState, GateReason
from recovery import breakers
from recovery.models import Breaker

router = Router(tags=["breakers"])
READ, CHANGE = KeyOrLogin("calls:read"), Login("operator", "admin")
SHOWN = 200


class BreakerIn(Strict):
    """How a breaker shall stand, and why."""

    model_config = shown(state="closed", grounds="The provider says that it is back.")

    state: Literal["open", "closed"]
    grounds: Annotated[str, Field(min_length=1, max_length=2000)]


def shape(row: Breaker) -> dict[str, Any]:
    """A breaker: of what, how it stands, since when, and its trial."""
    gate = Gate.objects.filter(
        workspace=row.workspace_id, kind=row.kind, name=row.name, why=GateReason.BREAKER_OPEN
    ).first()
    trial = gate.trial_call_id if gate else None
    return {
        "id": ids.shown("breaker", row.id),
        "kind": row.kind,
        "name": row.name,
        "state": row.state,
        "since": instant(row.since),
        "openings_in_a_row": row.openings,
        "trial_at": instant(gate.trial_at) if gate else None,
        "trial_call": trial and ids.shown("call", trial),
    }


@router.get("", auth=READ, response=PageOut)
def index(request: HttpRequest) -> dict[str, Any]:
    """Every breaker that was ever looked at, the open ones first."""
    rows = Breaker.objects.filter(workspace=request.auth.workspace_id)  # type: ignore[attr-defined]
    found = [shape(row) for row in rows.order_by("-since")[:SHOWN]]
    return {
        "items": sorted(found, key=lambda each: each["state"] == BreakerState.CLOSED),
        "next_cursor": None,
    }


@router.get("/{breaker_id}", auth=READ)
def detail(request: HttpRequest, breaker_id: str) -> dict[str, Any]:
    """One breaker with its changes, the last first: who or which rule, why, and the figures."""
    row = Breaker.objects.filter(
        workspace=request.auth.workspace_id,  # type: ignore[attr-defined]
        id=ids.read("breaker", breaker_id),
    ).first()
    if row is None:
        raise NotFound(noun="breaker")
    changes = [
        {
            "from": each.source,
            "to": each.target,
            "rule": each.rule or None,
            "by": each.person_name or None,
            "grounds": each.grounds,
            "figures": each.figures,
            "at": instant(each.at),
        }
        for each in row.changes.order_by("-id")[:SHOWN]
    ]
    return shape(row) | {"changes": changes}


@router.post("/{breaker_id}", auth=CHANGE)
def change(request: HttpRequest, breaker_id: str, body: BreakerIn) -> dict[str, Any]:
    """Open or close a breaker. Calls past their boundary are left to end.

    A breaker that stands so already stays as it is, so told twice is told once.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    row = breakers.put(
        workspace_id=person.workspace_id,
        breaker_id=ids.read("breaker", breaker_id),
        state=BreakerState(body.state),
        grounds=body.grounds,
        person=get_user_model().objects.get(pk=person.id),
    )
    return shape(row)
