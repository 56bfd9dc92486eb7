"""How a scope stands: what its calls have spent on repeats, what people granted, what is left.

Read from the account alone. A repeat that was never claimed costs nothing once its call settled
without a possible effect: it is given back (semantics, section 9). Nothing here locks or writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from ledger import versions
from ledger.models import ToolCall
from ledger.scopes import LIMITS
from ledger.vocabulary import BudgetScope

GIVEN_BACK = "(c.settled_at IS NOT NULL AND c.attempts_used < r.number AND c.effect <> 'possible')"
"""Whether repeat `r` of call `c` was never claimed and never will be."""

WITHIN = {
    BudgetScope.TURN: "{0}.turn_id = %(turn)s",
    BudgetScope.SESSION: "{0}.session_id = %(session)s",
    BudgetScope.TOOL: "{0}.workspace_id = %(workspace)s AND {0}.tool = %(tool)s",
}

# The statement's instant, since no index serves a comparison with clock_timestamp().
_SINCE = "AND r.at > statement_timestamp() - make_interval(secs => {})"

RUN = (
    "LEFT JOIN LATERAL (SELECT a.claimed_at, a.ended_at FROM ledger_attempt a "
    "WHERE a.call_id = r.call_id AND a.kind = 'run' AND a.outcome <> 'released' "
    "ORDER BY a.fence OFFSET r.number - 1 LIMIT 1) run ON true"
)
"""The attempt that used repeat `r`, if it was claimed."""

REPEATING_S = (
    "coalesce(extract(epoch FROM coalesce(run.ended_at, clock_timestamp()) - run.claimed_at), 0)"
)

OLDEST_S = "extract(epoch FROM statement_timestamp() - min(r.at))::float8"


def _spent_sql(scope: BudgetScope) -> str:
    limit = LIMITS[scope]
    bounded = limit.seconds is not None
    seconds = f"coalesce(sum(r.wait_s + {REPEATING_S}), 0)::float8" if bounded else "0::float8"
    since = _SINCE.format(limit.window_s) if limit.window_s else ""
    return (
        f"SELECT count(*), {seconds}, {OLDEST_S} FROM recovery_repeat r "  # noqa: S608 constants of this module
        f"JOIN ledger_toolcall c ON c.id = r.call_id {RUN if bounded else ''} "
        f"WHERE {WITHIN[scope].format('r')} AND NOT {GIVEN_BACK} {since}"
    )


def _granted_sql(scope: BudgetScope) -> str:
    return (
        "SELECT coalesce(sum(g.attempts), 0)::int, coalesce(sum(g.seconds), 0)::float8 "  # noqa: S608 constants of this module
        f"FROM recovery_grant g WHERE g.scope = '{scope}' AND {WITHIN[scope].format('g')} "
        "AND (g.until IS NULL OR g.until > statement_timestamp())"
    )


SQL = {
    scope: f"SELECT '{scope}', s.*, g.* FROM ({_spent_sql(scope)}) s, ({_granted_sql(scope)}) g"  # noqa: S608 constants of this module
    for scope in LIMITS
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One scope at one instant. `granted` is part of `limit`; seconds are None where unbounded.

    `window_s` is the rolling window in which repeats count, None for the scope's life; the oldest
    of those that count was made `oldest_s` ago.
    """

    scope: BudgetScope
    key: str
    limit: int
    granted: int
    spent: int
    window_s: float | None = None
    seconds_limit: float | None = None
    seconds_spent: float = 0.0
    oldest_s: float | None = field(default=None, compare=False, repr=False)

    @property
    def left(self) -> int:
        return max(0, self.limit - self.spent)

    @property
    def seconds_left(self) -> float | None:
        if self.seconds_limit is None:
            return None
        return max(0.0, self.seconds_limit - self.seconds_spent)

    @property
    def _of_repeats(self) -> float:
        return self.spent / self.limit if self.limit else 1.0

    @property
    def _of_time(self) -> float:
        return self.seconds_spent / self.seconds_limit if self.seconds_limit else 0.0

    @property
    def share(self) -> float:
        """How much is used, 0 to 1: of the repeats or of the time, whichever is more."""
        return min(1.0, max(self._of_repeats, self._of_time))

    @property
    def used(self) -> str:
        """What decides the share, in words."""
        if self._time_decides:
            return f"{self.seconds_spent:.0f} of {self.seconds_limit:g} s"
        return f"{self.spent} of {self.limit} repeats"

    @property
    def remains(self) -> str:
        """What is left of that, in words."""
        if self._time_decides:
            return f"{self.seconds_left:.0f} s"
        return f"{self.left} repeat{'' if self.left == 1 else 's'}"

    @property
    def _time_decides(self) -> bool:
        return self.seconds_limit is not None and self._of_time > self._of_repeats

    @property
    def spent_in_about_s(self) -> float | None:
        """When a rolling window is full at the pace since its oldest repeat, in seconds.

        None where that repeat leaves the window before: from then on as many go as come, and at
        this pace it never fills. One repeat has no pace.
        """
        if self.window_s is None or not self.oldest_s or self.spent < 2 or not self.left:
            return None
        full_in_s = self.left * self.oldest_s / (self.spent - 1)
        return round(full_in_s) if self.oldest_s + full_in_s <= self.window_s else None

    def why_refused(self, wait_s: float = 0.0) -> str:
        """The sentence that refuses one more repeat after this wait; empty where there is room."""
        if self.spent >= self.limit:
            return f"All {self.limit} repeats of this {self.scope} are spent."
        left_s = self.seconds_left
        if left_s is not None and (left_s <= 0 or wait_s > left_s):
            return (
                f"Of the {self.seconds_limit:g} s that this {self.scope} may wait and repeat, "
                f"{left_s:.0f} s are left."
            )
        return ""


