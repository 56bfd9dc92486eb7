"""What the page of budgets shows: every scope that has spent anything, by the share used.

Bars and pips are drawings of the same numbers that stand beside them. Reads only.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import quote
from uuid import UUID

from dashboard import addresses, reading
from dashboard.templatetags.times import span
from ledger import ids
from ledger.models import ToolCall, Turn
from ledger.vocabulary import BudgetScope
from recovery import standings
from recovery.models import Grant
from recovery.standings import Standing

PIPS_MAX = 20
LISTED = 50
GRANTS_SHOWN = 50
ABOVE = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """One scope: its standing, its id as the API shows it, and the grants that count now.

    `turn_at` is where a turn stands on the page of its session.
    """

    standing: Standing
    id: str
    grants: list[Grant] = field(default_factory=list)
    turn_at: str = ""

    @property
    def percent(self) -> int:
        return round(self.standing.share * 100)

    @property
    def pips(self) -> str:
        """One mark for each repeat: spent, left, left and granted. Empty where there are many."""
        row = self.standing
        if row.limit > PIPS_MAX:
            return ""
        granted = min(row.granted, row.left)
        return "●" * min(row.spent, row.limit) + "○" * (row.left - granted) + "⊕" * granted

    @property
    def address(self) -> str:
        """The page of what the scope is, where it has one."""
        scope, key = self.standing.scope, self.id
        pages = {BudgetScope.TOOL: "/tools/", BudgetScope.CALL: "/calls/",
                 BudgetScope.SESSION: "/sessions/"}  # fmt: skip
        return f"{pages[scope]}{quote(key)}" if scope in pages else self.turn_at

    @property
    def anchor(self) -> str:
        """Where it stands on the page of budgets."""
        return f"budget-{self.standing.scope}-{self.id}"

    @property
    def is_spent(self) -> bool:
        return bool(self.standing.why_refused())

    @property
    def spent_in(self) -> str:
        """How long until a rolling window is full at this rate; empty where that says nothing."""
        seconds = self.standing.spent_in_about_s
        return span(timedelta(seconds=seconds)) if seconds else ""

    @property
    def short(self) -> str:
        """The id for a list: a tool's name, or the kind and the last digits."""
        if self.standing.scope is BudgetScope.TOOL:
            return self.id
        return f"{self.id.partition('_')[0]}_…{self.id[-8:]}"


@lru_cache(maxsize=8)
def fullest(workspace_id: UUID, now: datetime) -> list[Standing]:
    """As `standings.fullest`, bounded; a tile and a chart of one instant read it once."""
    with reading.bounded():
        return standings.fullest(workspace_id)


def rows(workspace_id: UUID, now: datetime, *, every: bool) -> list[Row]:
    """Calls, turns, sessions and tools, the fullest first; without `every` those above half."""
    kept = standings.listed(workspace_id, above=0.0 if every else ABOVE)[:LISTED]
    grants, turns = _grants(workspace_id, now), turns_of(kept)
    return [
        Row(
            each,
            id_ := named(each.scope, each.key),
            [one for one in grants if (one.scope, key_of(one)) == (each.scope, each.key)],
            turns.get(id_, ""),
        )
        for each in kept
    ]


def of_call(call: ToolCall) -> list[Row]:
    """The budgets of a call, from its own to its tool's, by one statement; its turn is at hand."""
    turn = call.turn
    at = addresses.of_turn(turn.session_id, turn.number) if turn else ""
    found = [standings.own(call), *standings.of_call(call).values()]
    return [Row(each, named(each.scope, each.key), turn_at=at) for each in found]


def turns_of(kept: list[Standing]) -> dict[str, str]:
    """The places of the turns among them, by their ids as the API shows them."""
    wanted = [ids.read("turn", each.key) for each in kept if each.scope is BudgetScope.TURN]
    rows = Turn.objects.filter(id__in=wanted).only("session_id", "number")
    return {ids.shown("turn", row.id): addresses.of_turn(row.session_id, row.number)
            for row in rows}  # fmt: skip


def named(scope: BudgetScope, key: str) -> str:
    """A scope's key as the API shows it."""
    return key if scope is BudgetScope.TOOL else ids.shown(str(scope), ids.read(str(scope), key))


def key_of(grant: Grant) -> str:
    """What a grant's scope is named by: a tool's name, or an id in hex."""
    found: Any = grant.call_id or grant.turn_id or grant.session_id
    return grant.tool or str(found.hex)


def _grants(workspace_id: UUID, now: datetime) -> list[Grant]:
    newest = Grant.objects.filter(workspace=workspace_id).order_by("-id")[:GRANTS_SHOWN]
    return [each for each in newest if each.until is None or each.until > now]


@dataclass(frozen=True, slots=True)
class GrantShown:
    """A grant with the id of what it was made to."""

    grant: Grant
    of: str


def grants(workspace_id: UUID) -> list[GrantShown]:
    """The newest grants, whether they still count or not."""
    newest = Grant.objects.filter(workspace=workspace_id).order_by("-id")[:10]
    return [GrantShown(each, named(each.scope, key_of(each))) for each in newest]
