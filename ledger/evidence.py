"""Evidence: what probes, late results, tools' errors and people brought. Only ever added."""

from typing import Any
from uuid import UUID

from ledger.calls import Reader
from ledger.errors import NotFound
from ledger.models import Evidence, ToolCall
from ledger.permissions import Person
from ledger.strictjson import Stored


def get(*, reader: Reader, evidence_id: UUID) -> Evidence:
    """A piece of evidence about a call that this reader may see. Raises NotFound."""
    rows = Evidence.objects.filter(id=evidence_id, call__in=reader.calls)
    found = rows.select_related("call", "attempt").first()
    if found is None:
        raise NotFound(noun="evidence")
    return found


def keep(
    call: ToolCall,
    *,
    kind: str,
    attempt_id: UUID,
    stored: Stored,
    media_type: str,
    finding: str = "",
    message: str = "",
    adoptable: bool = False,
) -> tuple[Evidence, bool]:
    """Keep a body as evidence, in the caller's transaction; False if the same was kept before."""
    return Evidence.objects.get_or_create(
        attempt_id=attempt_id,
        kind=kind,
        sha256=stored.sha256,
        finding=finding,
        defaults={
            "message": message[:8000],
            "adoptable": adoptable,
            **_body(call, stored, media_type),
        },
    )


def state(
    call: ToolCall,
    *,
    kind: str,
    finding: str,
    message: str,
    stored: Stored,
    media_type: str,
    by: Person,
    reference: str = "",
    attempt_id: UUID | None = None,
) -> Evidence:
    """Keep what a person found, in the caller's transaction; each statement is a row of its own."""
    return Evidence.objects.create(
        kind=kind,
        finding=finding,
        message=message,
        reference=reference,
        attempt_id=attempt_id,
        sha256=stored.sha256,
        by_id=by.id,
        by_name=by.name,
        **_body(call, stored, media_type),
    )


def _body(call: ToolCall, stored: Stored, media_type: str) -> dict[str, Any]:
    return {
        "call": call,
        "workspace_id": call.workspace_id,
        "media_type": media_type[:200] or "application/json",
        "body": stored.body,
        "size_bytes": stored.size_bytes,
        "truncated": stored.truncated,
        "why_not_json": stored.why_not_json[:300],
    }
