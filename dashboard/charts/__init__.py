"""The charts of the overview: a sentence, a picture made on the server, and its table.

Each chart reads one bounded statement into a table; the picture is drawn from that table alone,
so that both always say the same. Growing means adding a row to CHARTS.
"""

from dashboard.charts.ageing import ageing
from dashboard.charts.basis import basis
from dashboard.charts.chart import Chart
from dashboard.charts.flow import flow
from dashboard.charts.nearest import nearest
from dashboard.charts.repeats import repeats
from dashboard.charts.times import times

CHARTS: dict[str, Chart] = {
    each.name: each
    for each in (
        Chart("ageing", "Age of what is ambiguous", ageing),
        Chart("flow", "Opened and resolved per hour", flow),
        Chart("times", "Time to decide and to resolve", times),
        Chart("basis", "What settled calls rest on", basis),
        Chart("nearest", "Budgets nearest to spent", nearest),
        Chart("repeats", "Repeats prevented", repeats),
    )
}

__all__ = ["CHARTS", "Chart"]
