"""Bulk runs: freeze a selection, look at it, start, stop, take back, try again, take the results
along as a file; each run has an address.
"""

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard import bulk_runs, csvs, curls, deeds, exports, inbox, live
from dashboard.people import Visit, page
from ledger import ids
from ledger.api.pages import page as page_of
from ledger.errors import Invalid, LedgerError
from ledger.vocabulary import ResolutionAnswer
from recovery import bulk, match_files
from recovery.bulk import FILTERS, Selection
from recovery.match_files import MatchFile
from recovery.models import BulkRun, Incident
from recovery.rulings import Wish

TAKEN_BACK = "The run was taken back from its page."


def index(request: Any) -> HttpResponse:
    """The runs, newest first; with POST, a new one is frozen."""
    view = _freeze if request.method == "POST" else _list
    return page(view)(request)


def _list(request: Visit) -> HttpResponse:
    rows = bulk_runs.rows_of(request.person)
    found, cursor = page_of(rows, filters={}, limit=50, cursor=request.GET.get("cursor", ""))
    shown = {
        "runs": bulk_runs.summaries(found),
        "cursor": cursor,
        "curls": curls.UNFILTERED["bulk-resolutions"],
    }
    return render(request, "dashboard/bulk_runs/index.html", shown)


@require_safe
@page
def new(request: Visit) -> HttpResponse:
    """The selection as it was made in the inbox, and the one deed for all of it.

    With `all`, every incident that the inbox's filters of this address keep now, row by row: what
    comes later is not meant.
    """
    if not request.GET.get("all"):
        return _form(request, request.GET)
    asked = inbox.asked_of(request.GET)
    given = QueryDict(mutable=True)
    found = inbox.matching(request.person, asked, bulk.ROWS_MAX)
    given.setlist("incident", [ids.shown("incident", each) for each in found])
    return _form(request, given)


def _form(request: Visit, given: QueryDict, refusal: LedgerError | None = None) -> HttpResponse:
    selection = _selection(given)
    rows = Incident.objects.filter(
        workspace=request.person.workspace_id, id__in=list(selection.incidents)
    )
    shown: dict[str, Any] = {
        "incidents": [ids.shown("incident", each) for each in selection.incidents],
        "selected": list(rows.select_related("call").order_by("id")[: bulk.ROWS_MAX]),
        "filters": [(name, value) for name, value in selection.filters.items() if value],
        "deeds": bulk_runs.deeds(),
        "answer": given.get("answer", ""),
        "grounds": given.get("grounds", ""),
        "column": given.get("column", ""),
        "refusal": refusal,
    }
    status = refusal.http if refusal else 200
    return render(request, "dashboard/bulk_runs/new.html", shown, status=status)


def _selection(given: QueryDict) -> Selection:
    named = dict.fromkeys(given.getlist("incident"))
    filters = {name: given.get(name, "")[:128] for name in FILTERS}
    return Selection(
        incidents=tuple(ids.read("incident", each) for each in named),
        filters={} if named else filters,
    )


def _freeze(request: Visit) -> HttpResponse:
    try:
        made = deeds.pressed(request, lambda: _frozen(request))
    except LedgerError as refusal:
        return _form(request, request.POST, refusal)
    return HttpResponseRedirect(reverse("bulk_runs-detail", args=[made["run"]]))


def _frozen(request: Visit) -> dict[str, Any]:
    answer, _, then = request.POST.get("answer", "").partition(":")
    grounds = request.POST.get("grounds", "").strip()
    if answer not in list(ResolutionAnswer):
        raise Invalid(detail="Choose one deed for all of these rows.")
    if not grounds or len(grounds) > 2000:
        raise Invalid(detail="Say in one sentence why; every row keeps these grounds.")
    run = bulk.freeze(
        selection=_selection(request.POST),
        wish=Wish(answer=ResolutionAnswer(answer), then=then, grounds=grounds),
        evidence={},
        by=request.person,
        export=_export(request),
    )
    return {"run": ids.shown("bulk_run", run.id)}


def _export(request: Visit) -> MatchFile | None:
    """The match file that was sent along, if any."""
    file = request.FILES.get("export")
    if file is None:
        return None
    body = file.read(match_files.BYTES_MAX + 1)
    return match_files.read(str(file.name), body, request.POST.get("column", "")[:200])


