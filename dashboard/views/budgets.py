"""Budgets: how much of each is used, who granted what, and granting more."""

from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard import budgets, curls, deeds, live, tools
from dashboard.people import need, page
from ledger import clock
from ledger.errors import Invalid, LedgerError
from ledger.numbers import whole
from ledger.permissions import Person, Right
from ledger.scopes import LIMITS
from ledger.vocabulary import BudgetScope
from recovery import grants
from recovery.grants import Wanted


@page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The scopes above half, or all with `?all=1`; `?scope=&id=` fills in the form."""
    return _shown(request, request.GET)


@page
@require_safe
def part(request: HttpRequest) -> HttpResponse:
    """The table alone, asked for again and again."""
    shown = _table(request)
    numbers = [(row.id, row.standing, row.spent_in) for row in shown["rows"]]
    return live.part(request, "dashboard/budgets/_table.html", shown, [numbers])


@page
@require_POST
def grant(request: HttpRequest) -> HttpResponse:
    """Add to one budget. Refused while a wider one is spent, which the sentence names."""
    person: Person = request.person  # type: ignore[attr-defined]
    need(person, Right.ADMINISTER)
    typed = request.POST

    def deed() -> dict[str, Any]:
        grants.grant(
            workspace_id=person.workspace_id,
            wanted=Wanted(
                scope=BudgetScope(typed.get("scope", "")),
                key=typed.get("id", "").strip(),
                attempts=_amount(typed.get("attempts", "")),
                seconds=float(_amount(typed.get("seconds", ""))),
                grounds=typed.get("grounds", ""),
                confirm=typed.get("confirm", "").strip(),
            ),
            person=get_user_model().objects.get(pk=person.id),
        )
        return {}

    if typed.get("scope") not in set(BudgetScope):
        return _shown(request, typed, mistake="Choose what is granted to.")
    try:
        deeds.pressed(request, deed)
    except LedgerError as refusal:
        confirm = refusal.facts.get("confirm", "")
        return _shown(request, typed, mistake=str(refusal), confirm=confirm, status=refusal.http)
    sentence = f"Granted to the {typed['scope']} {typed['id']:.80}. It makes no attempt by itself."
    return deeds.told(request, sentence, reverse("budgets"))


def _amount(text: str) -> int:
    """What was typed, 0 for nothing. Raises Invalid."""
    found = whole(text.strip() or "0")
    if found is None:
        raise Invalid(detail="Attempts and seconds are whole numbers.")
    return found


def _table(request: HttpRequest) -> dict[str, Any]:
    person: Person = request.person  # type: ignore[attr-defined]
    now, every = clock.now(), "all" in request.GET
    rows = budgets.rows(person.workspace_id, now, every=every)
    return {"rows": rows, "every": every, "now": now}


def _shown(
    request: HttpRequest,
    typed: Any,
    *,
    mistake: str = "",
    confirm: str = "",
    status: int = 422,
) -> HttpResponse:
    person: Person = request.person  # type: ignore[attr-defined]
    table = _table(request)
    shown = table | {
        "curls": curls.of_budgets(above=0.0 if table["every"] else budgets.ABOVE),
        "tag": "",
        "typed": typed,
        "mistake": mistake,
        "confirm": confirm,
        "scopes": list(BudgetScope),
        "limits": [(scope, limit) for scope, limit in LIMITS.items()],
        "grants": budgets.grants(person.workspace_id),
        "breakers": tools.breakers(person.workspace_id, table["now"]),
    }
    code = status if mistake else 200
    return render(request, "dashboard/budgets/index.html", shown, status=code)
