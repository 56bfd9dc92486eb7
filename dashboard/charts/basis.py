"""What settled calls rest on: the share on somebody's word is the figure of quality."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from dashboard import leads, reading, standing
from dashboard.charts.chart import Cell, Drawn, bars
from ledger.models import ToolCall

DAYS = 7
LOOKED_AT = 500
BASES = ("tool result", "handle", "probe", "operator with evidence", "operator's word only",
         "policy")  # fmt: skip
SHORT = {"operator with evidence": "with evidence", "operator's word only": "word only"}


def basis(workspace_id: UUID, now: datetime) -> Drawn:
    """The settled ones among the newest calls of seven days, by what each rests on."""
    with reading.bounded():
        rows = ToolCall.objects.filter(workspace=workspace_id)
        rows = rows.only("state", "settled_at", "recorded_at")
        newest = list(rows.order_by("-id")[: LOOKED_AT + 1])
        since = _since(newest, now)
        recorded = [each for each in newest if each.recorded_at >= since]
        settled = [each for each in recorded if each.settled_at]
        counted = Counter(standing.basis_of(settled).values())
    if not counted:
        return Drawn("No call of the last 7 days is settled.")
    total, on_word = counted.total(), counted["operator's word only"]
    shares = {word: counted[word] * 100 / total for word in BASES}
    lists = {word: leads.to("calls", basis=word, **{"from": leads.moment(since)})
             for word in BASES if counted[word]}  # fmt: skip
    return Drawn(
        f"{total} of {len(recorded)} calls settled ({total * 100 / len(recorded):.0f} %); "
        f"{on_word} of them on somebody's word only.",
        ("Rests on", "Calls", "Share"),
        [[Cell(word), Cell(str(counted[word]), lists.get(word, "")), Cell(f"{shares[word]:.1f} %")]
         for word in BASES],
        bars([(SHORT.get(word, word), float(counted[word]),
               f"{counted[word]} ({shares[word]:.0f} %)") for word in BASES],
             addresses=[lists.get(word, "") for word in BASES]),
        f"Among the newest {LOOKED_AT} calls of 7 days.",
    )  # fmt: skip


def _since(newest: Sequence[ToolCall], now: datetime) -> datetime:
    """From when on all calls are among the newest, so that a list can begin there too.

    In whole minutes: a chart in which nothing changed is not sent again.
    """
    week = now.replace(second=0, microsecond=0) - timedelta(days=DAYS)
    if len(newest) <= LOOKED_AT:
        return week
    first: datetime = newest[-1].recorded_at
    return max(week, first + timedelta(microseconds=1))
