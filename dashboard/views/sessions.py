"""The pages of sessions: the list, one session as its transcript, what would be sent, the cuts."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from dashboard import curls, cuts, live, renderings, session_standing, sessions, transcripts
from dashboard.people import page
from dashboard.sessions import address_of
from ledger import clock
from ledger.numbers import whole


@require_safe
@page
def index(request: HttpRequest) -> HttpResponse:
    """The sessions of the workspace, newest first, by the filters of the address."""
    person = request.person  # type: ignore[attr-defined]
    found = sessions.listed(person, request.GET)
    shown: dict[str, Any] = {
        "now": clock.now(),
        "listed": found,
        "curls": curls.of_sessions(found),
        "views": sessions.VIEWS,
        "agents": sessions.agents_of(person),
        "latest": sessions.LATEST,
        "api": request.build_absolute_uri("/api/v1/sessions"),
    }
    return render(request, "dashboard/sessions/index.html", shown)


@require_safe
@page
def detail(request: HttpRequest, session_id: str) -> HttpResponse:
    """One session: its head, and the turns of one page with what the ledger knows of each call.

    `?turn=` names the page that holds a turn; `?unresolved=1` leads to the first unresolved call.
    """
    session = sessions.get(request.person, session_id)  # type: ignore[attr-defined]
    standing = session_standing.of(session)
    if "unresolved" in request.GET and standing.first is not None:
        first = standing.first
        return redirect(f"{address_of(session)}?turn={first.number}#{first.anchor}")
    shown = _head(standing) | {"pages": transcripts.of(session, whole(request.GET.get("turn")))}
    return render(request, "dashboard/sessions/detail.html", shown)


@require_safe
@page
def pairing(request: HttpRequest, session_id: str) -> HttpResponse:
    """Whether every provider would take a session: asked for behind its page, which it delays."""
    session = sessions.get(request.person, session_id)  # type: ignore[attr-defined]
    shown = {"session": session, "pairing": renderings.pairing(session)}
    return render(request, "dashboard/sessions/_pairing.html", shown)


@require_safe
@page
def standing(request: HttpRequest, session_id: str) -> HttpResponse:
    """The head of a session alone, for its live part."""
    session = sessions.get(request.person, session_id)  # type: ignore[attr-defined]
    found = session_standing.of(session)
    drawn = whole(request.GET.get("version"))
    shown = _head(found) | {"drawn": drawn}
    return live.part(request, "dashboard/sessions/_standing.html", shown, (*found.numbers, drawn))


def _head(found: session_standing.Standing) -> dict[str, Any]:
    version = found.session.version
    return {
        "now": clock.now(),
        "session": found.session,
        "standing": found,
        "drawn": version,
        "tag": live.tag_of(*found.numbers, version),
    }


@require_safe
@page
def rendering(request: HttpRequest, session_id: str) -> HttpResponse:
    """What would be sent to a provider: read-only, with the manifest of what each call is."""
    session = sessions.get(request.person, session_id)  # type: ignore[attr-defined]
    shown = {"session": session, "now": clock.now()} | renderings.of(session, request.GET)
    return render(request, "dashboard/sessions/rendering.html", shown)


@require_safe
@page
def cut_places(request: HttpRequest, session_id: str) -> HttpResponse:
    """Where a compaction may cut, and what it must carry over."""
    session = sessions.get(request.person, session_id)  # type: ignore[attr-defined]
    shown = {"session": session, "now": clock.now(), "found": cuts.of(session)}
    return render(request, "dashboard/sessions/cuts.html", shown)
