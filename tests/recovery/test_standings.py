"""How a scope stands in words and numbers: what decides, what is left, when a window is full."""

from typing import Any

import pytest

from ledger.vocabulary import BudgetScope
from recovery.standings import Standing

DAY_S, HOUR_S = 86400.0, 3600.0


def standing(**more: Any) -> Standing:
    fields: dict[str, Any] = {"scope": BudgetScope.SESSION, "key": "", "limit": 60, "granted": 0,
                              "spent": 2, "window_s": DAY_S}  # fmt: skip
    return Standing(**fields | more)


@pytest.mark.parametrize(
    ("spent", "oldest_s", "full_in_s"),
    [
        pytest.param(31, HOUR_S, 3480, id="thirty more in an hour, and 29 are left"),
        pytest.param(2, 60.0, 3480, id="one more in a minute"),
        pytest.param(2, HOUR_S, None, id="the oldest leaves the window before it is full"),
        pytest.param(59, DAY_S - 1, None, id="as many go as come"),
        pytest.param(1, 60.0, None, id="one repeat has no pace"),
        pytest.param(60, HOUR_S, None, id="it is full"),
        pytest.param(0, None, None, id="nothing is spent"),
    ],
)
def test_a_rolling_window_fills_only_at_a_pace_above_its_limit(
    spent: int, oldest_s: float | None, full_in_s: float | None
) -> None:
    assert standing(spent=spent, oldest_s=oldest_s).spent_in_about_s == full_in_s


def test_what_is_spent_for_life_is_full_at_no_pace() -> None:
    assert standing(window_s=None, oldest_s=60.0).spent_in_about_s is None


@pytest.mark.parametrize(
    ("spent", "seconds_spent", "remains"),
    [(2, 574.0, "26 s"), (2, 0.0, "10 repeats"), (11, 60.0, "1 repeat")],
)
def test_what_is_left_is_told_of_what_decides(
    spent: int, seconds_spent: float, remains: str
) -> None:
    found = standing(limit=12, spent=spent, seconds_limit=600.0, seconds_spent=seconds_spent)
    assert found.remains == remains
