"""Telling those who wait for a call. A notice is a hint: the reader looks into the ledger.

`tell` sends the ids with the transaction, so that a waiter wakes only after the commit
(reliability, P8: under 8,000 bytes, lost for absent listeners, a hint and never a queue).
"""

from collections.abc import Sequence
from uuid import UUID

from ledger.pipelines import write

CHANNEL = "clearhouse_calls"
IDS_A_NOTICE = 200


def tell(call_ids: Sequence[UUID]) -> None:
    """Wake whoever waits for one of these calls, once this transaction has committed."""
    for start in range(0, len(call_ids), IDS_A_NOTICE):
        payload = "".join(id_.hex for id_ in call_ids[start : start + IDS_A_NOTICE])
        write("SELECT pg_notify(%s, %s)", [CHANNEL, payload])


def ids_in(payload: str) -> list[UUID]:
    """The ids that a notice carries."""
    return [UUID(payload[at : at + 32]) for at in range(0, len(payload), 32)]
