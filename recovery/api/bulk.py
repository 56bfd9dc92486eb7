"""Bulk runs over HTTP: freeze, start, stop, take back, and every row's own outcome."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger import ids
from ledger.api.auth import Login
from ledger.api.pages import page
from ledger.api.schemas import PageOut
from ledger.api.shapes import instant
from ledger.permissions import Person
from ledger.vocabulary import ResolutionAnswer
from recovery import bulk
from recovery.api import intents
from recovery.api.schemas import BulkIn, BulkStartIn, TakingBackIn
from recovery.models import BulkRow, BulkRun
from recovery.rulings import Wish

router = Router(tags=["bulk resolutions"])
PERSON = Login()


def shape(run: BulkRun) -> dict[str, Any]:
    """A run, its counts and its rows in their order."""
    rows = list(run.rows.select_related("incident").order_by("place"))
    return _head(run) | {
        "eligible": _counted(rows, "eligibility"),
        "outcomes": _counted([row for row in rows if row.outcome], "outcome"),
        "rows": [_row(each) for each in rows],
    }


def _head(run: BulkRun) -> dict[str, Any]:
    return {
        "id": ids.shown("bulk_run", run.id),
        "answer": run.answer,
        "then": run.then or None,
        "grounds": run.grounds,
        "by": run.by_name,
        "level": run.level,
        "confirm": bulk.confirm_of(run) or None,
        "frozen_at": instant(run.frozen_at),
        "expires_at": instant(run.expires_at),
        "started_at": instant(run.started_at),
        "stopped_at": instant(run.stopped_at),
        "finished_at": instant(run.finished_at),
    }


def _counted(rows: list[BulkRow], name: str) -> dict[str, int]:
    values = [str(getattr(row, name)) for row in rows]
    return {value: values.count(value) for value in sorted(set(values))}


def _row(row: BulkRow) -> dict[str, Any]:
    return {
        "incident": ids.shown("incident", row.incident_id),
        "call": ids.shown("call", row.call_id),
        "decision_version": row.decision_version,
        "evidence": [ids.shown("evidence", each) for each in row.evidence_ids],
        "eligibility": row.eligibility,
        "detail": row.detail or None,
        "outcome": row.outcome or None,
        "done_at": instant(row.done_at),
    }


@router.get("", auth=PERSON, response=PageOut)
def index(request: HttpRequest, limit: int = 50, cursor: str = "") -> dict[str, Any]:
    """List the workspace's runs, newest first, without their rows."""
    person: Person = request.auth  # type: ignore[attr-defined]
    rows = BulkRun.objects.filter(workspace=person.workspace_id)
    found, next_cursor = page(rows, filters={}, limit=limit, cursor=cursor)
    return {"items": [_head(each) for each in found], "next_cursor": next_cursor}


@router.post("", auth=PERSON, response={201: dict})
def freeze(request: HttpRequest, body: BulkIn) -> HttpResponse:
    """Freeze the incidents meant, with their versions and whether each may run, for 15 minutes."""
    person: Person = request.auth  # type: ignore[attr-defined]
    selection = bulk.Selection(
        incidents=tuple(ids.read("incident", each) for each in body.incidents),
        filters=body.filter.model_dump(),
    )
    named = {ids.read("incident", id_): [ids.read("evidence", each) for each in pieces]
             for id_, pieces in body.evidence.items()}  # fmt: skip
    wish = Wish(answer=ResolutionAnswer(body.answer), then=body.then, grounds=body.grounds)
    return intents.once(
        request,
        lambda: shape(bulk.freeze(selection=selection, wish=wish, evidence=named, by=person)),
    )


def _run(run_id: str) -> UUID:
    return ids.read("bulk_run", run_id)


@router.get("/{run_id}", auth=PERSON, response=dict)
def detail(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """One run with the outcome of each row."""
    return shape(bulk.get(run_id=_run(run_id), by=request.auth))  # type: ignore[attr-defined]


@router.post("/{run_id}/run", auth=PERSON, response={202: dict})
def run(request: HttpRequest, run_id: str, body: BulkStartIn) -> HttpResponse:
    """Start a frozen run; its rows are decided one by one, and reported here."""
    person: Person = request.auth  # type: ignore[attr-defined]
    return intents.once(
        request,
        lambda: shape(bulk.start(run_id=_run(run_id), confirm=body.confirm, by=person)),
        status=202,
    )


@router.post("/{run_id}/stop", auth=PERSON, response={202: dict})
def stop(request: HttpRequest, run_id: str) -> HttpResponse:
    """Stop a run between rows. What is recorded stays; what waits is skipped."""
    person: Person = request.auth  # type: ignore[attr-defined]
    return intents.once(
        request, lambda: shape(bulk.stop(run_id=_run(run_id), by=person)), status=202
    )


@router.post("/{run_id}/again", auth=PERSON, response={201: dict})
def again(request: HttpRequest, run_id: str) -> HttpResponse:
    """Freeze the rows that failed as a new run with the same answer, grounds and evidence."""
    person: Person = request.auth  # type: ignore[attr-defined]
    return intents.once(request, lambda: shape(bulk.again(run_id=_run(run_id), by=person)))


@router.post("/{run_id}/taking-back", auth=PERSON, response={201: dict})
def taking_back(request: HttpRequest, run_id: str, body: TakingBackIn) -> HttpResponse:
    """Stop a run and take back what of it is not carried out yet; says how many rows that was."""
    person: Person = request.auth  # type: ignore[attr-defined]
    return intents.once(
        request,
        lambda: bulk.take_back(run_id=_run(run_id), grounds=body.grounds, by=person),
    )
