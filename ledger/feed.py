"""What happened in a session, as a stream that may be left and taken up again without a gap.

Events are numbered within their call, and commit in another order than they were written in: a
cursor over their instants would pass by what a slower transaction commits later. So the order of
the feed is that of the transactions' ids, and nothing is given out before every transaction with a
smaller id has ended (`pg_snapshot_xmin`): whatever comes later has a greater place. Within a call
`seq` tells the order. Places survive a restart of PostgreSQL, not a restore from a dump; a cursor
from beyond the present is told so (decision 0026).

No row is written, and the hot paths know nothing of this: the id of the transaction is the system
column `xmin` of what it wrote. Every row that is read here was written under a row's lock that its
transaction held before, so the id was taken before the row came to be.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from ledger import ids
from ledger.vocabulary import TurnEventKind

EVENTS_A_READ = 200
OF_CALLS: Mapping[str, str] = {"progress": "call.progress", "corrected": "call.corrected"}
"""Kinds of a call's events that are told, and as what. A settlement is told whatever its kind."""
SETTLED = "call.settled"
OF_TURNS = (TurnEventKind.INTERRUPTED, TurnEventKind.PRESERVED, TurnEventKind.CLOSED)
_PLACE = re.compile(r"([0-9]{1,19})-([0-9a-f]{32})-([0-9]{1,19})\Z")
NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where an event stands: transaction, call or turn, number within that."""

    transaction: int
    of: UUID = NOBODY
    number: int = 0

    def __str__(self) -> str:
        return f"{self.transaction}-{self.of.hex}-{self.number}"


def place(text: str) -> Place | None:
    """A place as the feed writes it, from `Last-Event-ID`; None for anything else."""
    match = _PLACE.match(text)
    if match is None or max(int(match[1]), int(match[3])) >= 2**63:
        return None
    return Place(int(match[1]), UUID(match[2]), int(match[3]))


@dataclass(frozen=True, slots=True)
class Told:
    """One event of the feed."""

    at: Place
    kind: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Read:
    """Events after a place, and the place up to which everything is told by them.

    `more`: a further read finds something, at once where the page was full, else when those who
    write now have ended.
    """

    events: Sequence[Told]
    through: Place
    more: bool
    full: bool


# An id of 32 bits as the full one nearest to the horizon. What is older than two thousand million
# transactions could be taken for something else; nobody resumes from there.
FULL = (
    "(h.x + mod({}.xmin::text::bigint - mod(h.x, 4294967296) + 6442450944, 4294967296) "
    "- 2147483648)"
)
OF_EVENT, OF_CALL, OF_TURN = FULL.format("e"), FULL.format("c"), FULL.format("t")
HORIZON = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS x"
# Each event updates its call's row, so a call whose row is older than the place has nothing new.
READ = f"""
WITH h AS MATERIALIZED ({HORIZON})
SELECT f.place, f.of, f.number, f.kind, f.fields, h.x FROM h LEFT JOIN LATERAL (
  SELECT {OF_EVENT} AS place, e.call_id AS of, e.seq::bigint AS number,
    CASE WHEN e.settles THEN '{SETTLED}' ELSE e.kind END AS kind,
    jsonb_build_object('call', e.call_id, 'turn', c.turn_id, 'seq', e.seq, 'at', e.at,
      'state', e.to_state, 'effect', e.effect, 'cause', e.cause, 'tool', c.tool,
      'tool_call_id', c.tool_call_id, 'facts', e.facts) AS fields
  FROM ledger_toolcall c JOIN ledger_event e ON e.call_id = c.id
  WHERE c.session_id = %(session)s AND {OF_CALL} >= %(from)s
    AND (e.settles OR e.kind = ANY(%(kinds)s)) AND {OF_EVENT} >= %(from)s
  UNION ALL
  SELECT {OF_TURN}, t.turn_id, t.id, t.kind,
    jsonb_build_object('turn', t.turn_id, 'at', t.at, 'by', t.by, 'facts', t.facts::text)
  FROM ledger_turn u JOIN ledger_turnevent t ON t.turn_id = u.id
  WHERE u.session_id = %(session)s AND t.kind = ANY(%(of_turns)s) AND {OF_TURN} >= %(from)s
) f ON (f.place, f.of, f.number) > (%(from)s, %(of)s, %(number)s)
ORDER BY 1, 2, 3 LIMIT %(limit)s
"""  # noqa: S608 constants of this module


def now() -> Place:
    """The place from which on nothing has been told."""
    with connection.cursor() as cursor:
        cursor.execute(HORIZON)
        return Place(int(cursor.fetchone()[0]))


def read(session_id: UUID, after: Place, *, limit: int = EVENTS_A_READ) -> Read:
    """The events of a session behind a place, in the order of their places."""
    with connection.cursor() as cursor:
        cursor.execute(
            READ,
            {
                "session": session_id,
                "from": after.transaction,
                "of": after.of,
                "number": after.number,
                "kinds": list(OF_CALLS),
                "of_turns": [str(kind) for kind in OF_TURNS],
                "limit": limit,
            },
        )
        return _judged(cursor.fetchall(), after, limit)


def _judged(rows: Sequence[Sequence[Any]], after: Place, limit: int) -> Read:
    """What may be told: everything from transactions before the oldest that still runs."""
    horizon = int(rows[0][5])
    found = [row for row in rows if row[0] is not None]
    safe = [_told(row) for row in found if row[0] < horizon]
    full = len(safe) == limit
    through = safe[-1].at if full else max(after, Place(horizon))
    return Read(safe, through, more=full or len(safe) < len(found), full=full)


def _told(row: Sequence[Any]) -> Told:
    at = Place(int(row[0]), row[1], int(row[2]))
    fields = json.loads(row[4]) if isinstance(row[4], str) else dict(row[4])
    kind = OF_CALLS.get(row[3], row[3])
    return Told(at, kind, _fields(fields))


def _fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Ids as the API shows them; of a call's facts the cursor only: the rest, the call says."""
    facts = json.loads(fields.pop("facts"))
    shown = fields | {
        noun: ids.shown(noun, UUID(fields[noun])) for noun in ("call", "turn") if fields.get(noun)
    }
    return shown | ({"facts": facts} if "call" not in fields or "cursor" in facts else {})


