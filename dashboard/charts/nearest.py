"""The budgets that are nearest to spent: turns, sessions and tools by the share used."""

from datetime import datetime
from urllib.parse import quote
from uuid import UUID

from dashboard import budgets, leads
from dashboard.budgets import Row, named
from dashboard.charts.chart import Cell, Drawn, bars

SHOWN = 5
WORD_MAX = 15


def nearest(workspace_id: UUID, now: datetime) -> Drawn:
    """The fullest first, each with what is spent of what may be."""
    found = budgets.fullest(workspace_id, now)
    if not found:
        return Drawn("No open turn, session or tool has repeated anything lately.")
    turns = budgets.turns_of(found[:SHOWN])
    rows = [Row(each, id_ := named(each.scope, each.key), turn_at=turns.get(id_, ""))
            for each in found[:SHOWN]]  # fmt: skip
    spent = sum(each.share >= 1 for each in found)
    return Drawn(
        f"{len(found)} repeated something lately; {spent} of them may not any more.",
        ("Budget", "Of", "Used", "Share"),
        [[Cell(row.id), Cell(str(row.standing.scope), row.address), Cell(row.standing.used),
          Cell(f"{row.percent} %")] for row in rows],
        bars([(_clipped(row.short), row.standing.share, row.standing.used) for row in rows],
             full=1.0,
             addresses=[f"{leads.to('budgets', all=1)}#{quote(row.anchor)}" for row in rows]),
        f"The {SHOWN} fullest." if len(found) > SHOWN else "",
    )  # fmt: skip


def _clipped(word: str) -> str:
    return word if len(word) <= WORD_MAX else f"{word[: WORD_MAX - 1]}…"
