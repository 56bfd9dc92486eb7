"""A hold: what is held, why, and a person's yes or no. An answer is good once, and expires."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard import calls, deeds
from dashboard.inbox import HOLDS
from dashboard.people import Visit, need, page
from ledger import approvals, clock, masks
from ledger.errors import LedgerError, NotFound
from ledger.models import Interrupt
from ledger.permissions import Right
from ledger.vocabulary import ASKS_PERSON, spoken

ANSWERED = {"approve": "The call may run: it is published anew.", "reject": "The call is rejected."}


@page
def detail(request: Visit, interrupt_id: str) -> HttpResponse:
    """The held call and the form that answers for it; with POST, the answer."""
    rows = Interrupt.objects.filter(workspace=request.person.workspace_id)
    rows = rows.select_related("call__agent", "call__policy", "call__tool_version", "waits_for")
    hold = rows.filter(id=interrupt_id[:255]).first()
    if hold is None:
        raise NotFound(noun="interrupt")
    if request.method != "POST":
        return _shown(request, hold)
    try:
        return _answered(request, hold)
    except LedgerError as refusal:
        hold.refresh_from_db()
        hold.call.refresh_from_db()
        return _shown(request, hold, refusal=refusal)


def _answered(request: Visit, hold: Interrupt) -> HttpResponse:
    need(request.person, Right.APPROVE)
    answer, grounds = request.POST.get("answer", ""), request.POST.get("grounds", "")[:2000]

    def deed() -> dict[str, Any]:
        approvals.answer_hold(
            call_id=hold.call_id,
            answer=answer,
            grounds=grounds,
            by=request.person,
            confirm=request.POST.get("confirm", ""),
        )
        return {"answer": answer}

    made = deeds.pressed(request, deed)
    return deeds.told(request, ANSWERED[made["answer"]], reverse("inbox-hold", args=[hold.id]))


def _shown(request: Visit, hold: Interrupt, refusal: LedgerError | None = None) -> HttpResponse:
    call, hidden = hold.call, masks.of(hold.call)
    confirm, may = approvals.confirm_of(call, hold), request.person.may(Right.APPROVE)
    shown = {
        "hold": hold,
        "call": call,
        "now": clock.now(),
        "about": HOLDS.get(hold.reason, spoken(hold.reason)),
        "asks_person": hold.reason in ASKS_PERSON,
        "refusal": refusal,
        "takes_login": bool(confirm) and may and not request.person.login_is_fresh,
        "typed": request.POST,
        "confirm": confirm,
        "arguments": calls.arguments_of(call, hidden),
        "hidden": hidden,
    }
    status = refusal.http if refusal else 200
    return render(request, "dashboard/interrupts/detail.html", shown, status=status)