def keys_of(call: ToolCall) -> dict[BudgetScope, str]:
    """The shared scopes that a call lies in, from narrow to wide, with what names each."""
    named = {
        BudgetScope.TURN: call.turn_id and call.turn_id.hex,
        BudgetScope.SESSION: call.session_id and call.session_id.hex,
        BudgetScope.TOOL: call.tool,
    }
    return {scope: key for scope, key in named.items() if key}


def of_call(call: ToolCall) -> dict[BudgetScope, Standing]:
    """How each shared scope of a call stands, from narrow to wide; one statement."""
    keys = keys_of(call)
    with connection.cursor() as cursor:
        sql = " UNION ALL ".join(SQL[scope] for scope in keys)
        cursor.execute(sql, _parameters(call.workspace_id, keys))
        found = {row[0]: row[1:] for row in cursor.fetchall()}
    return {scope: _standing(scope, key, *found[scope]) for scope, key in keys.items()}


def own(call: ToolCall) -> Standing:
    """The call's own attempts as a scope: its first attempt is no repeat."""
    allowed = call.attempts_allowed
    return Standing(
        scope=BudgetScope.CALL,
        key=call.id.hex,
        limit=max(0, allowed - 1),
        granted=max(0, allowed - versions.policy_of(call).retry.attempts),
        spent=max(0, call.attempts_used - 1),
    )


def read(scope: BudgetScope, workspace_id: UUID, key: str) -> Standing:
    """How one shared scope stands now; `key` is the id of a turn or session, or a tool's name."""
    with connection.cursor() as cursor:
        cursor.execute(SQL[scope], _parameters(workspace_id, {scope: key}))
        return _standing(scope, key, *cursor.fetchone()[1:])


def _standing(
    scope: BudgetScope, key: str, spent: int, seconds_spent: float, oldest_s: float | None,
    granted: int, granted_s: float,
) -> Standing:  # fmt: skip
    limit = LIMITS[scope]
    return Standing(
        scope=scope,
        key=key,
        limit=limit.repeats + granted,
        granted=granted,
        spent=spent,
        window_s=limit.window_s,
        seconds_limit=None if limit.seconds is None else limit.seconds + granted_s,
        seconds_spent=seconds_spent,
        oldest_s=oldest_s,
    )


