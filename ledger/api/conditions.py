"""Reads which version a change was decided on: `If-Match`, or a member of the body (RFC 9110)."""

from django.http import HttpRequest

from ledger.conditions import Seen
from ledger.errors import Invalid

VERSION_DIGITS_MAX = 9


def seen_of(request: HttpRequest, version: int | None) -> Seen:
    """The version of `If-Match`, else of the body. Raises Invalid for another kind of tag."""
    tag = request.headers.get("If-Match")
    if tag is None:
        return Seen(version=version)
    text = tag.strip().removeprefix('"').removesuffix('"')
    if not (text.isascii() and text.isdigit() and len(text) <= VERSION_DIGITS_MAX):
        raise Invalid(detail="If-Match takes the ETag of what was read, a version in quotes.")
    return Seen(version=int(text), matched=True)


def etag(version: int) -> str:
    """The strong ETag of a version."""
    return f'"{version}"'
