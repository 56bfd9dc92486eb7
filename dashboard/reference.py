"""The error reference, folded from the classes that refuse: one entry for each code."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ledger.api import auth
from ledger.errors import LedgerError

EDGE = {
    "media_type": (415, "The body is not application/json in UTF-8, or it is compressed."),
    "payload_too_large": (413, "The body is over one mebibyte."),
    "method_not_allowed": (405, "The address exists and does not take this method."),
    "internal": (500, "A fault of ours. What was committed before stands."),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What a code means."""

    code: str
    status: int
    meaning: str


def _classes(base: type[LedgerError]) -> Iterator[type[LedgerError]]:
    yield base
    for below in base.__subclasses__():
        yield from _classes(below)


@cache
def errors() -> dict[str, Entry]:
    """Every code by name."""
    assert auth  # its refusals are classes too, and known once it is imported
    entries = {
        each.code: Entry(each.code, each.http, (each.__doc__ or "").strip())
        for each in _classes(LedgerError)
    }
    return entries | {code: Entry(code, *rest) for code, rest in EDGE.items()}
