"""Reads which version a change was decided on: `If-Match`, or a member of the body (RFC 9110)."""

from django.http import HttpRequest

from ledger.conditions import Seen
from ledger.errors import Invalid
from ledger.numbers import whole


def seen_of(request: HttpRequest, version: int | None) -> Seen:
    """The version of `If-Match`, else of the body. Raises Invalid for another kind of tag."""
    tag = request.headers.get("If-Match")
    if tag is None:
        return Seen(version=version)
    tagged = whole(tag.strip().removeprefix('"').removesuffix('"'))
    if tagged is None:
        raise Invalid(detail="If-Match takes the ETag of what was read, a version in quotes.")
    return Seen(version=tagged, matched=True)


def etag(version: int) -> str:
    """The strong ETag of a version."""
    return f'"{version}"'
