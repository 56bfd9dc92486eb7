"""The inbox: what waits for a person, the next of it, and the same rows again while one reads."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard import curls, deeds, inbox, live, saved_views
from dashboard.people import Visit, page
from dashboard.views.incidents import SPANS, minutes_of
from ledger import clock, ids
from ledger.errors import LedgerError
from ledger.filters import moment
from recovery import asides, bulk, takings


@require_safe
@page
def index(request: Visit) -> HttpResponse:
    """Open incidents and holds, the longest overdue first."""
    asked, cursor = inbox.asked_of(request.GET), request.GET.get("cursor", "")[:1000]
    shown: dict[str, Any] = {
        "asked": asked,
        "page_name": "inbox",
        "spans": SPANS,
        "saved": saved_views.of(request.person, "inbox"),
    }
    try:
        found = inbox.of(request.person, asked, cursor=cursor)
    except LedgerError as refusal:
        now = clock.now()
        shown |= {"inbox": inbox.Inbox(asked, now, [], now), "refusal": refusal}
        return render(request, "dashboard/inbox/index.html", shown, status=refusal.http)
    shown |= {
        "inbox": found,
        "curls": curls.of_inbox(asked),
        "rows": found.rows,
        "groups": found.groups,
        "tag": "",
        "last": None if found.rows else inbox.last_resolved(request.person),
    }
    return render(request, "dashboard/inbox/index.html", shown)


@require_safe
@page
def rows(request: Visit) -> HttpResponse:
    """The rows that were drawn, in the same order, and how many came since."""
    asked = inbox.asked_of(request.GET)
    frozen = [each for each in request.GET.get("rows", "").split(",") if each]
    given = request.GET.get("as_of", "")
    as_of = moment("as_of", given) if given else clock.now()
    again = inbox.again(request.person, asked, frozen, as_of)
    shown = {"inbox": again, "asked": asked, "groups": again.groups, "rows": again.rows}
    numbers = (request.get_full_path(), again.new, *(each.numbers for each in again.rows),
               again.now.minute)  # fmt: skip
    return live.part(request, "dashboard/inbox/_rows.html", shown, numbers)


@require_safe
@page
def next_one(request: Visit) -> HttpResponse:
    """Go to the first that nobody has taken; with `at`, to the first after that row."""
    return _go(request, back=False)


@require_safe
@page
def previous_one(request: Visit) -> HttpResponse:
    """The same, backwards."""
    return _go(request, back=True)


def _go(request: Visit, *, back: bool) -> HttpResponse:
    asked, at = inbox.asked_of(request.GET), request.GET.get("at", "")[:64]
    address = inbox.next_of(request.person, asked, after=at, back=back)
    if address is None:
        said = "Nothing here waits that nobody has taken."
        return deeds.told(request, said, f"{reverse('inbox')}?{asked.query}")
    return HttpResponseRedirect(address)


@page
@require_POST
def selection(request: Visit) -> HttpResponse:
    """What is to be done with the selected rows: decide together, take or release, set aside."""
    named = list(dict.fromkeys(request.POST.getlist("incident")))[: bulk.ROWS_MAX]
    wanted = [ids.read("incident", each) for each in named]
    word = request.POST.get("deed", "")
    if word == "take" and _are_own(request, wanted):
        word = "release"
    if word not in DEEDS:
        query = urlencode([("incident", each) for each in named])
        return HttpResponseRedirect(f"{reverse('bulk_runs-new')}?{query}")
    back = f"{reverse('inbox')}?{inbox.asked_of(QueryDict(request.POST.get('back', ''))).query}"
    for id_ in wanted:
        DEEDS[word](request, id_)
    rows = f"{len(wanted)} row{'' if len(wanted) == 1 else 's'}"
    said = f"{rows}: {WORDS[word]}" if wanted else "No row was selected."
    return deeds.told(request, said, back)


def _are_own(request: Visit, wanted: list[UUID]) -> bool:
    """Whether this person has taken all of them."""
    taken = takings.of(wanted)
    return all(id_ in taken and taken[id_].by_id == request.person.id for id_ in wanted)


def _take(request: Visit, id_: UUID) -> None:
    takings.take(incident_id=id_, by=request.person)


def _release(request: Visit, id_: UUID) -> None:
    takings.release(incident_id=id_, by=request.person)


def _set_aside(request: Visit, id_: UUID) -> None:
    asides.set_aside(incident_id=id_, minutes=minutes_of(request), by=request.person)


DEEDS = {"take": _take, "release": _release, "aside": _set_aside}
WORDS = {
    "take": "taken, for ten minutes.",
    "release": "released.",
    "aside": "set aside. Each comes back by itself, or by Bring back on its own page.",
}
