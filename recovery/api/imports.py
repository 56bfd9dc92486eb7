"""Imports: a conversation from elsewhere becomes a session, and all of it stays to be seen."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import ValidationError

from ledger import ids
from ledger.api import masks
from ledger.api.auth import KeyOrLogin, idempotency_key_of, reader_of
from ledger.api.intake import invalid
from ledger.api.pages import page
from ledger.api.replays import status_of
from ledger.api.schemas import PageOut, SessionIn
from ledger.api.shapes import instant
from ledger.errors import Invalid, NotFound
from ledger.imports import copies, keeping, mending, receiving
from ledger.imports.receiving import Received
from ledger.keys import Principal
from ledger.models import Agent, Import
from ledger.permissions import Right, roles_with
from ledger.transcripts.profiles import profiles
from ledger.vocabulary import Actor
from recovery import imports
from recovery.imports import By, Wanted

router = Router(tags=["imports"])
READ = KeyOrLogin("calls:read")
WRITE = KeyOrLogin("turns:write", *roles_with(Right.DECIDE))

FILES = ("application/json", "application/x-ndjson", "application/jsonl")
A_FILE = {
    "requestBody": {
        "required": True,
        "description": "The file itself, with its format in the address, or an object with the "
        "members `format`, `transcript` and perhaps `session` (its binding).",
        "content": {media_type: {"schema": {}} for media_type in FILES},
    }
}


def imported(row: Import, *, whole: bool = False) -> dict[str, Any]:
    """An import as the API shows it; `whole` with the report of its repair."""
    report = row.report["report"]
    since = keeping.turn_since(row)
    shown = {
        "id": ids.shown("import", row.id),
        "session": ids.shown("session", row.session_id),
        "format": row.format,
        "sha256": row.sha256,
        "counts": {"before": report["before"], "after": report["after"]},
        "made": row.report["made"],
        "profiles": sorted(profiles()),
        "at": instant(row.at),
        "reverted_at": instant(row.reverted_at),
        "discarded_at": instant(row.discarded_at),
        # Until the next turn it can be reverted, or discarded as a whole.
        "continued_by": since and ids.shown("turn", since.id),
    }
    return shown | ({"report": report} if whole else {})


@router.post("", auth=WRITE, response={201: dict, 200: dict}, openapi_extra=A_FILE)
def take_in(
    request: HttpRequest,
    response: HttpResponse,
    format: str | None = None,
    dry_run: bool = False,
    agent: str = "",
) -> tuple[int, dict[str, Any]]:
    """Import a conversation: it becomes a session, however broken it is, and its file is kept.

    The same file gives the same session. Results stand with their calls, unanswered calls are
    `interrupted` and go up the ladder, orphans stay in the report. `dry_run=true` gives the report
    alone and keeps nothing. A person names the `agent` whose session it becomes.
    """
    received = _received(request, format)
    if dry_run:
        return 200, _tried(received)
    key = idempotency_key_of(request.headers.get("Idempotency-Key"))
    if key is None:
        raise Invalid(detail="An import needs an Idempotency-Key, or dry_run=true.")
    caller = request.auth  # type: ignore[attr-defined]
    wanted = Wanted(
        workspace_id=caller.workspace_id,
        agent_id=_agent_id(caller, agent),
        key=key,
        received=received,
        by=_by(caller),
        binding=_binding(received),
    )
    row, new = imports.take(wanted)
    return status_of(response, new=new), imported(row, whole=True)


def _received(request: HttpRequest, format: str | None) -> Received:
    return receiving.received(
        request.body,
        content_type=request.headers.get("Content-Type", ""),
        content_encoding=request.headers.get("Content-Encoding", ""),
        format=format,
    )


def _tried(received: Received) -> dict[str, Any]:
    mended = mending.mended(received)
    return {
        "dry_run": True,
        "format": received.format,
        "sha256": received.sha256,
        "made": mended.plan.counts(()),
        "report": mended.report,
    }


def _by(caller: Any) -> By:
    if isinstance(caller, Principal):
        name = Agent.objects.get(id=caller.agent_id).name
        return By(actor=Actor.AGENT, id=caller.agent_id.hex, name=name)
    return By(actor=Actor.OPERATOR, id=str(caller.id), name=caller.name)


def _agent_id(caller: Any, name: str) -> Any:
    """The agent whose session it becomes: the key's own, or the one that a person names."""
    if isinstance(caller, Principal):
        return caller.agent_id
    found = Agent.objects.filter(workspace=caller.workspace_id, name=name).first()
    if found is None:
        raise NotFound(noun="agent")
    return found.id


