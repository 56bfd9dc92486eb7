"""Requests for a second person: which wait, what a yes would do, and who may give it.

What a yes would do is the ruling that carrying out would follow now, made by the same code; who
may give it is asked of the refusals of `resolutions.approve`. Nothing here writes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from ledger.errors import LedgerError
from ledger.models import Membership
from ledger.permissions import Person, Right, roles_with
from ledger.vocabulary import ResolutionStage
from recovery import casefiles, resolutions, rulings, stages
from recovery.models import Incident, Resolution, ResolutionEvent
from recovery.rulings import Facts, Ruling

ENDED_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A resolution that asked for a second person, as it stands now.

    `ruling` is what a yes would do; None where it would do nothing, and `refusal` says why.
    `why_not` says why this person may not answer at all; `takes_login`, that a fresh login is due.
    """

    resolution: Resolution
    stage: ResolutionStage
    facts: Facts
    ruling: Ruling | None
    refusal: str
    why_not: str
    takes_login: bool


def waiting(workspace_id: UUID) -> "QuerySet[Incident]":
    """The incidents on which a request may wait, the soonest to lapse first.

    Served by `incident_pending`; those approved meanwhile are left out by their events.
    """
    approved = ResolutionEvent.objects.filter(kind=ResolutionStage.APPROVED)
    return (
        Incident.objects.filter(
            workspace=workspace_id,
            pending_until__isnull=False,
            pending__needs_second_person=True,
        )
        .exclude(pending__in=approved.values("resolution"))
        .select_related("pending__call", "call")
        .order_by("pending_until")
    )


def ended(workspace_id: UUID) -> "QuerySet[ResolutionEvent]":
    """The last answers to such requests: approved, declined, lapsed or taken back."""
    kinds = (ResolutionStage.APPROVED, ResolutionStage.DECLINED, ResolutionStage.LAPSED,
             ResolutionStage.TAKEN_BACK)  # fmt: skip
    rows = ResolutionEvent.objects.filter(
        workspace=workspace_id, resolution__needs_second_person=True, kind__in=kinds
    )
    return rows.select_related("resolution__call").order_by("-at", "-id")[:ENDED_SHOWN]


def nobody_but(by_id: int, workspace_id: UUID) -> bool:
    """Whether nobody else may approve what this person asks for."""
    approvers = Membership.objects.filter(
        workspace=workspace_id, role__in=roles_with(Right.APPROVE), person__is_active=True
    )
    return not approvers.exclude(person=by_id).exists()


def look(*, resolution_id: UUID, by: Person) -> Request:
    """One request, with what a yes would do now. Raises NotFound."""
    resolution = resolutions.get(resolution_id=resolution_id, workspace_id=by.workspace_id)
    facts = casefiles.of(resolution.call, resolution.incident)
    ruling, refusal = _ruled(resolution)
    return Request(
        resolution=resolution,
        stage=stages.of(resolution),
        facts=facts,
        ruling=ruling,
        refusal=refusal,
        why_not=_why_not(resolution, by),
        takes_login=facts.has_effect and not by.login_is_fresh,
    )


def _ruled(resolution: Resolution) -> tuple[Ruling | None, str]:
    """What carrying it out would do now, or the sentence that refuses it."""
    handle = resolutions.handle_of(resolution)
    # It is not in its own way: without its incident, no decision waits.
    facts = casefiles.of(resolution.call, None, handle)
    try:
        return rulings.rule(facts, resolutions.wish_of(resolution)), ""
    except LedgerError as refusal:
        return None, str(refusal)


def _why_not(resolution: Resolution, by: Person) -> str:
    """Why this person may not answer it now; empty where the person may."""
    checks: tuple[Callable[[], Any], ...] = (
        lambda: resolutions.refuse_unless_for(by, resolution),
        lambda: resolutions.need_right(by, Right.APPROVE),
        lambda: resolutions.refuse_if_dead(resolution),
    )
    try:
        for check in checks:
            check()
    except LedgerError as refusal:
        return str(refusal)
    return ""
