"""One incident: look, add evidence, preview, record; take it, release it, take a decision back.

The form is one: whichever of its buttons is pressed, what was typed comes back with the answer.
"""

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard import calls, deciding, deeds, incidents, live, peeks, zones
from dashboard.deciding import CORRECTING, RESOLVING, Deciding, Typed
from dashboard.incidents import File
from dashboard.payloads import Payload
from dashboard.people import Visit, need, page
from dashboard.views import approvals
from ledger import ids
from ledger.errors import AlreadySettled, Invalid, LedgerError, NotFound
from ledger.numbers import whole
from ledger.permissions import Right
from ledger.vocabulary import RecoveryClass
from recovery import (
    aborts,
    asides,
    confirmations,
    disputes,
    grounds,
    requests,
    resolutions,
    rulings,
    statements,
    takings,
)
from recovery.api import decision_shapes
from recovery.models import Incident, Resolution
from recovery.refusals import AlreadyDecided, DecisionStale
from recovery.rulings import Wish

SPANS = ((30, "30 minutes"), (60, "1 hour"), (240, "4 hours"), (1440, "1 day"), (10080, "1 week"))
"""For how long something is set aside: minutes, and their words."""
TAKEN_BACK = "Taken back from the page of its incident."
FIELDS = {
    "evidence_required": "evidence",
    "evidence_incomplete": "evidence",
    "confirmation_required": "confirm",
    "locked": "answer",
    "not_eligible": "answer",
}
"""Which part of the form a refusal belongs to."""


def _found(request: Visit, incident_id: str) -> Incident:
    """The incident, within the person's workspace. Raises NotFound."""
    rows = incidents.rows_of(request.person)
    found: Incident | None = rows.filter(id=ids.read("incident", incident_id)).first()
    if found is None:
        raise NotFound(noun="incident")
    return found


def _address(incident: Incident, word: str = "incident") -> str:
    return reverse(f"inbox-{word}", args=[ids.shown("incident", incident.id)])


# The page and its parts


@require_safe
@page
def detail(request: Visit, incident_id: str) -> HttpResponse:
    """The file on one call or session, with the form where an answer is waited for."""
    incident = _found(request, incident_id)
    return render(request, "dashboard/incidents/detail.html", _page(request, incident, RESOLVING))


@require_safe
@page
def peek(request: Visit, incident_id: str) -> HttpResponse:
    """The essentials of an incident, beside a list that it stands in."""
    found = peeks.of_incident(_found(request, incident_id))
    return live.opened(request, "dashboard/peeks/_peek.html", {"peek": found}, found.numbers)


@require_safe
@page
def standing(request: Visit, incident_id: str) -> HttpResponse:
    """The labels and the three questions; asked for again while they may change."""
    file = incidents.of(_found(request, incident_id))
    return live.part(
        request, "dashboard/incidents/_standing.html", {"file": file}, (request.path, *file.numbers)
    )


@require_safe
@page
def news(request: Visit, incident_id: str) -> HttpResponse:
    """What became of the decision, and what moved since the version the form was drawn with."""
    file = incidents.of(_found(request, incident_id))
    seen = whole(request.GET.get("version"))
    version = file.version if seen is None else seen
    shown = {"file": file, "drawn": version, "changed": file.since(version)}
    return live.part(
        request, "dashboard/incidents/_news.html", shown, (request.path, version, *file.numbers)
    )


def _page(
    request: Visit, incident: Incident, way: Deciding, typed: Typed | None = None, **more: Any
) -> dict[str, Any]:
    file = incidents.of(incident)
    given = typed or Typed(version=file.version, evidence=_own_evidence(file))
    return {
        "file": file,
        "way": way,
        "choices": way.choices(incident, request.person),
        "takes_login": _takes_login(request, file),
        "typed": given,
        "drawn": given.version or file.version,
        "changed": [],
        "spans": SPANS,
        "able": asides.able(request.person.workspace_id),
        "kinds": deciding.EVIDENCE_KINDS,
        "findings": deciding.FINDINGS,
        "tag": live.tag_of(reverse("part-incident", args=[file.shown]), *file.numbers),
        "news_tag": "",
        "arguments": _arguments(file),
        "again": grounds.last_of(request.person, file.call) if file.call else None,
        "mine": file.taken is not None and file.taken.by_id == request.person.id,
    } | more


def _takes_login(request: Visit, file: File) -> bool:
    """Whether a fresh login is due before this person decides."""
    is_effect = file.call is not None and file.call.recovery_class == RecoveryClass.SIDE_EFFECT
    return is_effect and request.person.may(Right.DECIDE) and not request.person.login_is_fresh


def _own_evidence(file: File) -> tuple[str, ...]:
    """What a person found is ticked from the start: whoever put it there will rest on it."""
    return tuple(ids.shown("evidence", each.id) for each in file.evidence if each.by_id)


