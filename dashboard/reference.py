"""The error reference, folded from the classes that refuse: one entry for each code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from dashboard import drills as _refuses  # noqa: F401 known once it is imported
from ledger.api import auth as _refuses_too  # noqa: F401 known once it is imported
from ledger.errors import LedgerError

EDGE = {
    "media_type": (415, "The body is not application/json in UTF-8, or it is compressed."),
    "payload_too_large": (413, "The body is over one mebibyte."),
    "method_not_allowed": (405, "The address exists and does not take this method."),
    "database_away": (503, "PostgreSQL does not answer. Repeat with the same Idempotency-Key."),
    "internal": (500, "A fault of ours. What was committed before stands."),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What a code means."""

    code: str
    status: int
    meaning: str
    sentence: str = ""
    """What an answer's `detail` says, with `‹names›` where it carries values; may be empty."""


def _classes(base: type[LedgerError]) -> Iterator[type[LedgerError]]:
    yield base
    for below in base.__subclasses__():
        yield from _classes(below)


def _shown(sentence: str) -> str:
    """The sentence with a name in marks where a refusal puts a value."""
    return re.sub(r"\{(\w+)(?:![rsa])?(?::[^}]*)?\}", r"‹\1›", sentence)


@cache
def errors() -> dict[str, Entry]:
    """Every code by name; where several refusals share a code, the general one explains it."""
    entries: dict[str, Entry] = {}
    for each in _classes(LedgerError):
        meaning = " ".join((each.__doc__ or "").split())
        entries.setdefault(each.code, Entry(each.code, each.http, meaning, _shown(each.sentence)))
    return entries | {code: Entry(code, *rest) for code, rest in EDGE.items()}
