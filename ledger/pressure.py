"""Back-pressure: a queue that cannot start a call in time says so at the door (R30).

The oldest waiting call of each tool is read at most once a second for the whole process;
a call that slips in meanwhile is bounded by its own schedule-to-start.
"""

import time
from uuid import UUID

from django.db import connection

from ledger.errors import QueueFull
from ledger.policies import CallPolicy

READ_AGAIN_S = 1.0
_waited_s: dict[tuple[UUID, str], float] = {}
_read_at = float("-inf")


def refuse_if_full(workspace_id: UUID, tool: str, policy: CallPolicy) -> None:
    """Raise QueueFull if the tool's oldest call has waited over half its schedule-to-start."""
    waited_s = _waits().get((workspace_id, tool), 0.0)
    if waited_s > policy.timeouts.schedule_to_start_s / 2:
        raise QueueFull(
            waited_s=round(waited_s, 1),
            retry_after_s=max(1, round(policy.timeouts.schedule_to_start_s - waited_s)),
        )


def _waits() -> dict[tuple[UUID, str], float]:
    global _waited_s, _read_at
    if time.monotonic() - _read_at > READ_AGAIN_S:
        with connection.cursor() as cursor:
            # Served by the partial index `call_claimable`: only what waits is read.
            cursor.execute(
                "SELECT workspace_id, tool, "
                "extract(epoch FROM clock_timestamp() - min(published_at))::float8 "
                # What is held waits for another call, not for a worker.
                "FROM ledger_toolcall WHERE state = 'scheduled' "
                "AND (held_at >= published_at) IS NOT TRUE GROUP BY workspace_id, tool"
            )
            _waited_s = {(row[0], row[1]): row[2] for row in cursor.fetchall()}
        _read_at = time.monotonic()
    return _waited_s


def forget() -> None:
    """Read the waits again at the next submit."""
    global _read_at
    _read_at = float("-inf")
