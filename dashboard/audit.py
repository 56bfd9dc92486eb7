"""What people did in a workspace: one listing over every table that keeps a deed of a person.

Nothing is written here: each deed stands where it was done, beside its grounds, and most of these
rows can never change. A part of the audit is a statement that gives, for each deed, its instant,
its id, who, what, about what, and why; adding a noun is adding a part.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from dashboard import addresses, reading
from ledger import cursors, ids, masks
from ledger.errors import Invalid
from ledger.filters import day
from ledger.masks import Hidden
from ledger.models import ToolCall
from ledger.vocabulary import spoken

ROWS = 50
EXPORTED_MAX = 10_000
TARGET_CHARACTERS_MAX = 100
MASKED_AT_ONCE = 200
"""Lines whose calls are held in memory together; a call's arguments may be large."""


def _shown(noun: str, column: str) -> str:
    """An id as the API shows it, made by PostgreSQL, so that it can be filtered by."""
    return f"'{ids.KINDS[noun]}_' || replace({column}::text, '-', '')"


CALL = _shown("call", "{0}.call_id")
BREAKERS = (
    "SELECT c.at, 'b' || c.id, c.person_name, 'breaker: ' || c.source || ' to ' || c.target, "
    "b.name, c.grounds FROM recovery_breakerchange c "
    "JOIN recovery_breaker b ON b.id = c.breaker_id "
    "WHERE c.workspace_id = %(workspace)s AND c.person_id IS NOT NULL AND b.kind = '{}'"
)
PARTS: dict[str, str] = {
    "decisions": "SELECT r.at, r.id::text AS id, r.by_name AS actor, "  # noqa: S608 constants of ours
    "(CASE WHEN r.is_correction THEN 'corrected: ' ELSE 'decided: ' END || r.answer) AS deed, "
    f"{CALL.format('r')} AS target, r.grounds FROM recovery_resolution r "
    "WHERE r.workspace_id = %(workspace)s",
    "what became of decisions": "SELECT e.at, e.id::text, e.by_name, e.kind || ' a decision', "  # noqa: S608 constants of ours
    f"{CALL.format('r')}, e.grounds FROM recovery_resolutionevent e "
    "JOIN recovery_resolution r ON r.id = e.resolution_id "
    "WHERE e.workspace_id = %(workspace)s AND e.by_id IS NOT NULL",
    "evidence": "SELECT v.at, v.id::text, v.by_name, 'put evidence on file: ' || v.kind, "  # noqa: S608 constants of ours
    f"{CALL.format('v')}, v.message FROM ledger_evidence v "
    "WHERE v.workspace_id = %(workspace)s AND v.by_id IS NOT NULL",
    "disputes": "SELECT d.at, d.id::text, d.by_name, 'disputed a decision: ' || d.answer, "  # noqa: S608 constants of ours
    f"{CALL.format('d')}, d.grounds FROM recovery_dispute d WHERE d.workspace_id = %(workspace)s",
    # Served by `step_of_person`. A dispute has a row of its own.
    "incidents": "SELECT s.at, 'i' || s.id, coalesce(s.facts->>'by', ''), 'incident: ' || "  # noqa: S608 constants of ours
    "CASE s.rule WHEN 'confirmed' THEN 'looked at' ELSE s.rung END, "
    f"{_shown('incident', 's.incident_id')}, s.grounds FROM recovery_step s "
    "JOIN recovery_incident i ON i.id = s.incident_id WHERE i.workspace_id = %(workspace)s "
    "AND s.rule IN ('person', 'confirmed') AND s.rung <> 'disputed'",
    # Served by `event_of_operator`. What has a row of its own is listed from there.
    "calls": "SELECT e.at, e.call_id || '-' || e.seq, coalesce(u.username, e.actor_id), "  # noqa: S608 constants of ours
    f"'call: ' || e.kind, {CALL.format('e')}, coalesce(e.facts::jsonb->>'grounds', '') "
    "FROM ledger_event e LEFT JOIN auth_user u ON u.id::text = e.actor_id "
    "WHERE e.workspace_id = %(workspace)s AND e.actor = 'operator' "
    "AND e.kind NOT IN ('decided', 'taken_back', 'evidence_added', 'budget_granted', 'corrected') "
    "AND position('\"resolution\":' IN e.facts) = 0",
    "sessions": "SELECT s.at, 's' || s.id, s.by_name, 'session: ' || s.kind, "  # noqa: S608 constants of ours
    f"{_shown('session', 's.session_id')}, s.grounds FROM ledger_sessionchange s "
    "WHERE s.workspace_id = %(workspace)s",
    "switches": "SELECT s.at, 'w' || s.id, s.person_name, "
    "CASE WHEN s.\"on\" THEN 'switched on' ELSE 'switched off' END, t.name, s.grounds "
    "FROM ledger_switch s JOIN ledger_tool t ON t.id = s.tool_id "
    "WHERE s.workspace_id = %(workspace)s",
    "policies": "SELECT p.at, p.id::text, p.author_name, 'policy: version ' || p.number, t.name, "
    "p.grounds FROM ledger_policy p JOIN ledger_tool t ON t.id = p.tool_id "
    "WHERE p.workspace_id = %(workspace)s",
    "tools": "SELECT v.at, v.id::text, v.author_name, 'tool: version ' || v.number, t.name, "
    "v.grounds FROM ledger_toolversion v JOIN ledger_tool t ON t.id = v.tool_id "
    "WHERE v.workspace_id = %(workspace)s",
    "grants": "SELECT g.at, g.id::text, g.person_name, "  # noqa: S608 constants of ours
    "'granted ' || g.attempts || ' attempts to a ' || g.scope, coalesce("
    f"{CALL.format('g')}, {_shown('turn', 'g.turn_id')}, {_shown('session', 'g.session_id')}, "
    "g.tool), g.grounds FROM recovery_grant g WHERE g.workspace_id = %(workspace)s",
    "breakers": BREAKERS.format("tool"),
    "breakers of providers": BREAKERS.format("provider"),
    "bulk runs": "SELECT b.started_at, b.id::text, b.by_name, 'bulk run: ' || b.answer, "  # noqa: S608 constants of ours
    f"{_shown('bulk_run', 'b.id')}, b.grounds FROM recovery_bulkrun b "
    "WHERE b.workspace_id = %(workspace)s AND b.started_at IS NOT NULL",
    # A key made or revoked on the command line has no person; on the pages it has one, and grounds.
    "keys issued": "SELECT k.created_at, 'k' || k.id, coalesce(w.by_name, ''), 'key issued', "
    "'key ' || k.id, coalesce(w.grounds, 'for agent ' || a.name) FROM ledger_apikey k "
    "JOIN ledger_agent a ON a.id = k.agent_id LEFT JOIN dashboard_workspacechange w "
    "ON w.workspace_id = k.workspace_id AND w.what = 'key_made' AND w.about = k.id "
    "WHERE k.workspace_id = %(workspace)s",
    "keys revoked": "SELECT k.revoked_at, 'r' || k.id, coalesce(w.by_name, ''), 'key revoked', "
    "'key ' || k.id, coalesce(w.grounds, 'of agent ' || a.name) FROM ledger_apikey k "
    "JOIN ledger_agent a ON a.id = k.agent_id LEFT JOIN dashboard_workspacechange w "
    "ON w.workspace_id = k.workspace_id AND w.what = 'key_revoked' AND w.about = k.id "
    "WHERE k.workspace_id = %(workspace)s AND k.revoked_at IS NOT NULL",
    "people": "SELECT w.at, 'p' || w.id, w.by_name, 'people: ' || replace(w.what, '_', ' '), "
    "w.about, w.grounds FROM dashboard_workspacechange w "
    "WHERE w.workspace_id = %(workspace)s AND w.what NOT IN ('key_made', 'key_revoked')",
    "channels": "SELECT n.at, 'n' || n.id, n.by_name, "
    "'notifications: ' || replace(n.what, '_', ' '), n.about, n.grounds "
    "FROM notifications_channelchange n WHERE n.workspace_id = %(workspace)s",
    "the console": "SELECT d.at, d.id::text, d.person_name, d.deed, d.target, d.grounds "
    "FROM dashboard_deed d WHERE d.workspace_id = %(workspace)s",
}  # fmt: skip
NAMES = "(at, id, actor, deed, target, grounds)"
OF_TOOLS = frozenset({"switches", "policies", "tools", "grants", "breakers"})
"""The parts whose target is a tool by its name, where it is no id."""

