"""Everything that is waited for in a workspace, until when, and what happens then; soonest first.

One listing over all that has a date: open calls, decisions, reviews, hand-offs, turns in their
grace, gates with a trial. Pages by date and id, so that a row never stands on two of them.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from dashboard import addresses, reading
from ledger import cursors, ids
from ledger.vocabulary import Deadline, spoken
from recovery.health import late_before

ROWS = 50
BOUND = {"list": "deadlines"}
D = Deadline
THEN: dict[str, str] = {
    D.SCHEDULE_TO_START: "no worker took it in time: it expires, or is published again if its "
    "policy says so",
    D.START_TO_CLOSE: "the attempt is over: it loses its fence, and recovery decides what follows",
    D.SCHEDULE_TO_CLOSE: "the call's own time is over: it expires, or goes to recovery where an "
    "effect is possible",
    D.HEARTBEAT: "the worker counts as lost: the attempt loses its fence",
    D.BACKOFF: "the next attempt is published",
    D.NEXT_POLL: "the outside is asked how far its work is",
    D.NEXT_STEP: "recovery takes its next step",
    D.RECOVERY_WINDOW: "the machine stops looking for proof; without it, a person is asked",
    D.REVIEW: "a wider circle is asked; nothing is decided",
    D.INTERRUPT_EXPIRY: "the question expires; the call follows the policy's rule for that",
    "request": "the request for a second person lapses; nothing is carried out",
    "resolution": "the decision is carried out; until then it can be taken back",
    "hand_off": "the offer ends; the calls stay where they are",
    "turn_grace": "the interrupted turn closes; what still runs stays recorded",
    "trial": "one call may pass the gate; its outcome opens or closes it",
    "bulk_run": "the frozen list expires before it was started",
}
"""What happens when a deadline passes, in words (semantics, section 3)."""

WHICH = " ".join(f"WHEN {each}_at THEN '{each}'" for each in Deadline)
# Each branch has its own order and limit, so that each is served by its own index:
# `call_due_open`, `incident_pending`, `hand_off_due`, `turn_in_grace`.
BRANCHES = (
    f"SELECT due_at AS at, id::text AS id, CASE due_at {WHICH} END AS what, 'call' AS noun, "  # noqa: S608 constants of ours
    "tool AS name, state FROM ledger_toolcall "
    "WHERE settled_at IS NULL AND workspace_id = %(workspace)s",
    "SELECT i.pending_until, i.id::text, CASE WHEN r.needs_second_person AND NOT EXISTS "
    "(SELECT FROM recovery_resolutionevent e WHERE e.resolution_id = r.id "
    "AND e.kind = 'approved') THEN 'request' ELSE 'resolution' END, 'incident', c.tool, c.state "
    "FROM recovery_incident i JOIN recovery_resolution r ON r.id = i.pending_id "
    "JOIN ledger_toolcall c ON c.id = i.call_id "
    "WHERE i.pending_until IS NOT NULL AND i.workspace_id = %(workspace)s",
    "SELECT h.expires_at, h.from_session_id::text, 'hand_off', 'session', a.name, '' "
    "FROM ledger_handoff h "
    "JOIN ledger_agent a ON a.id = h.to_agent_id "
    "WHERE h.ended_at IS NULL AND h.workspace_id = %(workspace)s",
    "SELECT t.grace_until, t.id::text, 'turn_grace', 'turn', 'turn ' || t.number, '' "
    "FROM ledger_turn t WHERE t.interrupted_at IS NOT NULL AND t.closed_at IS NULL "
    "AND t.workspace_id = %(workspace)s",
    "SELECT g.trial_at, g.id::text, 'trial', g.kind || '_gate', g.name, '' FROM ledger_gate g "
    "WHERE g.trial_at IS NOT NULL AND g.workspace_id = %(workspace)s",
    "SELECT b.expires_at, b.id::text, 'bulk_run', 'bulk_run', b.by_name, '' "
    "FROM recovery_bulkrun b WHERE b.started_at IS NULL AND b.stopped_at IS NULL "
    "AND b.expires_at > %(now)s AND b.workspace_id = %(workspace)s",
)
NAMES = "(at, id, what, noun, name, state)"
AFTER = "WHERE (at, id) > (%(at)s, %(id)s::text)"
SQL = " UNION ALL ".join(
    f"SELECT * FROM (SELECT * FROM ({branch}) one {NAMES} {{after}} "  # noqa: S608 constants of ours
    "ORDER BY at, id LIMIT %(limit)s) each"
    for branch in BRANCHES
)


AT_NEXT_CALL = frozenset({"trial"})
"""What happens not at its date but at the next call after it, and so is never late."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing that is waited for. `is_late`: its date has passed, and nothing came of it."""

    at: datetime
    id: UUID
    what: str
    noun: str
    name: str
    state: str
    has_passed: bool = False
    is_late: bool = False

    @property
    def awaits_call(self) -> bool:
        """Whether its date has passed and only a call is missing."""
        return self.has_passed and self.what in AT_NEXT_CALL

    @property
    def deadline(self) -> str:
        return self.what.replace("_", "-") if self.what in set(Deadline) else ""

    @property
    def word(self) -> str:
        return self.deadline or spoken(self.what)

    @property
    def then(self) -> str:
        return THEN[self.what]

    @property
    def shown(self) -> str:
        """Its id as the API shows it; empty for a gate, which goes by its name."""
        return ids.shown(self.noun, self.id) if self.noun in ids.KINDS else ""

    @property
    def address(self) -> str:
        """Its page, or nothing for what has none of its own."""
        if self.noun == "tool_gate":
            return addresses.of_tool(self.name)
        return addresses.of(self.noun, self.id) if self.noun in addresses.FOLDERS else ""


@dataclass(frozen=True, slots=True)
class Waits:
    """A page of them, soonest first, and the cursor of the next."""

    waits: list[Wait]
    more: str = ""


def read(workspace_id: UUID, now: datetime, cursor: str = "", limit: int = ROWS) -> Waits:
    """One page. Raises Invalid for a cursor of something else, DatabaseError out of time."""
    asked: dict[str, Any] = {"workspace": workspace_id, "now": now, "limit": limit + 1}
    if cursor:
        asked["at"], asked["id"] = cursors.read(cursor, BOUND, datetime.fromisoformat, UUID)
    sql = f"SELECT * FROM ({SQL.format(after=AFTER if cursor else '')}) waits ORDER BY at, id"  # noqa: S608 constants of this module
    found = [_wait(now, *row) for row in reading.rows(f"{sql} LIMIT %(limit)s", asked)]
    more = _after(found[limit - 1]) if len(found) > limit else ""
    return Waits(found[:limit], more)


def _wait(now: datetime, at: datetime, id_: str, what: str, *named: str) -> Wait:
    noun, name, state = named
    is_late = at < late_before(now) and what not in AT_NEXT_CALL
    return Wait(at, UUID(id_), what, noun, name, state, has_passed=at <= now, is_late=is_late)


def _after(last: Wait) -> str:
    return cursors.written((last.at.isoformat(), last.id), BOUND)
