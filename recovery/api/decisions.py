"""Reads a person's decision from a request: the wish, and the version that was looked at."""

from django.http import HttpRequest

from ledger import ids
from ledger.api.conditions import seen_of
from ledger.handles import HandleToStore
from ledger.vocabulary import ResolutionAnswer
from recovery.api.schemas import HandleIn, ResolutionIn
from recovery.resolutions import Decision
from recovery.rulings import Wish


def decision_of(request: HttpRequest, body: ResolutionIn) -> Decision:
    """The decision that a body describes. Raises NotFound for an id of another kind."""
    return Decision(
        wish=Wish(
            answer=ResolutionAnswer(body.answer),
            then=body.then,
            grounds=body.grounds,
            evidence=tuple(ids.read("evidence", each) for each in body.evidence),
            result=ids.read("evidence", body.result) if body.result else None,
            error=body.error,
            handle=body.handle is not None,
        ),
        seen=seen_of(request, body.decision_version),
        confirm=body.confirm,
        handle=_handle(body.handle),
    )


def _handle(given: HandleIn | None) -> HandleToStore | None:
    if given is None:
        return None
    return HandleToStore(value=given.value, kind=given.kind, endpoint=given.endpoint)
