"""What each scope may spend on repeats: data, read by recovery and by the invariants. No Django.

A repeat is an attempt after the first. It costs one in every scope that it lies in; the call's
own limit is the attempts of its policy. Source: semantics, section 9.
"""

from dataclasses import dataclass

from ledger.vocabulary import BudgetScope

MINUTE_S, DAY_S = 60.0, 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many repeats a scope has, within a rolling window (None: for life), and how many seconds.

    `seconds` bounds waiting and repeating together; None leaves time to the deadlines of the call.
    `granted_max` is the most that one grant may add.
    """

    repeats: int
    window_s: float | None = None
    seconds: float | None = None
    granted_max: int = 100
    granted_seconds_max: float = 0.0


LIMITS: dict[BudgetScope, Limit] = {
    BudgetScope.TURN: Limit(repeats=12, seconds=10 * MINUTE_S, granted_seconds_max=60 * MINUTE_S),
    BudgetScope.SESSION: Limit(repeats=60, window_s=DAY_S),
    BudgetScope.TOOL: Limit(repeats=100, window_s=10 * MINUTE_S, granted_max=1000),
}
"""The scopes that calls share, from narrow to wide: their order is the order of the locks."""

CALL_GRANTED_MAX = 20
"""The most attempts that one grant may add to a call: the cap of a policy (semantics, 2)."""