def is_beyond(at: Place) -> bool:
    """Whether a place lies ahead of the present: it is of another database, or of one restored."""
    return at.transaction > now().transaction


# Which sessions to look at

TOUCHED = f"""
WITH h AS MATERIALIZED ({HORIZON})
SELECT DISTINCT c.session_id FROM h, ledger_toolcall c
 WHERE c.session_id = ANY(%(sessions)s) AND {OF_CALL} >= %(since)s
   AND (c.settled_at IS NULL OR c.settled_at > clock_timestamp() - interval '1 minute')
UNION
SELECT u.session_id FROM h, ledger_turn u JOIN ledger_turnevent t ON t.turn_id = u.id
 WHERE u.session_id = ANY(%(sessions)s) AND {OF_TURN} >= %(since)s
"""  # noqa: S608 constants of this module


def sessions_of(call_ids: Sequence[UUID], sessions: Sequence[UUID]) -> set[UUID]:
    """Which of these sessions the calls belong to."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT session_id FROM ledger_toolcall WHERE id = ANY(%s) "
            "AND session_id = ANY(%s)",
            [list(call_ids), list(sessions)],
        )
        return {row[0] for row in cursor.fetchall()}


def touched(sessions: Sequence[UUID], since: Place) -> tuple[set[UUID], Place]:
    """Which of these sessions have news since a place, whoever was told; and the place now."""
    at = now()
    with connection.cursor() as cursor:
        cursor.execute(TOUCHED, {"sessions": list(sessions), "since": since.transaction})
        return {row[0] for row in cursor.fetchall()}, at
