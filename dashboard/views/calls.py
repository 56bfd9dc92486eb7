"""The pages of calls: the list, one call with its live part, one attempt, a cancellation."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard import attempts, calls, curls, finding, listing, live, payloads, peeks, saved_views
from dashboard.deeds import pressed, told
from dashboard.people import Visit, page
from dashboard.views import downloads
from ledger import clock, ids, masks
from ledger.calls import cancel_as_person
from ledger.errors import LedgerError, NotFound
from ledger.models import ToolCall
from ledger.numbers import whole
from recovery.health import late_before


@require_safe
@page
def index(request: Visit) -> HttpResponse:
    """Calls of the workspace by filters of the address, newest first, as of one moment."""
    now, asked = clock.now(), listing.asked_of(request.GET)
    shown: dict[str, Any] = {
        "now": now,
        "late_before": late_before(now),
        "asked": asked,
        "ready": listing.READY,
        "page_name": "calls",
        "saved": saved_views.of(request.person, "calls"),
        "api": request.build_absolute_uri("/api/v1/calls"),
    }
    try:
        found = listing.of(request.person, asked, cursor=request.GET.get("cursor", "")[:200])
    except LedgerError as refusal:
        shown |= {"refusal": refusal, "listing": listing.Listing(asked)}
        return render(request, "dashboard/calls/index.html", shown, status=refusal.http)
    newer = f"since={found.newest}&{asked.query}"
    shown |= {"listing": found, "newer_query": newer, "tag": live.tag_of(0, newer)}
    shown["curls"] = curls.of_calls(asked)
    return render(request, "dashboard/calls/index.html", shown)


@require_safe
@page
def newer(request: Visit) -> HttpResponse:
    """How many calls came since the list was drawn; they wait behind their number."""
    asked = listing.asked_of(request.GET)
    number = listing.newer(request.person, asked, request.GET.get("since", ""))
    query = request.GET.urlencode()
    shown = {"number": number, "newer_query": query, "asked": asked}
    return live.part(request, "dashboard/calls/_newer.html", shown, (number, query))


@require_safe
@page
def detail(request: Visit, call_id: str) -> HttpResponse:
    """Everything about one call."""
    call = calls.get(request.person, call_id)
    return render(request, "dashboard/calls/detail.html", _page(call))


def _page(call: ToolCall, **more: Any) -> dict[str, Any]:
    """The whole page of a call."""
    record = {"record": calls.record(call), "record_tag": live.tag_of(call.seq)}
    return _live(call) | record | {"still": calls.still(call), "grounds": ""} | more


def _live(call: ToolCall) -> dict[str, Any]:
    now, shown = clock.now(), ids.shown("call", call.id)
    found = calls.live(call, now)
    return {
        "now": now,
        "late_before": late_before(now),
        "call": call,
        "shown": shown,
        "heading": f"{call.state} {call.tool} {call.id.hex[-8:]}",
        "part": found,
        "attempts_at": f"{reverse('calls-detail', args=[shown])}/attempts",
        "tag": live.tag_of(*_numbers(call)),
    }


def _numbers(call: ToolCall) -> tuple[Any, ...]:
    """What the live part is made of; a lease moves, and a notice is shown, without an event."""
    told = call.told  # type: ignore[attr-defined]
    return (call.seq, call.heartbeat_at, call.due_at, call.cancel_requested_at, told)


@require_safe
@page
def part(request: Visit, call_id: str) -> HttpResponse:
    """The live part alone, or 304 where the asker has it."""
    call = calls.get(request.person, call_id)
    return live.part(request, "dashboard/calls/_live.html", lambda: _live(call), _numbers(call))


@require_safe
@page
def peek(request: Visit, call_id: str) -> HttpResponse:
    """The essentials of a call, beside a list that it stands in."""
    found = peeks.of_call(calls.get(request.person, call_id))
    return live.opened(request, "dashboard/peeks/_peek.html", {"peek": found}, found.numbers)


@require_safe
@page
def events(request: Visit, call_id: str) -> HttpResponse:
    """The events alone, or 304 where the asker has them."""
    call = calls.get(request.person, call_id)

    def shown() -> live.Page:
        return {"shown": ids.shown("call", call.id), "record": calls.record(call)}

    return live.part(request, "dashboard/calls/_events.html", shown, (call.seq,))


@require_safe
@page
def attempt(request: Visit, call_id: str, number: int) -> HttpResponse:
    """One attempt, beside another with `?compare=`."""
    call = calls.get(request.person, call_id)
    shown = {"call": call, "shown": ids.shown("call", call.id), "number": number}
    try:
        compare = whole(request.GET.get("compare"))
        shown["attempt"] = attempts.page_of(call, number, compare, clock.now())
    except NotFound:
        return render(request, "dashboard/calls/no_attempt.html", shown, status=404)
    return render(request, "dashboard/calls/attempt.html", shown)


@require_safe
@page
def partial(request: Visit, call_id: str, number: int) -> HttpResponse:
    """All that an attempt stored while it ran, as a file, masked."""
    call = calls.get(request.person, call_id)
    name = f"{ids.shown('call', call.id)}-attempt-{number}.txt"
    return downloads.given(attempts.whole_partial(call, number), name)


@page
@require_POST
def cancellation(request: Visit, call_id: str) -> HttpResponse:
    """Ask for the call's end, with grounds."""
    call = calls.get(request.person, call_id)
    grounds = request.POST.get("grounds", "")[:2000]

    def deed() -> dict[str, Any]:
        moved = cancel_as_person(person=request.person, call_id=call.id, grounds=grounds)
        return {"state": str(moved.state)}

    try:
        answer = pressed(request, deed)
    except LedgerError as refusal:
        call = calls.get(request.person, call_id)
        shown = _page(call, refusal=refusal, grounds=grounds)
        return render(request, "dashboard/calls/detail.html", shown, status=refusal.http)
    said = "Cancelled." if answer["state"] == "cancelled" else (
        "Its end is asked for: before its boundary it stops, after it it is left to end."
    )  # fmt: skip
    return told(request, said, _at(call))


