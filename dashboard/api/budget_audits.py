"""The audit of budgets by tool and day: a page as JSON, or all of it as a file, which is audited.

It stands here and not with the other budgets because what people export is kept by the console.
"""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Router

from dashboard import exports
from ledger import clock, cursors
from ledger.api.auth import KeyOrLogin
from ledger.api.pages import check_limit
from ledger.errors import Invalid
from ledger.filters import day
from ledger.permissions import Person
from ledger.strictjson import is_identifier
from recovery import audits

router = Router(tags=["budgets"])
READ = KeyOrLogin("export:read")
FILES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}


@router.get("/audit", auth=READ)
def audit(
    request: HttpRequest,
    from_: str = Query("", alias="from"),  # type: ignore[type-arg]
    to: str = "",
    tool: str = "",
    format: str = "json",
    limit: int = 50,
    cursor: str = "",
) -> HttpResponseBase:
    """Budgets by tool and UTC day: attempts, repeats by rule, given back, refused, granted, time.

    `from` and `to` are days, both included; the last seven without them. `format` is `json`
    (pages), or `csv` or `jsonl` (a file of the whole range, written while it is read). A file
    that a person takes stands in the audit.
    """
    caller = request.auth  # type: ignore[attr-defined]
    workspace_id = caller.workspace_id
    if tool and not is_identifier(tool):
        raise Invalid(detail="tool is the name of a tool.")
    if format not in ("json", *FILES):
        raise Invalid(detail="format is json, csv or jsonl.")
    first, last = _range(from_, to)
    if format == "json":
        return _page(workspace_id, first, last, tool, limit, cursor)
    if isinstance(caller, Person):
        words = f"{first} to {last}, {f'tool {tool}' if tool else 'every tool'}, {format}"
        exports.noted(caller, "the budgets", target="budgets", grounds=words)
    return _file(workspace_id, first, last, tool, format)


def _range(from_: str, to: str) -> tuple[date, date]:
    last = day("to", to) if to else clock.now().astimezone(UTC).date()
    first = day("from", from_) if from_ else last - timedelta(days=6)
    if not 0 <= (last - first).days < audits.DAYS_MAX:
        raise Invalid(
            detail=f"The range goes from {first} to {last}; it must go forward and hold at most "
            f"{audits.DAYS_MAX} days."
        )
    return first, last


def _page(
    workspace_id: UUID, first: date, last: date, tool: str, limit: int, cursor: str
) -> HttpResponse:
    check_limit(limit)
    bound = {"from": first, "to": last, "tool": tool}
    begin, after = first, ""
    if cursor:
        begin, after = cursors.read(cursor, bound, date.fromisoformat, cursors.word)
        # A cursor is other people's text: one that was made up asks for no day before the range.
        begin = max(first, begin)
    rows = audits.rows(workspace_id=workspace_id, first=begin, last=last, tool=tool, after=after)
    found = list(islice(rows, limit + 1))
    more = _after(found[limit - 1], bound) if len(found) > limit else None
    return JsonResponse({"items": found[:limit], "next_cursor": more})


def _after(row: dict[str, Any], bound: dict[str, Any]) -> str:
    return cursors.written((row["day"], row["tool"]), bound)


def _file(workspace_id: UUID, first: date, last: date, tool: str, format: str) -> HttpResponseBase:
    written = _csv if format == "csv" else _jsonl
    head = _line(audits.COLUMNS) if format == "csv" else ""

    async def text() -> AsyncIterator[str]:
        yield head
        for number in range((last - first).days + 1):
            day = first + timedelta(days=number)
            rows = await sync_to_async(audits.day_of)(workspace_id=workspace_id, day=day, tool=tool)
            for line in written(rows):
                yield line

    answer = StreamingHttpResponse(text(), content_type=FILES[format])
    answer["Content-Disposition"] = f'attachment; filename="budgets-{first}-{last}.{format}"'
    answer["Cache-Control"] = "no-store"
    return answer


def _jsonl(rows: list[dict[str, Any]]) -> Iterator[str]:
    return (json.dumps(row) + "\n" for row in rows)


def _csv(rows: list[dict[str, Any]]) -> Iterator[str]:
    return (_line([audits.cell(row[name]) for name in audits.COLUMNS]) for row in rows)


def _line(cells: Any) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue()
