"""Ids are UUIDv7: made before the row, ordered by time. PostgreSQL makes them only from 18 on."""

import re
from uuid import UUID

from uuid_utils.compat import uuid7

from ledger.errors import NotFound

KINDS = {
    "call": "call",
    "session": "ses",
    "turn": "turn",
    "incident": "inc",
    "policy": "pol",
    "evidence": "ev",
    "resolution": "res",
    "bulk_run": "bulk",
    "breaker": "brk",
    "grant": "grn",
    "message": "msg",
    "delivery": "dlv",
    "compaction": "cmp",
    "hand_off": "hof",
    "import": "imp",
    "trial": "try",
    "channel": "chn",
    "notification": "ntf",
    "worker": "wrk",
}
_SHAPE = re.compile(r"(?:([a-z]+)_)?([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})\Z")


def new() -> UUID:
    """A fresh UUIDv7."""
    return uuid7()


def shown(noun: str, id_: UUID) -> str:
    """The id as the API shows it: `call_0199…`, the kind before 32 hex digits."""
    return f"{KINDS[noun]}_{id_.hex}"


def read(noun: str, text: str) -> UUID:
    """Read an id of this kind, with or without its prefix.

    Raises NotFound for anything else, so that a malformed id reads like an absent one (S1).
    """
    match = _SHAPE.match(text) if len(text) <= 64 else None
    if match is None or match[1] not in (None, KINDS[noun]):
        raise NotFound(noun=noun)
    return UUID(match[2])


def marker(call_id: UUID) -> str:
    """The mark that travels with every effect of a call, so that a probe can find it again."""
    return f"clearhouse-{call_id.hex}"