def _at(call: ToolCall) -> str:
    return reverse("calls-detail", args=[ids.shown("call", call.id)])


@require_safe
@page
def arguments(request: Visit, call_id: str) -> HttpResponse:
    """The arguments as a file, masked."""
    call = calls.get(request.person, call_id)
    hidden = masks.of(call)
    if downloads.is_raw(request):
        return downloads.raw(request, calls.arguments_of(call, hidden, raw=True), _at(call))
    body = payloads.whole_text(call.arguments.encode(), "", hidden.arguments, hidden.texts)
    return downloads.given(body, f"{ids.shown('call', call.id)}-arguments.txt")


@require_safe
@page
def result(request: Visit, call_id: str) -> HttpResponse:
    """The result as a file: text is masked, bytes that are no text are as they came."""
    call = calls.get(request.person, call_id)
    found = calls.result_of(call)
    if found is None:
        raise NotFound(noun="result")
    hidden = masks.of(call)
    if downloads.is_raw(request):
        payload = calls.shown_result(call, found, hidden, raw=True)
        return downloads.raw(request, payload, _at(call))
    body = payloads.whole_text(bytes(found.body), found.why_not_json, hidden.result, hidden.texts)
    return downloads.given(body, f"{ids.shown('call', call.id)}-result.txt")


@require_safe
@page
def go(request: Visit, wanted: str = "") -> HttpResponse:
    """Find a call or session by whatever name somebody has of it."""
    asked = (wanted or request.GET.get("q", "")).strip()
    found = finding.of(request.person, asked)
    if found.address:
        return redirect(found.address)
    missing = bool(asked) and not found.matches
    return render(
        request, "dashboard/calls/go.html", {"found": found}, status=404 if missing else 200
    )


@require_safe
@page
def places(request: Visit) -> HttpResponse:
    """The names that the box suggests, asked for when somebody enters it."""
    shown = {"places": finding.places(request.person)}
    return render(request, "dashboard/_places.html", shown)
