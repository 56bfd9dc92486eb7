"""The account of one call: why each attempt was allowed, what it cost, what it left (R49)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.models import Attempt, ToolCall
from ledger.vocabulary import BudgetScope, Effect
from recovery.models import Repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One attempt on the account. `use`: `reserved`, `claimed` or `given_back`.

    `cost` and `left` are repeats by scope; the first attempt costs none. `spent_s` is the time
    that it waited and ran, in seconds; `fence` is NULL until it is claimed.
    """

    number: int
    use: str
    rule: str
    cause: str
    grounds: str
    granted_by: str
    wait_s: float
    spent_s: float
    at: datetime | None
    fence: int | None
    cost: dict[str, int]
    left: dict[str, int]


def lines_of(call: ToolCall, *, now: datetime) -> list[Line]:
    """The attempts of a call in order, those that were only reserved last."""
    runs = list(
        Attempt.objects.filter(call=call, kind="run").exclude(outcome="released").order_by("fence")
    )
    repeats = {each.number: each for each in Repeat.objects.filter(call=call)}
    last = max([len(runs), *repeats])
    return [
        _line(call, number, repeats.get(number), runs[number - 1 : number], now)
        for number in range(1, last + 1)
    ]


def _line(
    call: ToolCall, number: int, repeat: Repeat | None, runs: list[Attempt], now: datetime
) -> Line:
    run = runs[0] if runs else None
    wait_s = repeat.wait_s if repeat else 0.0
    return Line(
        number=number,
        use=_use(call, run),
        rule=repeat.rule if repeat else "first",
        cause=str(repeat.cause) if repeat else "",
        grounds=repeat.grounds if repeat else "The first attempt is no repeat.",
        granted_by=repeat.granted_by_name if repeat else "",
        wait_s=wait_s,
        spent_s=wait_s + _run_s(run, now),
        at=repeat.at if repeat else run.claimed_at if run else None,
        fence=run.fence if run else None,
        cost=dict.fromkeys(_left(repeat), 1) if repeat else {},
        left=_left(repeat) if repeat else {},
    )


def _use(call: ToolCall, run: Attempt | None) -> str:
    if run is not None:
        return "claimed"
    gone = call.is_settled and call.effect is not Effect.POSSIBLE
    return "given_back" if gone else "reserved"


def _run_s(run: Attempt | None, now: datetime) -> float:
    if run is None:
        return 0.0
    return max(0.0, ((run.ended_at or now) - run.claimed_at).total_seconds())


def _left(repeat: Any) -> dict[str, int]:
    left = {str(scope): getattr(repeat, f"{scope}_left") for scope in BudgetScope}
    return {scope: number for scope, number in left.items() if number is not None}
