"""Making a late result the result of its call, by rule or by a person (I13, I14)."""

from uuid import UUID

from ledger.models import Evidence, Result, ToolCall


def adopt(call: ToolCall, evidence_id: UUID) -> int:
    """Make a late result the call's result, with the next event; return its attempt's fence."""
    evidence = Evidence.objects.select_related("attempt").get(id=evidence_id)
    attempt = evidence.attempt
    assert attempt is not None  # noqa: S101 a late result always has its attempt
    Result.objects.create(
        call=call,
        workspace_id=call.workspace_id,
        fence=attempt.fence,
        event_seq=call.seq + 1,
        media_type=evidence.media_type,
        body=evidence.body,
        sha256=evidence.sha256,
        size_bytes=evidence.size_bytes,
        truncated=evidence.truncated,
        why_not_json=evidence.why_not_json,
    )
    return attempt.fence