NOUNS = {prefix: noun for noun, prefix in ids.KINDS.items()}
AN_ID = re.compile(r"([a-z]+)_([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Filters:
    """What is kept: a person by name, a part of the target, days from and to, both included."""

    actor: str = ""
    target: str = ""
    first: date | None = None
    last: date | None = None

    @property
    def is_any(self) -> bool:
        return self != Filters()

    def words(self) -> dict[str, str]:
        """As they stand in an address."""
        given = {"actor": self.actor, "target": self.target, "from": self.first, "to": self.last}
        return {name: str(value) for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class Line:
    """One deed, from one of the parts. `actor` is empty where nobody was signed in."""

    at: datetime
    id: str
    actor: str
    deed: str
    target: str
    grounds: str
    part: str

    @property
    def said(self) -> str:
        return spoken(self.deed)

    @property
    def noun(self) -> str:
        """What an id names; empty for a target that is a name."""
        found = AN_ID.fullmatch(self.target)
        return NOUNS.get(found[1], "") if found else ""

    @property
    def call_id(self) -> UUID | None:
        """The call that the deed is about, where it is about one."""
        return UUID(self.target[-32:]) if self.noun == "call" else None

    @property
    def about(self) -> str:
        """The target for a list: a name, or the kind of an id and its last digits."""
        return f"{spoken(self.noun)} …{self.target[-8:]}" if self.noun else self.target

    @property
    def address(self) -> str:
        """The page of the target, where it has one."""
        if self.noun in addresses.FOLDERS:
            return addresses.of(self.noun, UUID(self.target[-32:]))
        is_tool = self.part in OF_TOOLS and not self.noun
        return addresses.of_tool(self.target) if is_tool else ""


@dataclass(frozen=True, slots=True)
class Lines:
    """A page of them, newest first, and the cursor of the next."""

    lines: list[Line]
    more: str = ""


def filters_of(asked: Mapping[str, str]) -> Filters:
    """The filters of an address. Raises Invalid for what is no day, or a range that ends first."""
    first, last = _day("from", asked), _day("to", asked)
    if first and last and last < first:
        raise Invalid(detail=f"The range ends on {last}, before it begins on {first}. Swap them.")
    return Filters(
        asked.get("actor", "").strip()[:200],
        asked.get("target", "").strip()[:TARGET_CHARACTERS_MAX],
        first,
        last,
    )


def _day(name: str, asked: Mapping[str, str]) -> date | None:
    text = asked.get(name, "")
    return day(name, text) if text else None


def read(workspace_id: UUID, kept: Filters, cursor: str = "", limit: int = ROWS) -> Lines:
    """One page, newest first. Raises Invalid for the cursor of another list."""
    where, asked = _where(kept, cursor)
    asked |= {"workspace": workspace_id, "limit": limit + 1}
    # Each part is cut by itself: none of them is read beyond what a page can show.
    parts = " UNION ALL ".join(
        f"SELECT * FROM (SELECT *, '{name}' FROM ({part}) part {NAMES} {where} "  # noqa: S608 constants of this module
        "ORDER BY at DESC, id DESC LIMIT %(limit)s) cut"
        for name, part in PARTS.items()
    )
    sql = f"SELECT * FROM ({parts}) audit ORDER BY at DESC, id DESC LIMIT %(limit)s"  # noqa: S608 constants of this module
    found = [Line(*row) for row in reading.rows(sql, asked)]
    more = _after(found[limit - 1], kept) if len(found) > limit else ""
    return Lines(_masked(workspace_id, found[:limit]), more)


def _masked(workspace_id: UUID, lines: list[Line]) -> list[Line]:
    """The same lines: what somebody quoted of a call's secrets is masked in the grounds."""
    shown: list[Line] = []
    for at in range(0, len(lines), MASKED_AT_ONCE):
        part = lines[at : at + MASKED_AT_ONCE]
        about = {each.call_id for each in part if each.call_id}
        hidden = masks.of_calls(ToolCall.objects.filter(workspace=workspace_id, id__in=about))
        shown += [replace(each, grounds=_text(each, hidden)) for each in part]
    return shown


def _text(line: Line, hidden: Mapping[UUID, Hidden]) -> str:
    known = hidden.get(line.call_id) if line.call_id else None
    return known.text(line.grounds) if known else line.grounds


def _where(kept: Filters, cursor: str) -> tuple[str, dict[str, Any]]:
    terms, asked = ["true"], dict[str, Any]()
    if kept.actor:
        terms.append("lower(actor) = lower(%(actor)s)")
        asked["actor"] = kept.actor
    if kept.target:
        terms.append("position(lower(%(target)s) IN lower(target)) > 0")
        asked["target"] = kept.target
    if kept.first:
        terms.append("at >= %(first)s")
        asked["first"] = datetime.combine(kept.first, datetime.min.time(), UTC)
    if kept.last:
        terms.append("at < %(last)s")
        asked["last"] = datetime.combine(kept.last, datetime.min.time(), UTC) + timedelta(days=1)
    if cursor:
        terms.append("(at, id) < (%(at)s, %(id)s)")
        asked["at"], asked["id"] = cursors.read(
            cursor, kept.words(), datetime.fromisoformat, cursors.word
        )
    return f"WHERE {' AND '.join(terms)}", asked


def _after(line: Line, kept: Filters) -> str:
    return cursors.written((line.at.isoformat(), line.id), kept.words())