# Deciding


def resolution(request: HttpRequest, incident_id: str) -> HttpResponse:
    """The form as a plain page, and where it is sent to."""
    return _decide(request, incident_id, word="resolution")


def correction(request: HttpRequest, incident_id: str) -> HttpResponse:
    """The same for a call that is settled: what was believed is superseded."""
    return _decide(request, incident_id, word="correction")


WAYS = {"resolution": RESOLVING, "correction": CORRECTING}


def _decide(request: HttpRequest, incident_id: str, *, word: str) -> HttpResponse:
    if request.method == "POST" and not request.user.is_authenticated:
        return _logged_out(request, incident_id, word)
    return _decided(request, incident_id, word)


@page
def _decided(request: Visit, incident_id: str, word: str) -> HttpResponse:
    incident, way = _found(request, incident_id), WAYS[word]
    if request.method != "POST":
        return _form(request, incident, way)
    takings.touch(incident.id, request.person)
    try:
        typed = deciding.typed_of(request.POST, request.FILES)
        typed = deciding.with_grounds(typed, incident, request.person)
    except Invalid as refusal:
        return _refused(request, incident, way, deciding.typed_of(request.POST), refusal)
    step = STEPS.get(request.POST.get("step", ""), _preview)
    try:
        if typed.holds_evidence and step in DECIDING:
            typed.decision()  # What cannot be read is refused before anything is written.
            typed = _filed(request, incident, typed)
        return step(request, incident, way, typed)
    except LedgerError as refusal:
        return _refused(request, incident, way, typed, refusal)


def _logged_out(request: HttpRequest, incident_id: str, word: str) -> HttpResponse:
    """Nothing was sent to the ledger; what was typed stands on the page, to be sent again."""
    shown = {"typed": deciding.typed_of(request.POST), "again": request.path,
             "word": word, "next": reverse("inbox-incident", args=[incident_id])}  # fmt: skip
    return render(request, "dashboard/incidents/logged_out.html", shown, status=401)


def _form(
    request: Visit, incident: Incident, way: Deciding, typed: Typed | None = None,
    *, status: int = 200, **more: Any,
) -> HttpResponse:  # fmt: skip
    shown = _page(request, incident, way, typed, **more)
    return render(request, "dashboard/incidents/resolution.html", shown, status=status)


def _edit(request: Visit, incident: Incident, way: Deciding, typed: Typed) -> HttpResponse:
    return _form(request, incident, way, typed)


def _preview(request: Visit, incident: Incident, way: Deciding, typed: Typed) -> HttpResponse:
    """The four boxes; nothing is recorded."""
    boxes = way.preview(incident, typed.decision(), request.person)
    return _boxed(request, incident, way, typed, boxes)


def _boxed(
    request: Visit, incident: Incident, way: Deciding, typed: Typed, boxes: dict[str, Any],
    *, status: int = 200, **more: Any,
) -> HttpResponse:  # fmt: skip
    shown = _page(request, incident, way, typed, boxes=boxes, **more)
    backing = [each for each in shown["file"].evidence
               if ids.shown("evidence", each.id) in (*typed.evidence, typed.result)]  # fmt: skip
    own = any(each.by_id == request.person.id for each in backing)
    alone = boxes["afterwards"]["needs_second_person"] and requests.nobody_but(
        request.person.id, request.person.workspace_id
    )
    shown |= {"backing": backing, "rests_on_own": own, "carried": typed.carried(), "alone": alone}
    return render(request, "dashboard/incidents/preview.html", shown, status=status)


def _arguments(file: File) -> Payload | None:
    return calls.arguments_of(file.call, file.hidden) if file.call else None


def _record(request: Visit, incident: Incident, way: Deciding, typed: Typed) -> HttpResponse:
    def deed() -> dict[str, Any]:
        recorded = way.record(incident, typed.decision(), request.person)
        return decision_shapes.resolution(Resolution.objects.get(id=recorded.id))

    made = deeds.pressed(request, deed)
    return deeds.told(request, _recorded(made), _address(incident))


def _recorded(made: dict[str, Any]) -> str:
    what = rulings.in_words(made["answer"], made["then"])
    if made["stage"] == "requested":
        return f"Recorded: {what}. It waits for a second person, for 30 minutes at most."
    if made["stage"] == "pending":
        wait = f"{made['carry_out_after_s']:g}"
        return f"Recorded: {what}. It is carried out in {wait} s; until then it can be taken back."
    return f"Recorded and carried out: {what}."


def _evidence(request: Visit, incident: Incident, way: Deciding, typed: Typed) -> HttpResponse:
    """Put what was found on the file; the rest of the form stays as it was typed."""
    typed = _filed(request, incident, typed)
    return _form(request, incident, way, typed, said="Your evidence is on the file.")


