"""What I7 asks of the account of repeats: each repeat has its line, and no scope was overdrawn.

A scope is counted again as it stood at the instant of each line, with what had been given back
and granted by then. A person's repeat passes and counts (semantics, section 9).
"""

from ledger.scopes import LIMITS
from ledger.verification.shapes import Check
from ledger.vocabulary import BudgetScope

SAME = {
    BudgetScope.TURN: "{0}.turn_id = r.turn_id",
    BudgetScope.SESSION: "{0}.session_id = r.session_id",
    BudgetScope.TOOL: "{0}.workspace_id = r.workspace_id AND {0}.tool = r.tool",
}
# A grant that ended while a line was written may have been seen by it.
SLACK = "interval '5 s'"

LINES = Check(
    "SELECT c.id AS call_id, c.attempts_used, count(r.id) AS lines FROM call c LEFT JOIN repeat r "
    "ON r.call_id = c.id AND r.number <= c.attempts_used GROUP BY c.id, c.attempts_used "
    "HAVING count(r.id) <> greatest(c.attempts_used - 1, 0) AND NOT (count(r.id) = c.attempts_used "
    "AND EXISTS (SELECT FROM event e WHERE e.call_id = c.id AND e.kind = 'imported'))"
)
"""Every attempt after the first was reserved before it was claimed; of an imported call, each."""

ALLOWED = Check(
    "SELECT c.id AS call_id, c.attempts_allowed, coalesce(d.number, "
    "(p.document #>> '{retry,attempts}')::int) AS before_grants, coalesce(g.granted, 0) AS granted "
    "FROM call c JOIN ledger_policy p ON p.id = c.policy_id "
    "LEFT JOIN LATERAL (SELECT r.number, r.at FROM repeat r WHERE r.call_id = c.id "
    "AND r.granted_by_id IS NOT NULL ORDER BY r.number DESC LIMIT 1) d ON true "
    "LEFT JOIN LATERAL (SELECT sum(attempts) AS granted FROM recovery_grant g "
    "WHERE g.scope = 'call' AND g.call_id = c.id AND (g.at > d.at OR d.at IS NULL)) g ON true "
    "WHERE c.attempts_allowed <> coalesce(d.number, (p.document #>> '{retry,attempts}')::int) "
    "+ coalesce(g.granted, 0)"
)
"""What a call may spend is what its policy says, or a person's last decision, and the grants."""


def _not_overdrawn(scope: BudgetScope) -> Check:
    limit, same = LIMITS[scope], SAME[scope]
    rolling = ""
    if limit.window_s is not None:
        rolling = f"AND p.at > r.at - interval '{limit.window_s:g} seconds' "
    return Check(
        f"SELECT r.call_id, '{scope}' AS overdrawn, r.number, s.spent, g.granted FROM repeat r, "  # noqa: S608 constants of this module
        "LATERAL (SELECT count(*) AS spent FROM recovery_repeat p JOIN ledger_toolcall c "
        f"ON c.id = p.call_id WHERE {same.format('p')} AND p.at <= r.at {rolling}"
        "AND (c.settled_at <= r.at AND c.attempts_used < p.number AND c.effect <> 'possible') "
        "IS NOT TRUE) s, LATERAL (SELECT coalesce(sum(g.attempts), 0) AS granted "
        f"FROM recovery_grant g WHERE g.scope = '{scope}' AND {same.format('g')} AND g.at <= r.at "
        f"AND (g.until IS NULL OR g.until > r.at - {SLACK})) g "
        f"WHERE r.granted_by_id IS NULL AND s.spent > {limit.repeats} + g.granted"
    )


ACCOUNT: tuple[Check, ...] = (LINES, ALLOWED, *map(_not_overdrawn, LIMITS))
