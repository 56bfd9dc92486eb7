"""What readers fetched. Written in groups, after the answer is made and without holding it up.

An answer that left just before a crash may miss its row; the verdict therefore says what is
recorded as fetched, never that nothing was.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from uuid import UUID

from ledger import pipelines
from ledger.groups import Group
from ledger.tables import table

COLUMNS = (
    ("call_id", "uuid"),
    ("workspace_id", "uuid"),
    ("reader", "text"),
    ("state", "text"),
    ("effect", "text"),
    ("sha256", "text"),
    ("event_seq", "integer"),
)
INSERT = (
    "INSERT INTO ledger_fetch (call_id, workspace_id, reader, state, effect, sha256, "
    "event_seq, times) SELECT *, 1 FROM {} ON CONFLICT (call_id, reader, state, sha256) "
    "DO UPDATE SET times = ledger_fetch.times + 1, last_at = clock_timestamp()"
)


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


def write(rows: Sequence[Fetched]) -> list[None]:
    """Add the reads, or count them where the same was read before."""
    # One row for each key: a statement may not touch a conflicting row twice.
    unique = list({(r.call_id, r.reader, r.state, r.sha256): r for r in rows}.values())
    in_order = sorted(unique, key=lambda row: row.call_id)
    text, parameters = table(COLUMNS, [astuple(row) for row in in_order])
    pipelines.rows(INSERT.format(text), parameters)
    return [None] * len(rows)


# Nobody waits for these rows, and a commit for each would compete with the calls' own.
reads: Group[Fetched, None] = Group(write, name="fetches", largest=256, linger_s=0.05)