def _filed(request: Visit, incident: Incident, typed: Typed) -> Typed:
    """Put what was found on the file, once; what was typed, resting on it too."""
    found = typed.found()

    def deed() -> dict[str, Any]:
        call_id = statements.call_of(incident.id, request.person)
        return decision_shapes.evidence(
            statements.state_evidence(call_id=call_id, found=found, by=request.person)
        )

    kept = deeds.pressed(request, deed, about=found)
    incident.refresh_from_db()
    file = incidents.of(incident)
    # Nobody else moved the file since it was looked at: the version moves with one's own evidence.
    alone = typed.version is not None and len(file.since(typed.version)) <= 1
    return replace(
        typed, evidence=(*typed.evidence, kept["id"]), finding="", message="", reference="",
        body="", version=file.version if alone else typed.version,
    )  # fmt: skip


STEPS = {"preview": _preview, "record": _record, "evidence": _evidence, "edit": _edit}
DECIDING = (_preview, _record)
"""The steps that rest on evidence: what is typed of it goes on the file first."""


def _refused(
    request: Visit, incident: Incident, way: Deciding, typed: Typed, refusal: LedgerError
) -> HttpResponse:
    """The refusal's sentence at its place, everything typed kept."""
    incident = _found(request, ids.shown("incident", incident.id))
    more: dict[str, Any] = {
        "refusal": refusal,
        "at": FIELDS.get(refusal.code, "form"),
    }
    if isinstance(refusal, DecisionStale):
        moved = incidents.of(incident)
        more["changed"] = moved.since(typed.version or 1)
        typed = replace(typed, version=moved.version)
    elif isinstance(refusal, AlreadyDecided | AlreadySettled) and way is RESOLVING:
        return _second(request, incident, typed, refusal)
    elif refusal.code == "confirmation_required":
        boxes = way.preview(incident, typed.decision(), request.person)
        return _boxed(request, incident, way, typed, boxes, status=refusal.http, **more)
    return _form(request, incident, way, typed, status=refusal.http, **more)


def _second(request: Visit, incident: Incident, typed: Typed, refusal: LedgerError) -> HttpResponse:
    """Somebody was first: the same decision is a success, another one stands beside one's own."""
    shown = _page(request, incident, RESOLVING, typed, refusal=refusal)
    theirs, own = shown["file"].decided, typed.decision()
    added = any(each.by_id == request.person.id for each in shown["file"].evidence)
    if theirs is not None and resolutions.says_the_same(theirs.row, own):
        sentence = f"Already recorded by {theirs.row.by_name} at {zones.written(theirs.row.at)}."
        rest = "Your evidence was added." if added else "Nothing was recorded twice."
        return deeds.told(request, f"{sentence} {rest}", _address(incident))
    title, _ = deciding.TITLES.get(_pair(typed.answer), (typed.answer, ""))
    disputable = theirs is not None and disputes.is_another(theirs.row, own.wish)
    shown |= {
        "theirs": theirs,
        "own_title": title,
        "own_error": own.wish.error,
        "added": added,
        "own_answer": f"{own.wish.answer}:{own.wish.then}" if disputable else "",
    }
    return render(request, "dashboard/incidents/conflict.html", shown, status=refusal.http)


def _pair(answer: str) -> tuple[str, str]:
    word, _, then = answer.partition(":")
    return word, then


# Smaller deeds, each a form of its own


@page
@require_POST
def taking(request: Visit, incident_id: str) -> HttpResponse:
    """Say that one works on it, for ten minutes."""
    incident = _found(request, incident_id)
    takings.take(incident_id=incident.id, by=request.person)
    return HttpResponseRedirect(_address(incident))


@page
@require_POST
def release(request: Visit, incident_id: str) -> HttpResponse:
    """Let go of it."""
    incident = _found(request, incident_id)
    takings.release(incident_id=incident.id, by=request.person)
    return HttpResponseRedirect(_address(incident))


@page
@require_POST
def aside(request: Visit, incident_id: str) -> HttpResponse:
    """Set it aside for a while."""
    incident = _found(request, incident_id)
    asides.set_aside(incident_id=incident.id, minutes=minutes_of(request), by=request.person)
    said = "Set aside: it is listed last and comes back by itself. Bring it back above."
    return deeds.told(request, said, _address(incident))


def minutes_of(request: Visit) -> int:
    """For how many minutes something is to be set aside; 0, which the verb refuses, for none."""
    return whole(request.POST.get("minutes")) or 0


@page
@require_POST
def aside_end(request: Visit, incident_id: str) -> HttpResponse:
    """Bring it back."""
    incident = _found(request, incident_id)
    asides.bring_back(incident_id=incident.id, by=request.person)
    return deeds.told(request, "Brought back: it stands where it stood.", _address(incident))


