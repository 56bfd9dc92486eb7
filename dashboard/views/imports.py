"""Importing a conversation: tried first, then taken in; one import with its difference."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import deeds, imports, repairs, sessions
from dashboard.people import need, page
from dashboard.views.repairs import download, sentence_of
from ledger import clock, ids, masks
from ledger.calls import Reader
from ledger.errors import Invalid, LedgerError
from ledger.imports import copies, keeping, mending
from ledger.imports.receiving import Received
from ledger.models import Agent, Import
from ledger.permissions import Person, Right
from ledger.strictjson import NotStrict
from ledger.transcripts.profiles import profiles
from ledger.vocabulary import Actor
from recovery import imports as importing

LABEL_CHARACTERS_MAX = 200


@require_http_methods(["GET", "HEAD", "POST"])
@page
def new(request: HttpRequest) -> HttpResponse:
    """The form of an import; a POST tries it and keeps nothing, or takes it in."""
    person = request.person  # type: ignore[attr-defined]
    shown: dict[str, Any] = {"now": clock.now(), "agents": sessions.agents_of(person), "sent": None}
    shown |= repairs.choices() | {"typed": request.POST}
    if request.method != "POST":
        return render(request, "dashboard/imports/new.html", shown)
    need(person, Right.DECIDE)
    shown["sent"] = sent = repairs.sent(request)
    try:
        received = sent.received()
        if request.POST.get("deed") == "import":
            done = deeds.pressed(request, lambda: _taken(request, person, received))
            return deeds.told(request, done["sentence"], done["to"])
        mended = mending.mended(received)
    except (LedgerError, NotStrict) as refusal:
        shown["refusal"] = sentence_of(refusal)
        state = refusal.http if isinstance(refusal, LedgerError) else 422
        return render(request, "dashboard/imports/new.html", shown, status=state)
    shown |= {"report": repairs.report_of(mended.report), "made": mended.plan.counts(())}
    return render(request, "dashboard/imports/new.html", shown)


def _taken(request: HttpRequest, person: Person, received: Received) -> dict[str, Any]:
    agent = Agent.objects.filter(
        workspace=person.workspace_id, name=request.POST.get("agent", "")
    ).first()
    if agent is None:
        raise Invalid(detail="Choose the agent whose session it becomes. Nothing was imported.")
    label = request.POST.get("label", "").strip()[:LABEL_CHARACTERS_MAX]
    wanted = importing.Wanted(
        workspace_id=person.workspace_id,
        agent_id=agent.id,
        key=request.POST[deeds.KEY][:255],
        received=received,
        by=_by(person),
        binding={"label": label or f"Imported, {received.format}"},
    )
    row, is_new = importing.take(wanted)
    sentence = "Imported: it is a session now." if is_new else "This file was imported before."
    return {"sentence": sentence, "to": _address(row)}


def _by(person: Person) -> importing.By:
    return importing.By(actor=Actor.OPERATOR, id=str(person.id), name=person.name)


def _address(row: Import) -> str:
    return reverse("sessions-import", args=[ids.shown("import", row.id)])


@require_safe
@page
def detail(request: HttpRequest, import_id: str) -> HttpResponse:
    """One import: before, after, the difference, and the copies."""
    row = imports.get(request.person, import_id)  # type: ignore[attr-defined]
    shown = {"now": clock.now(), "page": imports.of(row), "profiles": sorted(profiles())}
    return render(request, "dashboard/imports/detail.html", shown)


@require_safe
@page
def original(request: HttpRequest, import_id: str) -> HttpResponse:
    """The entries as they were received, masked; the bytes are its agent's alone, by its key."""
    row = imports.get(request.person, import_id)  # type: ignore[attr-defined]
    found = masks.in_session(row.session, copies.received_of(row).transcript)
    return download(found, f"{ids.shown('import', row.id)}.json")


@require_safe
@page
def copy(request: HttpRequest, import_id: str) -> HttpResponse:
    """The repaired copy for a provider as a file, masked."""
    row = imports.get(request.person, import_id)  # type: ignore[attr-defined]
    found = copies.shown(row, request.GET.get("profile", ""))
    name = f"{found['import']}-{found['profile']}.json"
    return download(masks.in_session(row.session, found["transcript"]), name)


@page
@require_POST
def deed(request: HttpRequest, import_id: str, name: str) -> HttpResponse:
    """Revert the repair, take that back, or discard the import: until the session's next turn."""
    person = request.person  # type: ignore[attr-defined]
    need(person, Right.DECIDE)
    row = imports.get(person, import_id)
    done = deeds.pressed(request, lambda: {"sentence": _DEEDS[name](row, person)})
    return deeds.told(request, done["sentence"], _address(row))


def _revert(row: Import, person: Person) -> str:
    keeping.revert(reader=Reader(person.workspace_id), import_id=row.id)
    return "The repair is reverted: the original is shown in its place."


def _unrevert(row: Import, person: Person) -> str:
    keeping.unrevert(reader=Reader(person.workspace_id), import_id=row.id)
    return "The repaired copy is shown again."


def _discard(row: Import, person: Person) -> str:
    importing.discard(reader=Reader(person.workspace_id), import_id=row.id, by=_by(person))
    return "The import is discarded. What may have happened outside stays on its calls."


_DEEDS = {"reversion": _revert, "restoration": _unrevert, "discarding": _discard}
DEEDS = tuple(_DEEDS)
"""The last words of the addresses."""
