"""Repairing a transcript that is pasted or chosen: nothing of it is stored."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard import repairs, sessions
from dashboard.people import page
from ledger import clock, ids
from ledger.errors import LedgerError
from ledger.models import Import, Session
from ledger.strictjson import NotStrict


@require_http_methods(["GET", "HEAD", "POST"])
@page
def transcript(request: HttpRequest) -> HttpResponse:
    """Mend a transcript for one provider, and say what was done."""
    return _repaired(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def of_session(request: HttpRequest, session_id: str) -> HttpResponse:
    """The same by what the ledger knows of a session; an imported one has its own page."""
    session = sessions.get(request.person, session_id)  # type: ignore[attr-defined]
    imported = Import.objects.defer("body").filter(session=session).first()
    if imported is not None and request.method != "POST":
        return redirect(reverse("sessions-import", args=[ids.shown("import", imported.id)]))
    return _repaired(request, session)


def _repaired(request: HttpRequest, session: Session | None) -> HttpResponse:
    shown: dict[str, Any] = {"now": clock.now(), "session": session, "sent": None}
    shown |= repairs.choices()
    if request.method != "POST":
        return render(request, "dashboard/transcripts/repair.html", shown)
    shown["sent"] = sent = repairs.sent(request)
    try:
        mended = repairs.mended(sent, session)
    except (LedgerError, NotStrict) as refusal:
        shown |= {"refusal": sentence_of(refusal)}
        state = refusal.http if isinstance(refusal, LedgerError) else 422
        return render(request, "dashboard/transcripts/repair.html", shown, status=state)
    if request.POST.get("deed") == "download" and mended.viewer is not None:
        return download(mended.copy, f"repaired-for-{mended.report.profile}.json")
    return render(request, "dashboard/transcripts/repair.html", shown | {"mended": mended})


def sentence_of(refusal: LedgerError | NotStrict) -> str:
    """What was refused, in a sentence, with its place where it has one."""
    if isinstance(refusal, NotStrict):
        at = f" It is at {refusal.pointer}." if refusal.pointer else ""
        return f"{refusal.sentence}{at}"
    return str(refusal)


def download(value: Any, name: str) -> HttpResponse:
    """A copy as a file; never shown by the browser, never kept by a cache."""
    return HttpResponse(
        json.dumps(value, ensure_ascii=False, indent=1),
        content_type="application/json",
        headers={
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="{name}"',
        },
    )
