"""What readers fetched. Written in groups, after the answer is made and without holding it up.

An answer that left just before a crash may miss its row; the verdict therefore says what is
recorded as fetched, never that nothing was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction

from ledger.groups import Group


@dataclass(frozen=True, slots=True)
class Fetched:
    """One read of a settled call."""

    call_id: UUID
    workspace_id: UUID
    reader: str
    state: str
    effect: str
    sha256: str
    event_seq: int


@transaction.atomic
def write(rows: Sequence[Fetched]) -> list[None]:
    """Add the reads, or count them where the same was read before."""
    # One row for each key: a statement may not touch a conflicting row twice.
    unique = list({(r.call_id, r.reader, r.state, r.sha256): r for r in rows}.values())
    columns = zip(
        *((r.call_id, r.workspace_id, r.reader, r.state, r.effect, r.sha256, r.event_seq)
          for r in sorted(unique, key=lambda row: row.call_id)),
        strict=True,
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_fetch (call_id, workspace_id, reader, state, effect, sha256, "
            "event_seq, times) SELECT *, 1 FROM unnest(%s::uuid[], %s::uuid[], %s::text[], "
            "%s::text[], %s::text[], %s::text[], %s::int[]) "
            "ON CONFLICT (call_id, reader, state, sha256) "
            "DO UPDATE SET times = ledger_fetch.times + 1, last_at = clock_timestamp()",
            [list(column) for column in columns],
        )
    return [None] * len(rows)


reads: Group[Fetched, None] = Group(write, name="fetches", largest=256)
