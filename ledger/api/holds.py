"""Holds: a person lets a held call run, or not."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from ledger import approvals, calls, ids
from ledger.api import shapes
from ledger.api.auth import Login
from ledger.api.schemas import CallOut, HoldAnswerIn
from ledger.calls import Fetchable, Reader
from ledger.permissions import Person

router = Router(tags=["calls"])


@router.post("/{call_id}/hold-release", auth=Login("approver"), response=CallOut)
def hold_release(request: HttpRequest, call_id: str, body: HoldAnswerIn) -> dict[str, Any]:
    """Let a held call run before what it waits for is known, or say no to it.

    The same answer twice is one; another answer is 409 `interrupt_answered`. A repeat of a side
    effect takes a login of the last 15 minutes, and `confirm`.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    id_ = ids.read("call", call_id)
    approvals.answer_hold(
        call_id=id_, answer=body.answer, grounds=body.grounds, by=person, confirm=body.confirm
    )
    call = calls.get(reader=Reader(person.workspace_id), call_id=id_)
    return shapes.call(Fetchable(call, None))
