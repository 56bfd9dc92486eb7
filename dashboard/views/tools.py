"""Tools: what is trusted and how it goes; the switch, breakers, and policies tried and saved."""

import json
from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import curls, deeds, policies, tools
from dashboard.people import how_many_hold, need, page
from dashboard.policies import Draft
from ledger import clock, ids, registry
from ledger.conditions import Seen
from ledger.errors import LedgerError, NotFound, VersionConflict
from ledger.models import Policy, Tool, ToolCall
from ledger.numbers import whole
from ledger.permissions import Person, Right
from ledger.registry import Author
from ledger.vocabulary import BreakerState
from recovery import breakers, histories, rehearsals
from recovery.advice import Surroundings
from recovery.models import Trial
from recovery.refusals import PolicyUnconfirmed
from recovery.trials import Column

OPEN_COUNTED = 1_000
WINDOW = f"{tools.WINDOW:,}".replace(",", "\N{NO-BREAK SPACE}")


@page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Every tool: class beside hints, time-outs, rates, breaker and switch."""
    rows = tools.rows(_person(request).workspace_id)
    shown = {"rows": rows, "times": tools.TIMES, "window": WINDOW, "now": clock.now()}
    shown["curls"] = curls.UNFILTERED["tools"]
    return render(request, "dashboard/tools/index.html", shown)


@page
@require_safe
def detail(request: HttpRequest, name: str) -> HttpResponse:
    """One tool."""
    return _detail(request, name)


def _detail(
    request: HttpRequest, name: str, *, refusal: LedgerError | None = None, form: str = ""
) -> HttpResponse:
    workspace_id = _person(request).workspace_id
    tool = rehearsals.tool_of(workspace_id, name)
    [row] = tools.rows(workspace_id, tool.name)
    now = clock.now()
    shown = tools.detail(workspace_id, row, now) | {"now": now, "window": WINDOW}
    shown |= {"refusal": refusal, "refused_form": form, "typed": request.POST.get("grounds", "")}
    code = refusal.http if refusal else 200
    return render(request, "dashboard/tools/detail.html", shown, status=code)


@page
@require_POST
def switch(request: HttpRequest, name: str) -> HttpResponse:
    """Switch a tool off or on, on grounds."""
    person = _person(request)
    need(person, Right.ADMINISTER)
    rehearsals.tool_of(person.workspace_id, name)
    on = request.POST.get("on") == "yes"
    by = Author(name=person.name, grounds=request.POST.get("grounds", ""), person_id=person.id)

    def deed() -> dict[str, Any]:
        registry.switch(workspace_id=person.workspace_id, tool_name=name, on=on, by=by)
        return {"on": on}

    try:
        deeds.pressed(request, deed)
    except LedgerError as refusal:
        return _detail(request, name, refusal=refusal, form="switch")
    done = "on again. Waiting calls begin" if on else "off. No new attempt begins"
    return deeds.told(request, f"{name} is switched {done}.", reverse("tools-detail", args=[name]))


@page
@require_POST
def breaker(request: HttpRequest, breaker_id: str) -> HttpResponse:
    """Open or close a breaker by hand, on grounds; back to where the form stood."""
    person = _person(request)
    need(person, Right.DECIDE)
    word = request.POST.get("state", "")
    if word not in set(BreakerState):
        raise NotFound(noun="breaker")

    def deed() -> dict[str, Any]:
        row = breakers.put(
            workspace_id=person.workspace_id,
            breaker_id=ids.read("breaker", breaker_id),
            state=BreakerState(word),
            grounds=request.POST.get("grounds", ""),
            person=get_user_model().objects.get(pk=person.id),
        )
        return {"kind": str(row.kind), "name": row.name}

    done = deeds.pressed(request, deed)
    to = reverse("tools-detail", args=[done["name"]]) if done["kind"] == "tool" else "/budgets"
    return deeds.told(request, f"The breaker of {done['name']} is {word}.", to)


# The policy


@page
@require_http_methods(["GET", "HEAD", "POST"])
def policy(request: HttpRequest, name: str) -> HttpResponse:
    """The editor: look, check, try on history, save. Only saving changes anything."""
    tool = rehearsals.tool_of(_person(request).workspace_id, name)
    if request.method != "POST":
        return _editor(request, tool, policies.of_document(_version(tool, request).whole))
    draft = _draft(request)
    act = {"try": _try, "save": _save}.get(request.POST.get("do", ""), _editor)
    return act(request, tool, draft)


@page
@require_POST
def policy_check(request: HttpRequest, name: str) -> HttpResponse:
    """The linter's part of the page, asked for at every change of the form."""
    tool = rehearsals.tool_of(_person(request).workspace_id, name)
    shown = _judged(_person(request), tool, _active(tool), _draft(request))
    return render(request, "dashboard/tools/_judged.html", shown)


def _try(request: HttpRequest, tool: Tool, draft: Draft) -> HttpResponse:
    need(_person(request), Right.DECIDE)
    if not policies.may_be_saved(draft, tool):
        return _editor(request, tool, draft, status=422)
    trial = rehearsals.attempt(
        person=_person(request), tool_name=tool.name, document=draft.document
    )
    return _editor(request, tool, draft, trial=trial)


