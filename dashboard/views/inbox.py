"""The inbox: what waits for a person, the next of it, and the same rows again while one reads."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import deeds, inbox, live
from dashboard.people import Visit, page
from ledger import clock


@require_safe
@page
def index(request: Visit) -> HttpResponse:
    """Open incidents and holds, the longest overdue first."""
    asked = inbox.asked_of(request.GET)
    found = inbox.of(request.person, asked, after=request.GET.get("after", "")[:64])
    shown: dict[str, Any] = {
        "inbox": found,
        "asked": asked,
        "rows": found.rows,
        "groups": found.groups,
        "new": 0,
        "tag": "",
        "kinds": inbox.KIND_WORDS,
        "classes": inbox.CLASSES,
        "causes": inbox.CAUSES,
        "last": None if found.rows else inbox.last_resolved(request.person),
    }
    return render(request, "dashboard/inbox/index.html", shown)


@require_safe
@page
def rows(request: Visit) -> HttpResponse:
    """The rows that were drawn, in the same order, and how many came since."""
    asked = inbox.asked_of(request.GET)
    frozen = [each for each in request.GET.get("rows", "").split(",") if each]
    found, new = inbox.again(request.person, asked, frozen)
    again = inbox.Inbox(asked, _now(), found, len(found), 0, None)
    shown = {"inbox": again, "asked": asked, "groups": again.groups, "rows": found, "new": new}
    numbers = (request.get_full_path(), new, *(each.numbers for each in found), again.now.minute)
    return live.part(request, "dashboard/inbox/_rows.html", shown, numbers)


def _now() -> datetime:
    return clock.now()


@require_safe
@page
def next_one(request: Visit) -> HttpResponse:
    """Go to the first that nobody has taken."""
    asked = inbox.asked_of(request.GET)
    address = inbox.next_of(request.person, asked)
    if address is None:
        back = f"{reverse('inbox')}?{asked.query()}"
        return deeds.told(request, "Nothing here waits that nobody has taken.", back)
    return HttpResponseRedirect(address)
