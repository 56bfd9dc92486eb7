"""Saved views: all that a person may open, a new one, its name, its end."""

from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard import deeds, saved_views
from dashboard.people import Visit, page


def index(request: Any) -> HttpResponse:
    """The views, own ones first; with POST, a new one."""
    return page(_save if request.method == "POST" else _list)(request)


def _list(request: Visit) -> HttpResponse:
    shown = {"saved": saved_views.of(request.person)}
    return render(request, "dashboard/saved_views/index.html", shown)


def _save(request: Visit) -> HttpResponse:
    given = request.POST
    list_, query = given.get("page", ""), given.get("query", "")[:4000]

    def deed() -> dict[str, Any]:
        made = saved_views.save(
            person=request.person, page=list_, address=QueryDict(query),
            name=given.get("name", ""), shared=bool(given.get("shared")),
        )  # fmt: skip
        return {"address": f"{reverse(made.page)}?{made.query}"}

    made = deeds.pressed(request, deed)
    return deeds.told(request, "Saved. It stands above the list.", made["address"])


@page
@require_POST
def detail(request: Visit, view_id: int) -> HttpResponse:
    """Rename it, share it, keep it to oneself."""
    given = request.POST
    saved_views.change(
        person=request.person, view_id=view_id, name=given.get("name", ""),
        shared=bool(given.get("shared")),
    )  # fmt: skip
    return deeds.told(request, "Changed.", reverse("saved_views"))


@page
@require_POST
def deletion(request: Visit, view_id: int) -> HttpResponse:
    """End it."""
    saved_views.delete(person=request.person, view_id=view_id)
    return deeds.told(request, "Deleted. No call and no incident changed.", reverse("saved_views"))
