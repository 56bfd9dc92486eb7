"""What settled calls rest on: the share on somebody's word is the figure of quality."""

from collections import Counter
from datetime import datetime, timedelta
from uuid import UUID

from dashboard import reading, standing
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
        rows = ToolCall.objects.filter(workspace=workspace_id).only("state", "settled_at")
        newest = rows.order_by("-id")[:LOOKED_AT]
        since = now - timedelta(days=DAYS)
        settled = [each for each in newest if each.settled_at and each.settled_at >= since]
        counted = Counter(standing.basis_of(settled).values())
    if not counted:
        return Drawn("No call was settled in the last 7 days.")
    total, on_word = counted.total(), counted["operator's word only"]
    shares = {word: counted[word] * 100 / total for word in BASES}
    return Drawn(
        f"{total} settled; {on_word} of them on somebody's word only.",
        ("Rests on", "Calls", "Share"),
        [[Cell(word), Cell(str(counted[word])), Cell(f"{shares[word]:.1f} %")] for word in BASES],
        bars([(SHORT.get(word, word), float(counted[word]),
               f"{counted[word]} ({shares[word]:.0f} %)") for word in BASES]),
        f"Among the newest {LOOKED_AT} calls of 7 days.",
    )  # fmt: skip
