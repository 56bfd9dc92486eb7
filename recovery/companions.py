"""Companions: incidents of the same session and time, which often have one reason (R60).

Within ten minutes of each other (semantics, section 7); at most ten are named.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

WITHIN_MIN = 10
NAMED = 10

READ = """
SELECT i.id, o.id FROM recovery_incident i
LEFT JOIN ledger_toolcall c ON c.id = i.call_id
JOIN LATERAL (
  SELECT other.id, other.opened_at FROM (
    SELECT x.* FROM ledger_toolcall beside JOIN recovery_incident x ON x.call_id = beside.id
     WHERE beside.session_id = coalesce(i.session_id, c.session_id)
       AND beside.workspace_id = i.workspace_id
    UNION ALL SELECT x.* FROM recovery_incident x
     WHERE x.session_id = coalesce(i.session_id, c.session_id)
  ) other
  WHERE other.id <> i.id
   AND other.opened_at BETWEEN i.opened_at - %(within)s * interval '1 minute'
   AND i.opened_at + %(within)s * interval '1 minute'
  ORDER BY other.opened_at, other.id LIMIT %(named)s
) o ON true
WHERE i.id = ANY(%(ids)s) ORDER BY i.id, o.id
"""


def of(incident_ids: Sequence[UUID]) -> dict[UUID, list[UUID]]:
    """The companions of each of these incidents that has any."""
    found: dict[UUID, list[UUID]] = {}
    if incident_ids:
        with connection.cursor() as cursor:
            cursor.execute(READ, {"ids": list(incident_ids), "within": WITHIN_MIN, "named": NAMED})
            for incident_id, companion in cursor.fetchall():
                found.setdefault(incident_id, []).append(companion)
    return found
