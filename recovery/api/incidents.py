"""Incidents: what was found and tried, whose turn it is, what people state and decide."""

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from django.db.models import Count, Min, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from ledger import clock, ids
from ledger.api import masks
from ledger.api import shapes as ledger_shapes
from ledger.api.auth import KeyOrLogin, Login, reader_of
from ledger.api.pages import NEWEST, given_in, page
from ledger.api.schemas import GroundsIn, PageOut
from ledger.api.shapes import instant
from ledger.errors import NotFound
from ledger.filters import Keep, an_id, narrowed, words
from ledger.permissions import Person, Right, roles_with
from ledger.vocabulary import CallState, ExhaustionReason, IncidentState
from recovery import (
    aborts,
    asides,
    casefiles,
    confirmations,
    resolutions,
    rulings,
    statements,
    takings,
)
from recovery.api import decision_shapes, intents, shapes
from recovery.api.decisions import decision_of
from recovery.api.filters import OfTheInbox
from recovery.api.schemas import (
    AsideIn,
    AssignmentIn,
    EvidenceIn,
    ProofOfDeathIn,
    ResolutionIn,
)
from recovery.incident_filters import INCIDENTS, NEEDS_ANSWER
from recovery.models import Incident, Resolution

router = Router(tags=["incidents"])
READ, PERSON = KeyOrLogin("calls:read"), Login()
WITNESS = Login(*roles_with(Right.STATE_EVIDENCE))
OPERATORS = Login("operator", "approver", "admin")


class Filters(OfTheInbox):
    """The filters of the console's inbox, by its names but `call_state`, and some of its own."""

    open: bool | None = None
    call_state: str = ""
    reason: str = ""
    cause: str = ""
    call: str = ""
    older_than: Annotated[int, Field(ge=0, le=10**9)] | None = None
    disputed: bool = False
    bulk: str = ""


def _readable(request: HttpRequest) -> "QuerySet[Incident]":
    """The incidents of the calls and sessions that the caller may read."""
    reader = reader_of(request.auth)  # type: ignore[attr-defined]
    rows = Incident.objects.filter(workspace=reader.workspace_id).select_related("call__policy")
    agent_id = reader.agent_id
    own = Q(call__agent=agent_id) | Q(session__agent=agent_id)
    return rows.filter(own) if agent_id else rows


@router.get("", auth=READ, response=PageOut)
def index(
    request: HttpRequest,
    asked: Query[Filters],
    sort: str = NEWEST,
    limit: int = 50,
    cursor: str = "",
) -> dict[str, Any]:
    """List incidents, newest first or with `sort=oldest` the other way; filters are the inbox's.

    `needs_answer` keeps what the inbox lists: open ones whose turn is a person's; held calls stand
    in `/holds`. `state` is the incident's, `call_state` its call's, and `age_min` counts minutes,
    `older_than` seconds since it was opened. The other names mean what they mean for calls;
    `assigned` is as `taken`, `aside` is yes or no, `overdue` is about the review, `bulk` keeps
    those of a bulk run.

    A page looks at ten thousand incidents at most, unless it is of open ones, of one call or of a
    bulk run: it may hold fewer than `limit`, or none, while `next_cursor` goes on.
    """
    given, own = given_in(asked), _readable(request)
    rows = narrowed(own, given, FILTERS)
    among = None if _have_index(given) else own
    found, next_cursor = page(
        rows, filters=given, limit=limit, cursor=cursor, among=among, sort=sort
    )
    return {"items": shapes.incidents(found), "next_cursor": next_cursor}


def _older(text: str) -> Q:
    return Q(opened_at__lt=clock.now() - timedelta(seconds=int(text)))


FILTERS: dict[str, Keep] = {
    **INCIDENTS,
    "state": words("state", "state", IncidentState),
    "call_state": words("call_state", "call__state", CallState),
    "reason": words("reason", "reason", ExhaustionReason),
    "open": lambda text: Q(closed_at__isnull=text == "true"),
    "needs_answer": lambda text: NEEDS_ANSWER,
    "call": lambda text: Q(call=an_id("call", text)),
    "older_than": _older,
}
"""What can be asked: as in the inbox, but that `state` is the incident's own here."""


def _have_index(given: dict[str, str]) -> bool:
    """Whether the filters find their incidents without a look at all of them."""
    is_open = "needs_answer" in given or given.get("open") == "true"
    return not given or is_open or "call" in given or "bulk" in given


