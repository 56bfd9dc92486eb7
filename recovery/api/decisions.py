"""Reads a person's decision from a request: the wish, and the version that was looked at."""

from django.http import HttpRequest

from ledger import ids
from ledger.errors import Invalid
from ledger.handles import HandleToStore
from ledger.vocabulary import ResolutionAnswer
from recovery.api.schemas import HandleIn, ResolutionIn
from recovery.resolutions import Decision, Seen
from recovery.rulings import Wish


def seen_of(request: HttpRequest, version: int | None) -> Seen:
    """The version of `If-Match`, else of the body. Raises Invalid for another kind of tag."""
    tag = request.headers.get("If-Match")
    if tag is None:
        return Seen(version=version)
    text = tag.strip().removeprefix('"').removesuffix('"')
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Invalid(detail="If-Match takes the incident's ETag, a decision version in quotes.")
    return Seen(version=int(text), matched=True)


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
