"""Keeping the text that an agent is given in place of a result, with the event it comes with."""

from ledger.models import Notice, ToolCall
from ledger.notices import Told


def keep(
    call: ToolCall, told: Told, *, answer: str = "", earlier: str = "", correction: str = ""
) -> None:
    """Fix a text at the call's present event, in the caller's transaction, under its lock."""
    Notice.objects.create(
        call=call,
        workspace_id=call.workspace_id,
        seq=call.seq,
        kind=told.kind,
        template=told.template,
        version=told.version,
        text=told.text,
        sha256=told.sha256,
        answer=answer,
        earlier=earlier,
        correction=correction,
    )
    ToolCall.objects.filter(id=call.id).update(notice_seq=call.seq)