def _save(request: HttpRequest, tool: Tool, draft: Draft) -> HttpResponse:
    person = _person(request)
    need(person, Right.ADMINISTER)
    if not policies.may_be_saved(draft, tool):
        return _editor(request, tool, draft, status=422)

    def deed() -> dict[str, Any]:
        saved, _ = rehearsals.save(
            person=person,
            tool_name=tool.name,
            document=draft.document,
            grounds=request.POST.get("grounds", ""),
            seen=Seen(version=whole(request.POST.get("version", ""))),
            confirm=request.POST.get("confirm", "").strip(),
        )
        return {"number": saved.number}

    try:
        number = deeds.pressed(request, deed)["number"]
    except VersionConflict as conflict:
        return _editor(request, tool, draft, refusal=conflict, status=409)
    except PolicyUnconfirmed as refusal:
        # The refusal took the trial back with it; what it counted is shown by a kept one.
        trial = rehearsals.attempt(person=person, tool_name=tool.name, document=draft.document)
        return _editor(request, tool, draft, trial=trial, refusal=refusal, status=422)
    except LedgerError as refusal:
        return _editor(request, tool, draft, refusal=refusal, status=refusal.http)
    sentence = f"Saved as version {number}. It applies to new calls; open calls keep theirs."
    return deeds.told(request, sentence, reverse("tools-detail", args=[tool.name]))


def _editor(
    request: HttpRequest,
    tool: Tool,
    draft: Draft,
    *,
    trial: Trial | None = None,
    refusal: LedgerError | None = None,
    status: int = 200,
) -> HttpResponse:
    person, active = _person(request), _active(tool)
    looked_at = whole(request.POST.get("version", "")) or active.number
    is_stale = looked_at != active.number
    shown = {
        "tool": tool,
        "active": active,
        "groups": policies.groups(draft, active.whole),
        "text": request.POST.get("text") or json.dumps(_told(draft, active), indent=2),
        "as_text": "text" in request.POST,
        "grounds": request.POST.get("grounds") or _grounds(request),
        "refusal": refusal,
        "conflict": policies.conflict(*_both(tool, looked_at, active), draft) if is_stale else [],
        "looked_at": looked_at,
        "open_calls": _open_calls(tool),
        "trial": trial,
        "columns": _columns(trial) if trial else [],
        "confirm": rehearsals.confirmation(trial) if trial else "",
        "loosens": rehearsals.loosened(trial) if trial else [],
        "row": tools.rows(person.workspace_id, tool.name)[0],
        "now": clock.now(),
    }
    shown |= _judged(person, tool, active, draft)
    return render(request, "dashboard/tools/policy.html", shown, status=status)


def _judged(person: Person, tool: Tool, active: Policy, draft: Draft) -> dict[str, Any]:
    """What the linter says, the schedule, and what differs from the active version."""
    after = draft.policy.to_json() if draft.policy else active.whole
    found = policies.findings(draft, _around(person, tool))
    return {
        "tool": tool,
        "active": active,
        "findings": found,
        "errors": sum(each.level == "error" for each in found),
        "judged": policies.in_short(found),
        "schedule": policies.schedule(draft.policy) if draft.policy else None,
        "differences": policies.differences(active.whole, after),
    }


def _around(person: Person, tool: Tool) -> Surroundings:
    version = tool.versions.get(number=tool.version)
    return Surroundings(
        annotations=version.annotations,
        input_schema=version.input_schema,
        gives_handles=version.handles,
        p99_s=histories.measured_s(tool),
        approvers=how_many_hold(person, Right.APPROVE),
    )


COLUMNS: tuple[tuple[Column, str, str], ...] = (
    (Column.REPEATED, "would have repeated an effect that had happened", "level 4"),
    (Column.RETRIES, "would repeat by itself", "was held or ended"),
    (Column.ASKS_PERSON, "would wait for a person", "went on by itself"),
    (Column.CUT_EARLIER, "would be cut off earlier", "measured length beside each"),
    (Column.CUT_LATER, "would be left longer", "was cut off"),
    (Column.SPENT, "would have spent its budget", "was repeated"),
    (Column.SETTLES, "would be settled in another way", ""),
    (Column.SAME, "the same", ""),
    (Column.CANNOT_SAY, "cannot say", "the ledger lacks what the rule needs"),
)


def _columns(trial: Trial) -> list[dict[str, Any]]:
    """Each column with its number and the calls in it."""
    return [
        {
            "word": column,
            "title": title,
            "note": note,
            "count": trial.counts[column],
            "calls": [
                {"id": f"call_{call}", "tail": call[-8:], "sentence": sentence}
                for word, call, sentence, _ in trial.rows
                if word == column
            ],
        }
        for column, title, note in COLUMNS
    ]


def _draft(request: HttpRequest) -> Draft:
    if "text" in request.POST:
        return policies.of_text(request.POST["text"])
    return policies.of_form(request.POST)


def _told(draft: Draft, active: Policy) -> dict[str, Any]:
    return draft.policy.to_json() if draft.policy else draft.document or active.whole


def _active(tool: Tool) -> Policy:
    return tool.policies.get(number=tool.policy_version)


def _version(tool: Tool, request: HttpRequest) -> Policy:
    """The version that the editor starts from: an older one to roll back to, or the active one."""
    number = whole(request.GET.get("from", ""))
    found = tool.policies.filter(number=number).first() if number else None
    return found or _active(tool)


def _both(tool: Tool, looked_at: int, active: Policy) -> tuple[dict[str, Any], dict[str, Any]]:
    looked = tool.policies.filter(number=looked_at).first()
    return (looked or active).whole, active.whole


def _grounds(request: HttpRequest) -> str:
    number = whole(request.GET.get("from", ""))
    return f"Roll back to version {number}." if number else ""


def _open_calls(tool: Tool) -> int:
    rows = ToolCall.objects.open().filter(workspace=tool.workspace_id, tool=tool.name)
    return rows.order_by()[: OPEN_COUNTED + 1].count()


def _person(request: HttpRequest) -> Person:
    person: Person = request.person  # type: ignore[attr-defined]
    return person
