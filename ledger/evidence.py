"""Evidence: what a probe, a late result or a tool's own error brought. Only ever added."""

from uuid import UUID

from ledger.models import Evidence, ToolCall
from ledger.strictjson import Stored


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
            "call": call,
            "workspace_id": call.workspace_id,
            "media_type": media_type[:200] or "application/json",
            "body": stored.body,
            "size_bytes": stored.size_bytes,
            "truncated": stored.truncated,
            "why_not_json": stored.why_not_json[:300],
            "message": message[:8000],
            "adoptable": adoptable,
        },
    )
