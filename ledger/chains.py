"""Whether the events of one call are as they were written: each hashed over the one before (I21).

The whole ledger is checked by `verify_ledger`; this is the same sum for a call that somebody
looks at now.
"""

from uuid import UUID

from django.db import connection

BROKEN = """
SELECT e.seq,
  e.hash IS DISTINCT FROM ledger_event_hash(e)
  OR e.prev_hash IS DISTINCT FROM coalesce(lag(e.hash) OVER (ORDER BY e.seq), ''::bytea)
  OR lead(e.seq) OVER (ORDER BY e.seq) IS NULL AND e.hash IS DISTINCT FROM c.head_hash
FROM ledger_event e JOIN ledger_toolcall c ON c.id = e.call_id WHERE e.call_id = %s ORDER BY e.seq
"""


def broken(call_id: UUID) -> set[int]:
    """The numbers of the events whose hash, link or place at the head does not agree."""
    with connection.cursor() as cursor:
        cursor.execute(BROKEN, [call_id])
        return {seq for seq, is_broken in cursor.fetchall() if is_broken}
