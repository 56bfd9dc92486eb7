"""The overview: six figures, the charts, the oldest incidents; each part is read alone.

A part that the database does not answer in time says so in its own place; the rest is drawn.
"""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_safe

from dashboard import csvs, exports, leads, live
from dashboard.charts import CHARTS
from dashboard.counters import TILES
from dashboard.oldest import oldest
from dashboard.people import Visit, page
from ledger import clock
from ledger.models import ToolCall
from recovery.health import late_before

COUNTERS = {tile.name: tile for tile in TILES}
COUNTER, CHART, OLDEST = (
    f"dashboard/overview/_{part}.html" for part in ("counter", "chart", "oldest")
)


@require_safe
@page
def index(request: Visit) -> HttpResponse:
    """Everything that the overview shows of the person's workspace."""
    workspace_id, now = request.person.workspace_id, clock.now()
    shown: dict[str, Any] = {"now": now, "late_before": late_before(now)}
    if not ToolCall.objects.filter(workspace=workspace_id).exists():
        shown["api"] = request.build_absolute_uri("/api/v1/calls")
        return render(request, "dashboard/overview/empty.html", shown)
    shown |= {
        "tiles": [tile.facts(workspace_id, now) for tile in TILES],
        "charts": [chart.facts(workspace_id, now) for chart in CHARTS.values()],
        "inbox": leads.to("inbox"),
        "oldest": oldest(workspace_id),
    }
    return render(request, "dashboard/overview/index.html", shown)


@require_safe
@page
def part(request: Visit, name: str) -> HttpResponse:
    """One figure, one chart or the oldest incidents, asked for again every 15 seconds."""
    workspace_id, now = request.person.workspace_id, clock.now()
    if name in COUNTERS:
        template, facts = COUNTER, COUNTERS[name].facts(workspace_id, now)
    elif name in CHARTS:
        template, facts = CHART, CHARTS[name].facts(workspace_id, now)
    elif name == "oldest":
        template, facts = OLDEST, {"oldest": oldest(workspace_id), "inbox": leads.to("inbox")}
    else:
        raise Http404
    # Ages are shown in minutes: the tag changes with the figures, and once a minute.
    numbers = (facts, f"{now:%H:%M}")
    return live.part(
        request, template, facts | {"now": now, "late_before": late_before(now)}, numbers
    )


@require_GET
@page
def table(request: Visit, name: str) -> HttpResponse:
    """The table behind a chart as a CSV file; that somebody took it is audited."""
    if name not in CHARTS:
        raise Http404
    drawn = CHARTS[name].read(request.person.workspace_id, clock.now())
    lines = [[cell.text for cell in row] for row in drawn.rows]
    exports.noted(request.person, "a chart", target=name, grounds=f"{len(lines)} lines, no filter")
    return csvs.file(f"{name}.csv", drawn.columns, lines)
