"""Reads for which epoch of a session somebody speaks: the header `Clearhouse-Epoch`.

A header, because it goes with every request of a session alike, those without a body among them.
A submit may say it in its body as well, since a batch may speak for several sessions.
"""

from django.http import HttpRequest

from ledger.errors import Invalid
from ledger.numbers import whole

EPOCH = "Clearhouse-Epoch"


def epoch_of(header: str | None) -> int | None:
    """The header's epoch; None, which means the first one, without it. Raises Invalid."""
    if header is None:
        return None
    epoch = whole(header)
    if epoch is None:
        raise Invalid(detail=f"{EPOCH} takes a session's epoch, a whole number.")
    return epoch


def epoch_in(request: HttpRequest, member: int | None = None) -> int | None:
    """The epoch of a request: the body's member where there is one, else the header's."""
    return epoch_of(request.headers.get(EPOCH)) if member is None else member
