"""Requests for a second person as the pages show them: mine, others', and the last ended ones."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.text import capfirst

from ledger import ids
from ledger.permissions import Person, Right
from ledger.vocabulary import ResolutionStage, spoken
from recovery import requests
from recovery.api import decision_shapes
from recovery.models import Resolution
from recovery.requests import Request

WORDS = {
    "happened": "its effect happened",
    "did_not_happen": "its effect did not happen",
    "retry_same_key": "repeat it once under the same key",
    "attach_handle": "follow it by a handle",
    "probe_again": "ask the outside again",
    "abandon": "give it up, its effect unknown",
    "stands": "what was settled stands",
}
FINDINGS = {
    "happened": "it happened",
    "did_not_happen": "it did not happen",
    "in_progress": "it is under way",
    "unknown": "nobody can tell",
}
"""What a piece of evidence says of the effect."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request in a list: it waits until `until`, or it ended as `stage` says."""

    row: Resolution
    stage: ResolutionStage = ResolutionStage.REQUESTED
    until: datetime | None = None
    ended_by: str = ""
    ended_at: datetime | None = None

    @property
    def shown(self) -> str:
        return ids.shown("resolution", self.row.id)

    @property
    def sentence(self) -> str:
        return capfirst(sentence(self.row))

    @property
    def ended(self) -> str:
        """How it ended, in words; empty while it waits."""
        return spoken(self.stage) if self.ended_at else ""


@dataclass(frozen=True, slots=True)
class Approvals:
    """The page: what others asked and I may answer, what I asked myself, what ended lately.

    `alone`: nobody else may answer what I asked.
    """

    others: list[Asked]
    mine: list[Asked]
    ended: list[Asked]
    may_approve: bool
    alone: bool


def sentence(resolution: Resolution) -> str:
    """What was decided, in words."""
    words = WORDS[str(resolution.answer)]
    return f"{words}; {resolution.then}" if resolution.then else words


def read(person: Person) -> Approvals:
    """The requests of a person's workspace."""
    waiting = [(each.pending, each.pending_until) for each in requests.waiting(person.workspace_id)]
    asked = [Asked(row, until=until) for row, until in waiting if row is not None]
    mine = [each for each in asked if each.row.by_id == person.id]
    return Approvals(
        others=[each for each in asked if each.row.by_id != person.id],
        mine=mine,
        ended=[
            Asked(each.resolution, each.kind, ended_by=each.by_name, ended_at=each.at)
            for each in requests.ended(person.workspace_id)
        ],
        may_approve=person.may(Right.APPROVE),
        alone=bool(mine) and requests.nobody_but(person.id, person.workspace_id),
    )


def boxes(request: Request) -> dict[str, Any] | None:
    """The four boxes of a yes, as recording it drew them; None where it would do nothing."""
    if request.ruling is None:
        return None
    drawn = decision_shapes.preview(request.facts, request.ruling)
    after_s = request.resolution.carry_out_after_s
    when = (
        f"Your yes starts a delay of {after_s:g} s; until its end the decision can be taken back."
        if after_s
        else "Your yes carries it out at once; it cannot be taken back."
    )
    afterwards = {"sentence": f"{when} {request.ruling.afterwards}"}
    return drawn | {"afterwards": drawn["afterwards"] | afterwards}