@page
@require_POST
def assignment(request: Visit, incident_id: str) -> HttpResponse:
    """Make it somebody's work, or nobody's."""
    incident = _found(request, incident_id)
    made = asides.assign(
        incident_id=incident.id, to=request.POST.get("to", "")[:150], by=request.person
    )
    said = f"Assigned to {made.to_name}." if made else "It is nobody's work now."
    return deeds.told(request, said, _address(incident))


@page
@require_POST
def confirmation(request: Visit, incident_id: str) -> HttpResponse:
    """Say that one has looked at an incident that asks for nothing but that."""
    need(request.person, Right.DECIDE)
    return _once(request, incident_id, "Closed: you have looked at it.", lambda incident, grounds:
                 confirmations.confirm(workspace_id=request.person.workspace_id,
                                       incident_id=incident.id, by_name=request.person.name,
                                       grounds=grounds))  # fmt: skip


@page
@require_POST
def recovery_stop(request: Visit, incident_id: str) -> HttpResponse:
    """End the machine's turn."""
    need(request.person, Right.DECIDE)
    return _once(request, incident_id, "Stopped: it is a person's turn now.",
                 lambda incident, grounds: aborts.stop(
                     workspace_id=request.person.workspace_id, incident_id=incident.id,
                     by_id=str(request.person.id), by_name=request.person.name,
                     grounds=grounds))  # fmt: skip


@page
@require_POST
def proof_of_death(request: Visit, incident_id: str) -> HttpResponse:
    """Say that the machine of a lost attempt is off."""
    fence = whole(request.POST.get("attempt")) or 0

    def deed(incident: Incident, grounds: str) -> object:
        call_id = statements.call_of(incident.id, request.person)
        return statements.state_death(
            call_id=call_id, fence=fence, grounds=grounds, by=request.person
        )

    return _once(request, incident_id, "Recorded: its machine is off.", deed)


def _once(request: Visit, incident_id: str, sentence: str, verb: Any) -> HttpResponse:
    """One press of a form that asks for grounds and nothing else."""
    incident, grounds = _found(request, incident_id), request.POST.get("grounds", "").strip()
    takings.touch(incident.id, request.person)

    def deed() -> dict[str, Any]:
        if not grounds or len(grounds) > deciding.GROUNDS_MAX:
            raise Invalid(detail="Say why in one sentence; the grounds are kept with it.")
        verb(incident, grounds)
        return {}

    try:
        deeds.pressed(request, deed)
    except LedgerError as refusal:
        shown = _page(request, _found(request, incident_id), RESOLVING)
        shown |= {"refusal": refusal, "typed_grounds": grounds, "asked": request.path}
        return render(request, "dashboard/incidents/detail.html", shown, status=refusal.http)
    return deeds.told(request, sentence, _address(incident))


@page
@require_POST
def taking_back(request: Visit, resolution_id: str) -> HttpResponse:
    """Undo: take a decision back while that is true."""
    person, id_ = request.person, ids.read("resolution", resolution_id)
    row = resolutions.get(resolution_id=id_, workspace_id=person.workspace_id)
    grounds = request.POST.get("grounds", "").strip() or TAKEN_BACK
    deeds.pressed(request, lambda: decision_shapes.resolution(
        resolutions.take_back(resolution_id=id_, grounds=grounds[:2000], by=person)))  # fmt: skip
    return deeds.told(request, "Taken back: nothing of it was carried out.", _back_to(row))


@page
@require_POST
def dispute(request: Visit, resolution_id: str) -> HttpResponse:
    """Say another thing than what somebody recorded: a third person decides."""
    person, id_ = request.person, ids.read("resolution", resolution_id)
    grounds = request.POST.get("grounds", "").strip()[: deciding.GROUNDS_MAX]

    def deed() -> dict[str, Any]:
        if not grounds:
            raise Invalid(detail="Say in one sentence why you do not believe it.")
        answer, then = disputes.answer_of(request.POST.get("answer", ""))
        wish = Wish(answer=answer, then=then, grounds=grounds)
        made = disputes.begin(resolution_id=id_, wish=wish, by=person)
        return {"incident": ids.shown("incident", made.incident_id)}

    made = deeds.pressed(request, deed)
    said = "In dispute: both answers are kept, and a third person or an admin decides."
    return deeds.told(request, said, reverse("inbox-incident", args=[made["incident"]]))


@page
@require_POST
def approval(request: Visit, resolution_id: str) -> HttpResponse:
    """Be the second person, on the page of the incident."""
    id_ = ids.read("resolution", resolution_id)
    row = resolutions.get(resolution_id=id_, workspace_id=request.person.workspace_id)
    return approvals.answered(request, id_, _back_to(row))


def _back_to(row: Resolution) -> str:
    if row.incident is None:
        return reverse("inbox")
    return _address(row.incident)
