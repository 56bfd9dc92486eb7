"""What a session is bound to, and binding it anew: preview first, then one press."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from dashboard import bindings, deeds, sessions
from dashboard.people import need, page
from dashboard.sessions import address_of
from ledger import clock
from ledger.conditions import Seen
from ledger.errors import Invalid, LedgerError
from ledger.models import Session
from ledger.numbers import whole
from ledger.permissions import Right
from recovery import rebinds

CHARACTERS_MAX = 2_000


@require_http_methods(["GET", "HEAD", "POST"])
@page
def binding(request: HttpRequest, session_id: str) -> HttpResponse:
    """What a session is bound to; a POST previews a new binding, then binds it anew."""
    person = request.person  # type: ignore[attr-defined]
    session = sessions.get(person, session_id)
    if request.method != "POST":
        return _page(request, session)
    need(person, Right.DECIDE)
    if request.POST.get("deed") != "rebind":
        return _page(request, session, preview=request.POST.get("deed") == "preview")
    try:
        done = deeds.pressed(request, lambda: _rebound(request, session))
    except LedgerError as refusal:
        return _page(request, session, preview=True, refusal=refusal)
    return deeds.told(request, done["sentence"], f"{address_of(session)}/binding")


def _rebound(request: HttpRequest, session: Session) -> dict[str, Any]:
    typed = request.POST
    epoch = whole(typed.get("epoch"))
    if epoch is None:
        raise Invalid(detail="The form has lost the epoch that was looked at: load the page again.")
    row = rebinds.rebind(
        workspace_id=session.workspace_id,
        session_id=session.id,
        binding=bindings.binding_of(typed.dict()),
        grounds=typed.get("grounds", "")[:CHARACTERS_MAX],
        seen=Seen(version=epoch),
        by=request.person,  # type: ignore[attr-defined]
    )
    return {"sentence": f"Bound anew: epoch {row.epoch} holds. Who held the session is fenced."}


def _page(
    request: HttpRequest,
    session: Session,
    *,
    preview: bool = False,
    refusal: LedgerError | None = None,
) -> HttpResponse:
    typed = request.POST.dict() if request.method == "POST" else {}
    shown = {
        "session": session,
        "now": clock.now(),
        "page": bindings.of(session, typed, preview=preview),
        "refusal": refusal,
    }
    state = refusal.http if refusal else 200
    return render(request, "dashboard/bindings/detail.html", shown, status=state)
