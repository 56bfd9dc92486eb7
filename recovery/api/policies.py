"""Policies: keys read them, admins change them; each is tried on history before it is saved."""

from typing import Any

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger import ids
from ledger.api import shapes
from ledger.api.auth import KeyOrLogin, Login
from ledger.api.conditions import etag, seen_of
from ledger.api.schemas import PageOut, PolicyIn
from ledger.api.shapes import instant
from ledger.errors import NotFound
from ledger.models import Policy
from ledger.permissions import Person, Right, roles_with
from recovery import rehearsals
from recovery.api import intents
from recovery.api.schemas import TrialIn
from recovery.models import Trial

router = Router(tags=["policies"])
READ, ADMIN = KeyOrLogin("calls:read"), Login("admin")
PERSON, DECIDER = Login(), Login(*roles_with(Right.DECIDE))


def shape(row: Trial) -> dict[str, Any]:
    """A trial: what was tried on how many calls, a number for each column, and the calls."""
    return {
        "id": ids.shown("trial", row.id),
        "tool": row.tool.name,
        "based_on": row.based_on,
        "policy": row.document,
        "calls": row.calls,
        "counts": row.counts,
        "loosens": rehearsals.loosened(row),
        "confirm": rehearsals.confirmation(row) or None,
        "rows": [
            {"column": column, "call": f"call_{call}", "detail": sentence, "measured_s": seconds}
            for column, call, sentence, seconds in row.rows
        ],
        "took_ms": row.took_ms,
        "by": row.person_name,
        "at": instant(row.at),
    }


@router.get("", auth=READ, response=PageOut)
def policies(request: HttpRequest) -> dict[str, Any]:
    """The policy of every tool side by side, with the linter's findings (R29)."""
    present = Policy.objects.filter(
        tool__workspace=request.auth.workspace_id,  # type: ignore[attr-defined]
        tool__version__gt=0,
        number=F("tool__policy_version"),
    )
    rows = present.select_related("tool").order_by("tool__name")
    return {"items": [shapes.policy(row) for row in rows], "next_cursor": None}


@router.get("/{name}", auth=READ)
def policy(request: HttpRequest, response: HttpResponse, name: str) -> dict[str, Any]:
    """A tool's policy as it holds now, and its earlier versions. Its `ETag` is its version."""
    tool = rehearsals.tool_of(request.auth.workspace_id, name)  # type: ignore[attr-defined]
    rows = list(tool.policies.select_related("tool").order_by("-number"))
    response["ETag"] = etag(rows[0].number)
    return shapes.policy(rows[0]) | {"earlier": [shapes.policy(row) for row in rows[1:]]}


@router.post("/{name}/trials", auth=DECIDER, response={201: dict})
def attempt(request: HttpRequest, name: str, body: TrialIn) -> HttpResponse:
    """Try a policy on the last calls of a tool, up to the first point of difference.

    Nothing is saved but the trial, and nothing outside is called or simulated. Each request is a
    trial of its own; `Idempotency-Key` makes it once.
    """
    person: Person = request.auth  # type: ignore[attr-defined]

    def deed() -> dict[str, Any]:
        made = rehearsals.attempt(
            person=person, tool_name=name, document=body.policy, calls=body.calls, days=body.days
        )
        return shape(made)

    return intents.once_if_named(request, deed)


@router.get("/{name}/trials/{trial_id}", auth=PERSON)
def detail(request: HttpRequest, name: str, trial_id: str) -> dict[str, Any]:
    """One trial as it came out."""
    person: Person = request.auth  # type: ignore[attr-defined]
    tool = rehearsals.tool_of(person.workspace_id, name)
    found = Trial.objects.filter(tool=tool, id=ids.read("trial", trial_id)).first()
    if found is None:
        raise NotFound(noun="trial")
    return shape(found)


@router.put("/{name}", auth=ADMIN)
def save(request: HttpRequest, name: str, body: PolicyIn) -> dict[str, Any]:
    """Write a new version; open calls keep theirs.

    `If-Match` or `version` names the one that was looked at: 428 without, 412 or 409 if another
    holds by now. It is tried on the last calls first: where it would have repeated effects that
    had happened, or is less careful than the version before, it is refused until `confirm` names
    the tool and the number of these effects, which may be 0.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    saved, trial = rehearsals.save(
        person=person,
        tool_name=name,
        document=body.policy,
        grounds=body.grounds,
        seen=seen_of(request, body.version),
        confirm=body.confirm,
    )
    return shapes.policy(saved) | {"trial": ids.shown("trial", trial.id)}