def _run(request: Visit, run_id: str) -> BulkRun:
    return bulk.get(run_id=ids.read("bulk_run", run_id), by=request.person)


@require_safe
@page
def detail(request: Visit, run_id: str) -> HttpResponse:
    """Eligibility before the start; then progress and a result per row."""
    return _shown(request, _run(request, run_id))


def _shown(request: Visit, row: BulkRun, refusal: LedgerError | None = None) -> HttpResponse:
    run = bulk_runs.of(row)
    told = bulk_runs.previewed(run) if run.may_start else []
    shown = {"run": run, "told": told, "refusal": refusal,
             "typed": request.POST.get("confirm", ""), "tag": ""}  # fmt: skip
    status = refusal.http if refusal else 200
    return render(request, "dashboard/bulk_runs/detail.html", shown, status=status)


@require_safe
@page
def rows(request: Visit, run_id: str) -> HttpResponse:
    """Progress, asked for again until nothing moves any more."""
    run = bulk_runs.of(_run(request, run_id))
    return live.part(
        request, "dashboard/bulk_runs/_rows.html", {"run": run}, (request.path, *run.numbers)
    )


@page
@require_POST
def run(request: Visit, run_id: str) -> HttpResponse:
    """Start."""
    row = _run(request, run_id)
    confirm = request.POST.get("confirm", "")[:300]

    def deed() -> dict[str, Any]:
        bulk.start(run_id=row.id, confirm=confirm, by=request.person)
        return {}

    return _pressed(request, row, deed, "Started. Each row is decided by itself.")


@page
@require_POST
def stop(request: Visit, run_id: str) -> HttpResponse:
    """Stop between rows."""
    row = _run(request, run_id)

    def deed() -> dict[str, Any]:
        bulk.stop(run_id=row.id, by=request.person)
        return {}

    return _pressed(request, row, deed, "Stopped. What was recorded stays; the rest is skipped.")


@page
@require_POST
def again(request: Visit, run_id: str) -> HttpResponse:
    """Freeze what failed as a new run, and go there."""
    row = _run(request, run_id)

    def deed() -> dict[str, Any]:
        return {"run": ids.shown("bulk_run", bulk.again(run_id=row.id, by=request.person).id)}

    try:
        made = deeds.pressed(request, deed)
    except LedgerError as refusal:
        return _shown(request, row, refusal)
    said = "Frozen anew: the rows that failed. Nothing is decided until you start."
    return deeds.told(request, said, reverse("bulk_runs-detail", args=[made["run"]]))


@page
@require_POST
def export(request: Visit, run_id: str) -> HttpResponse:
    """Every row with what became of it, as a CSV file in UTC; the file is audited."""
    run = bulk_runs.of(_run(request, run_id))
    exports.noted(request.person, "a bulk run", target=run.shown, grounds=f"{len(run.lines)} rows")
    return csvs.file(f"{run.shown}.csv", bulk_runs.COLUMNS, bulk_runs.results(run))


@page
@require_POST
def taking_back(request: Visit, run_id: str) -> HttpResponse:
    """Stop, and take back what is not carried out yet."""
    row = _run(request, run_id)
    grounds = request.POST.get("grounds", "").strip() or TAKEN_BACK
    try:
        counts = deeds.pressed(request, lambda: dict(
            bulk.take_back(run_id=row.id, grounds=grounds[:2000], by=request.person)))  # fmt: skip
    except LedgerError as refusal:
        return _shown(request, row, refusal)
    sentence = f"Taken back: {counts['taken_back']}. Too late: {counts['too_late']}."
    return deeds.told(request, sentence, reverse("bulk_runs-detail", args=[run_id]))


def _pressed(request: Visit, row: BulkRun, deed: Any, sentence: str) -> HttpResponse:
    try:
        deeds.pressed(request, deed)
    except LedgerError as refusal:
        row.refresh_from_db()
        return _shown(request, row, refusal)
    address = reverse("bulk_runs-detail", args=[ids.shown("bulk_run", row.id)])
    return deeds.told(request, sentence, address)
