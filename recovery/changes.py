"""What lies on a call's file: evidence, resolutions and what became of them, disputes, settlement.

The decision version is the length of this list plus one, so it moves with these and with nothing
else (semantics, section 8; console, section 9): heartbeats, sweeps and steps of the ladder never
make a decision stale. No counter can be forgotten. Every row is written under the call's lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

NOUNS = {"evidence": "evidence", "resolution": "resolution", "settlement": "call",
         "dispute": "dispute"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that moved the decision version: what, which, by whom (empty: the machine)."""

    at: datetime
    noun: str
    kind: str
    id: UUID
    by: str

    @property
    def sentence(self) -> str:
        by = f" by {self.by}" if self.by else ""
        return f"{self.noun} {self.kind}{by} at {self.at:%H:%M:%S} UTC"


LISTED = """
SELECT call_id, at, noun, kind, id, by_name FROM (
  SELECT call_id, at, 'evidence' AS noun, kind, id, by_name FROM ledger_evidence
   WHERE call_id = ANY(%(ids)s)
  UNION ALL SELECT call_id, at, 'resolution', answer, id, by_name FROM recovery_resolution
   WHERE call_id = ANY(%(ids)s)
  UNION ALL SELECT r.call_id, v.at, 'resolution', v.kind, r.id, v.by_name
    FROM recovery_resolution r JOIN recovery_resolutionevent v ON v.resolution_id = r.id
   WHERE r.call_id = ANY(%(ids)s)
  UNION ALL SELECT call_id, at, 'dispute', 'of a decision', id, by_name FROM recovery_dispute
   WHERE call_id = ANY(%(ids)s)
  UNION ALL SELECT id, settled_at, 'settlement', state, id, '' FROM ledger_toolcall
   WHERE id = ANY(%(ids)s) AND settled_at IS NOT NULL
) AS file ORDER BY at
"""


def of_calls(call_ids: Sequence[UUID]) -> dict[UUID, list[Change]]:
    """The changes of each call, oldest first."""
    found: dict[UUID, list[Change]] = {id_: [] for id_ in call_ids}
    with connection.cursor() as cursor:
        cursor.execute(LISTED, {"ids": list(call_ids)})
        rows: list[Any] = cursor.fetchall()
    for call_id, at, noun, kind, id_, by in rows:
        found[call_id].append(Change(at, noun, kind, id_, by))
    return found


def of(call_id: UUID) -> list[Change]:
    """The changes of one call, oldest first."""
    return of_calls([call_id])[call_id]


def version_after(changes: Sequence[Change]) -> int:
    """The decision version that these changes lead to."""
    return len(changes) + 1