def _binding(received: Received) -> dict[str, Any]:
    given = received.around.get("session", {})
    try:
        binding = SessionIn.model_validate(given).model_dump()
    except ValidationError as error:
        raise invalid(error) from None
    return binding | {"label": binding["label"] or f"Imported, {received.format}"}


@router.get("", auth=READ, response=PageOut)
def index(request: HttpRequest, limit: int = 50, cursor: str = "") -> dict[str, Any]:
    """List imports, newest first."""
    rows = keeping.of_reader(reader_of(request.auth))  # type: ignore[attr-defined]
    found, next_cursor = page(rows, filters={}, limit=limit, cursor=cursor)
    return {"items": [imported(row) for row in found], "next_cursor": next_cursor}


def _import(request: HttpRequest, import_id: str) -> Import:
    return keeping.get(
        reader=reader_of(request.auth),  # type: ignore[attr-defined]
        import_id=ids.read("import", import_id),
    )


@router.get("/{import_id}", auth=READ)
def detail(request: HttpRequest, import_id: str) -> dict[str, Any]:
    """One import: counts before and after, the report of its repair, and what was made of it."""
    return imported(_import(request, import_id), whole=True)


@router.get("/{import_id}/difference", auth=READ)
def difference(request: HttpRequest, import_id: str) -> dict[str, Any]:
    """The original and the repaired copy, entry by entry: kept, changed, dropped or added."""
    row = _import(request, import_id)
    found = copies.difference(row)
    items = masks.about_session(request.auth, row.session, found.items)  # type: ignore[attr-defined]
    return {"profile": found.profile, "counts": found.counts, "items": items}


@router.get("/{import_id}/original", auth=READ)
def original(request: HttpRequest, import_id: str) -> HttpResponse:
    """The transcript's bytes as they were received; for a login, its entries with masks."""
    row = _import(request, import_id)
    if not isinstance(request.auth, Principal):  # type: ignore[attr-defined]
        return _masked(request, row, copies.received_of(row).transcript)
    return HttpResponse(
        keeping.original(row),
        content_type="application/octet-stream",
        headers={
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="{ids.shown("import", row.id)}"',
            "ETag": f'"{row.sha256}"',
        },
    )


@router.get("/{import_id}/transcript", auth=READ)
def transcript(request: HttpRequest, import_id: str, profile: str = "") -> HttpResponse:
    """The repaired copy for a provider, its own format's where none is named, with the report.

    While the repair is reverted the original is given in its place.
    """
    row = _import(request, import_id)
    return _masked(request, row, copies.shown(row, profile))


def _masked(request: HttpRequest, row: Import, value: Any) -> HttpResponse:
    """A copy as its reader may see it."""
    shown = masks.about_session(request.auth, row.session, value)  # type: ignore[attr-defined]
    # Not a ninja dict: the order of members is part of what was kept or written.
    return HttpResponse(
        json.dumps(shown, ensure_ascii=False),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


@router.post("/{import_id}/reversion", auth=WRITE)
def revert(request: HttpRequest, import_id: str) -> dict[str, Any]:
    """Show the original instead of the repaired copy, until the session's next turn."""
    return imported(keeping.revert(**_named(request, import_id)))


@router.delete("/{import_id}/reversion", auth=WRITE)
def unrevert(request: HttpRequest, import_id: str) -> dict[str, Any]:
    """Show the repaired copy again."""
    return imported(keeping.unrevert(**_named(request, import_id)))


@router.post("/{import_id}/discarding", auth=WRITE)
def discard(request: HttpRequest, import_id: str) -> dict[str, Any]:
    """Discard the import as a whole, until the session's next turn.

    The session takes no calls any more, and the file may be imported anew. A call whose effect
    may have happened stays on its file: a person decides about it.
    """
    by = _by(request.auth)  # type: ignore[attr-defined]
    return imported(imports.discard(**_named(request, import_id), by=by))


def _named(request: HttpRequest, import_id: str) -> dict[str, Any]:
    reader = reader_of(request.auth)  # type: ignore[attr-defined]
    return {"reader": reader, "import_id": ids.read("import", import_id)}
