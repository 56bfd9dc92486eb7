"""Work without a known outcome: whether it is incomplete, and what it brought so far (R11, R76).

Long work that can no longer be followed is never shown as if nothing had happened: it is
`incomplete`, with the partial output that its attempts stored. Read only for calls that have
stopped without a result, so that the ordinary fetch costs nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef

from ledger.models import Attempt, Chunk, ToolCall
from ledger.vocabulary import CallState, Effect, RecoveryClass

QUOTED_BYTES = 2048
"""Partial output that is quoted in a call; all of it stands with the attempt."""

STOPPED = frozenset(
    {
        CallState.PARKED,
        CallState.INTERRUPTED,
        CallState.AMBIGUOUS,
        CallState.ABANDONED,
        CallState.EXPIRED,
        CallState.FAILED,
        CallState.CANCELLED,
    }
)
UNFOLLOWED = frozenset(
    {CallState.INTERRUPTED, CallState.AMBIGUOUS, CallState.ABANDONED, CallState.EXPIRED}
)


@dataclass(frozen=True, slots=True)
class Partial:
    """What the last attempt with output stored before it stopped. Never a result.

    `sha256` and `size_bytes` are those of all of it, `text` its beginning.
    """

    size_bytes: int
    sha256: str
    text: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A call that stopped without a result."""

    handle_was_lost: bool
    partial: Partial | None


def may_have(call: ToolCall) -> bool:
    """Whether it is worth asking: it was claimed, has stopped, and brought no result."""
    return call.fence > 0 and call.state in STOPPED


def is_incomplete(call: ToolCall, unfinished: Unfinished | None) -> bool:
    """Whether its work went on elsewhere and can no longer be followed (semantics, section 11)."""
    if call.effect is not Effect.POSSIBLE or call.state not in UNFOLLOWED:
        return False
    lost = unfinished is not None and unfinished.handle_was_lost
    return lost or call.recovery_class == RecoveryClass.LONG_RUNNING


OF_ATTEMPT = """
SELECT sum(length(k.body)) AS size,
  encode(sha256(string_agg(k.body, ''::bytea ORDER BY k.id)), 'hex') AS sha,
  substring(string_agg(k.body, ''::bytea ORDER BY k.id) FOR %s) AS head
FROM ledger_chunk k WHERE k.attempt_id =
"""

# The last attempt that stored anything: output of several attempts does not add up.
READ = f"""
SELECT c.id,
  EXISTS (SELECT FROM ledger_handle h WHERE h.call_id = c.id AND h.lost_at IS NOT NULL),
  p.size, p.sha, p.head
FROM unnest(%s::uuid[]) AS c(id) LEFT JOIN LATERAL (
  {OF_ATTEMPT} (
    SELECT a.id FROM ledger_attempt a WHERE a.call_id = c.id
     AND EXISTS (SELECT FROM ledger_chunk o WHERE o.attempt_id = a.id)
     ORDER BY a.fence DESC LIMIT 1)
) p ON true
"""  # noqa: S608 a constant


def read(call_ids: Sequence[UUID]) -> dict[UUID, Unfinished]:
    """What is known of these calls beyond their rows."""
    if not call_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(READ, [list(call_ids), QUOTED_BYTES])
        return {row[0]: Unfinished(row[1], _partial(*row[2:])) for row in cursor.fetchall()}


def of_attempt(attempt_id: UUID, quoted_bytes: int) -> Partial | None:
    """What one attempt stored, with that much of its beginning."""
    with connection.cursor() as cursor:
        cursor.execute(f"{OF_ATTEMPT} %s", [quoted_bytes, attempt_id])
        return _partial(*cursor.fetchone())


def whole_of(attempt_id: UUID) -> bytes:
    """All that one attempt stored."""
    pieces = Chunk.objects.filter(attempt=attempt_id).order_by("id")
    return b"".join(bytes(each) for each in pieces.values_list("body", flat=True))


def last_with_output(call: ToolCall) -> Attempt | None:
    """The attempt whose output is quoted in the call."""
    stored = Exists(Chunk.objects.filter(attempt=OuterRef("id")))
    return call.attempts.filter(stored).order_by("-fence").first()


def _partial(size: int | None, sha256: str | None, head: bytes | None) -> Partial | None:
    if size is None or sha256 is None or head is None:
        return None
    text = bytes(head).decode("utf-8", "replace")
    return Partial(int(size), sha256, text, truncated=size > len(head))