def _parameters(workspace_id: UUID, keys: Mapping[BudgetScope, str]) -> Mapping[str, Any]:
    named = {str(scope): key if scope is BudgetScope.TOOL else UUID(key)
             for scope, key in keys.items()}  # fmt: skip
    return {"workspace": workspace_id, **named}


_BUSY = {
    BudgetScope.TURN: "SELECT r.turn_id::text FROM recovery_repeat r JOIN ledger_turn t "
    "ON t.id = r.turn_id WHERE r.workspace_id = %(workspace)s AND t.closed_at IS NULL ",
    BudgetScope.SESSION: "SELECT r.session_id::text FROM recovery_repeat r "
    "WHERE r.workspace_id = %(workspace)s AND r.session_id IS NOT NULL "
    "AND r.at > statement_timestamp() - interval '1 day' ",
    BudgetScope.TOOL: "SELECT r.tool FROM recovery_repeat r WHERE r.workspace_id = %(workspace)s "
    "AND r.at > statement_timestamp() - interval '10 minutes' ",
}
"""The scopes that have spent anything that still counts; `LISTED` of each, the busiest first."""

LISTED = 100
CALLS_LISTED = 50


KEYED = {"%(turn)s": "k.key::uuid", "%(session)s": "k.key::uuid", "%(tool)s": "k.key"}
"""What names a scope where many are read by one statement."""


def _many_sql(scope: BudgetScope) -> str:
    sql = (
        "SELECT k.key, s.*, g.* FROM unnest(%(keys)s::text[]) k(key), "  # noqa: S608 constants of this module
        f"LATERAL ({_spent_sql(scope)}) s, LATERAL ({_granted_sql(scope)}) g"
    )
    for named, column in KEYED.items():
        sql = sql.replace(named, column)
    return sql


MANY_SQL = {scope: _many_sql(scope) for scope in LIMITS}


def read_many(scope: BudgetScope, workspace_id: UUID, keys: Sequence[str]) -> list[Standing]:
    """How many scopes of one kind stand now, by one statement, in the order of their keys."""
    if not keys:
        return []
    with connection.cursor() as cursor:
        cursor.execute(MANY_SQL[scope], {"workspace": workspace_id, "keys": list(keys)})
        found = {row[0]: row[1:] for row in cursor.fetchall()}
    return [_standing(scope, key, *found[key]) for key in keys]


def fullest(workspace_id: UUID) -> list[Standing]:
    """The shared scopes that have spent anything, by the share that is used, the fullest first.

    Two statements a scope, however many there are.
    """
    found: list[Standing] = []
    for scope, sql in _BUSY.items():
        with connection.cursor() as cursor:
            cursor.execute(
                f"{sql} GROUP BY 1 ORDER BY count(*) DESC LIMIT {LISTED}",
                {"workspace": workspace_id},
            )
            keys = [row[0] for row in cursor.fetchall()]
        found += read_many(scope, workspace_id, keys)
    return sorted(found, key=lambda each: each.share, reverse=True)


def listed(workspace_id: UUID, *, above: float = 0.0) -> list[Standing]:
    """Every scope that has spent at least this share, single calls too, the fullest first."""
    found = [*fullest(workspace_id), *_calls(workspace_id)]
    kept = [each for each in found if each.share >= above]
    return sorted(kept, key=lambda each: each.share, reverse=True)


def _calls(workspace_id: UUID) -> list[Standing]:
    """The open calls that have repeated, the most attempts first."""
    rows = ToolCall.objects.open().filter(workspace=workspace_id, attempts_used__gt=1)
    found = list(rows.order_by("-attempts_used", "-id")[:CALLS_LISTED])
    versions.read([(each.tool_version_id, each.policy_id) for each in found])
    return [own(each) for each in found]