@router.get("/summary", auth=READ)
def summary(request: HttpRequest) -> dict[str, Any]:
    """How many incidents are open, by kind and state, and since when the oldest one is."""
    rows = _readable(request).filter(closed_at__isnull=True)
    counted = rows.order_by().values("kind", "state").annotate(count=Count("id"))
    oldest = rows.aggregate(at=Min("opened_at"))["at"]
    waits_s = (clock.now() - oldest).total_seconds() if oldest else None
    items = [dict(each) for each in counted.order_by("kind", "state")]
    return {
        "open": sum(each["count"] for each in items),
        "counts": items,
        "oldest_opened_at": instant(oldest),
        "oldest_age_s": waits_s,
    }


@router.get("/{incident_id}", auth=READ, response=dict)
def detail(request: HttpRequest, response: HttpResponse, incident_id: str) -> dict[str, Any]:
    """One incident with its evidence, its resolutions, and for a person what may be answered.

    Its `ETag` is the decision version, which a decision sends back in `If-Match`.
    """
    row = _readable(request).filter(id=ids.read("incident", incident_id)).first()
    if row is None:
        raise NotFound(noun="incident")
    shown = shapes.incidents([row])[0]
    response["ETag"] = f'"{shown["decision_version"]}"'
    more = _on_file(row) | _for_person(row, request.auth)  # type: ignore[attr-defined]
    body = shown | more | _in_hand(row.id)
    if row.call is None:
        return body
    return dict(masks.about_call(request.auth, row.call, body))  # type: ignore[attr-defined]


def _in_hand(id_: UUID) -> dict[str, Any]:
    """Who works on an incident, whose work it is, and until when it is set aside."""
    taken = takings.of([id_]).get(id_)
    aside, assigned = asides.of([id_]).get(id_), asides.assigned([id_]).get(id_)
    return {
        "taken": taken and shapes.taking(taken),
        "assigned": assigned and shapes.assignment(assigned),
        "set_aside": aside and shapes.aside(aside),
    }


@router.post("/{incident_id}/recovery-stop", auth=OPERATORS)
def recovery_stop(request: HttpRequest, incident_id: str, body: GroundsIn) -> dict[str, Any]:
    """End the machine's turn: the call becomes ambiguous now. Told twice, the answer is the same.

    What is in hand still counts, and a probe under way may still prove what happened.
    """
    person = request.auth  # type: ignore[attr-defined]
    row = aborts.stop(
        workspace_id=person.workspace_id,
        incident_id=ids.read("incident", incident_id),
        by_id=str(person.id),
        by_name=person.name,
        grounds=body.grounds,
    )
    return _shown(row)


@router.post("/{incident_id}/confirmation", auth=OPERATORS)
def confirmation(request: HttpRequest, incident_id: str, body: GroundsIn) -> dict[str, Any]:
    """Say that a person has looked: ends what asks for nothing but that.

    Told twice, the answer is the same, and the first grounds stand.
    """
    person = request.auth  # type: ignore[attr-defined]
    row = confirmations.confirm(
        workspace_id=person.workspace_id,
        incident_id=ids.read("incident", incident_id),
        by_name=person.name,
        grounds=body.grounds,
    )
    return _shown(row)


@router.post("/{incident_id}/taking", auth=WITNESS)
def taking(request: HttpRequest, incident_id: str) -> dict[str, Any]:
    """Say that one works on this incident, for ten minutes. It warns others and locks nothing.

    Taken again it is renewed; taken by somebody else it is theirs.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    return shapes.taking(takings.take(incident_id=ids.read("incident", incident_id), by=person))


@router.post("/{incident_id}/release", auth=WITNESS)
def release(request: HttpRequest, incident_id: str) -> dict[str, Any]:
    """Let go of an incident that one has taken. Told twice, the answer is the same."""
    person: Person = request.auth  # type: ignore[attr-defined]
    id_ = ids.read("incident", incident_id)
    takings.release(incident_id=id_, by=person)
    taken = takings.of([id_]).get(id_)
    return {"incident": ids.shown("incident", id_), "taken": taken and shapes.taking(taken)}


@router.post("/{incident_id}/aside", auth=WITNESS, response=dict)
def set_aside(request: HttpRequest, incident_id: str, body: AsideIn) -> HttpResponse:
    """Set an incident aside for so many minutes: it is listed last and comes back by itself.

    It decides nothing, and no deadline stops. An escalation brings it back at once. Told again it
    counts from then on; `Idempotency-Key` makes it once.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    id_ = ids.read("incident", incident_id)

    def deed() -> dict[str, Any]:
        return shapes.aside(
            asides.set_aside(incident_id=id_, minutes=body.minutes, grounds=body.grounds, by=person)
        )

    return intents.once_if_named(request, deed, status=200)


