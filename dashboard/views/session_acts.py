"""Stopping a session, letting it go on, interrupting its turn: a page with grounds each."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from dashboard import deeds, sessions
from dashboard.people import need, page
from dashboard.session_acts import ACTS
from dashboard.sessions import address_of
from ledger import clock
from ledger.errors import Invalid, LedgerError
from ledger.models import Session
from ledger.permissions import Right

GROUNDS_CHARACTERS_MAX = 2_000


@require_http_methods(["GET", "HEAD", "POST"])
@page
def act(request: HttpRequest, session_id: str, name: str) -> HttpResponse:
    """What the act would do, and a form for the grounds; a POST does it."""
    session = sessions.get(request.person, session_id)  # type: ignore[attr-defined]
    if request.method != "POST":
        return _page(request, session, name)
    need(request.person, Right.DECIDE)  # type: ignore[attr-defined]
    try:
        done = deeds.pressed(request, lambda: {"sentence": _do(request, session, name)})
    except LedgerError as refusal:
        return _page(request, session, name, refusal)
    return deeds.told(request, done["sentence"], address_of(session))


def _do(request: HttpRequest, session: Session, name: str) -> str:
    grounds = request.POST.get("grounds", "")[:GROUNDS_CHARACTERS_MAX].strip()
    if not grounds:
        raise Invalid(detail="Every change needs grounds: say why in one sentence.")
    why_not = ACTS[name].why_not(session)
    if why_not:
        raise Invalid(detail=f"{why_not} Nothing was changed.")
    return ACTS[name].do(session, request.person, grounds)  # type: ignore[attr-defined]


def _page(
    request: HttpRequest, session: Session, name: str, refusal: LedgerError | None = None
) -> HttpResponse:
    chosen = ACTS[name]
    shown = {
        "session": session,
        "now": clock.now(),
        "chosen": chosen,
        "why_not": chosen.why_not(session),
        "foreseen": [(words, calls) for words, calls in chosen.foresee(session) if calls],
        "foresees": name != "resume",
        "grounds": request.POST.get("grounds", ""),
        "refusal": refusal,
    }
    state = refusal.http if refusal else 200
    return render(request, "dashboard/sessions/act.html", shown, status=state)