@router.post("/{incident_id}/aside/end", auth=WITNESS)
def bring_back(request: HttpRequest, incident_id: str) -> dict[str, Any]:
    """Bring back what was set aside. Told twice, the answer is the same."""
    person: Person = request.auth  # type: ignore[attr-defined]
    id_ = ids.read("incident", incident_id)
    asides.bring_back(incident_id=id_, by=person)
    return {"incident": ids.shown("incident", id_), **_in_hand(id_)}


@router.post("/{incident_id}/assignment", auth=WITNESS)
def assignment(request: HttpRequest, incident_id: str, body: AssignmentIn) -> dict[str, Any]:
    """Make an incident the work of a member, or with an empty name of nobody.

    Told twice, it is theirs as before and nothing is written.
    """
    person: Person = request.auth  # type: ignore[attr-defined]
    id_ = ids.read("incident", incident_id)
    asides.assign(incident_id=id_, to=body.to, by=person)
    return {"incident": ids.shown("incident", id_), **_in_hand(id_)}


def _shown(row: Incident) -> dict[str, Any]:
    return shapes.incidents([Incident.objects.select_related("call__policy").get(id=row.id)])[0]


def _on_file(row: Incident) -> dict[str, Any]:
    """What lies on the file of the incident's call, and the lock on denial."""
    if row.call is None:
        return {}
    lock = rulings.lock_of(casefiles.of(row.call, row))
    return decision_shapes.on_file(row.call) | {
        "pending": row.pending_id and ids.shown("resolution", row.pending_id),
        "lock": lock and lock.to_json(),
        "locked_until": instant(lock.unlocks_at) if lock else None,
    }


def _for_person(row: Incident, reader: Any) -> dict[str, Any]:
    """What this person may answer now; nothing for a key, which never decides."""
    if not isinstance(reader, Person) or row.call is None:
        return {"can": []}
    return {
        "can": [decision_shapes.offer(each) for each in resolutions.offers(row.call, row, reader)]
    }


@router.post("/{incident_id}/resolutions/preview", auth=PERSON, response=dict)
def preview(request: HttpRequest, incident_id: str, body: ResolutionIn) -> dict[str, Any]:
    """What the very same body would do: outside, in the ledger, for the model, and afterwards."""
    facts, ruling = resolutions.preview(
        incident_id=ids.read("incident", incident_id),
        decision=decision_of(request, body),
        by=request.auth,  # type: ignore[attr-defined]
    )
    return decision_shapes.preview(facts, ruling)


@router.post("/{incident_id}/resolutions", auth=PERSON, response={201: dict})
def resolve(request: HttpRequest, incident_id: str, body: ResolutionIn) -> HttpResponse:
    """Record a decision; it is carried out after the tool's delay, and can be taken back till then.

    Takes a person's login, `Idempotency-Key`, and the decision version in `If-Match` or the body.
    """
    decision = decision_of(request, body)

    def deed() -> dict[str, Any]:
        recorded = resolutions.record(
            incident_id=ids.read("incident", incident_id),
            decision=decision,
            by=request.auth,  # type: ignore[attr-defined]
        )
        return decision_shapes.resolution(Resolution.objects.get(id=recorded.id))

    return intents.once(request, deed)


@router.post("/{incident_id}/evidence", auth=PERSON, response={201: dict})
def evidence(request: HttpRequest, incident_id: str, body: EvidenceIn) -> HttpResponse:
    """Put on the file what a person found outside. It decides nothing by itself."""
    person: Person = request.auth  # type: ignore[attr-defined]

    def deed() -> dict[str, Any]:
        call_id = statements.call_of(ids.read("incident", incident_id), person)
        found = statements.Found(**body.model_dump())
        return decision_shapes.evidence(
            statements.state_evidence(call_id=call_id, found=found, by=person)
        )

    return intents.once(request, deed)


@router.post("/{incident_id}/proof-of-death", auth=PERSON, response={201: dict})
def proof_of_death(request: HttpRequest, incident_id: str, body: ProofOfDeathIn) -> HttpResponse:
    """Say with grounds that the machine of a lost attempt is off: the weaker proof."""
    person: Person = request.auth  # type: ignore[attr-defined]

    def deed() -> dict[str, Any]:
        call_id = statements.call_of(ids.read("incident", incident_id), person)
        return ledger_shapes.attempt(
            statements.state_death(
                call_id=call_id, fence=body.attempt, grounds=body.grounds, by=person
            )
        )

    return intents.once(request, deed)
