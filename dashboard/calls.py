"""What the page of one call shows, read once: labels, questions, timeline, rows, payloads.

Nothing here decides. The person's workspace is part of every look-up; a handle is named by its
kind and where it lives, never by its value.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Count, OuterRef, Subquery
from django.urls import reverse

from dashboard import (
    addresses,
    attempts,
    budgets,
    figures,
    histories,
    payloads,
    questions,
    standing,
    twins,
)
from dashboard.budgets import Row as BudgetRow
from dashboard.figures import Timeline
from dashboard.labels import EFFECTS, STATES, Label
from dashboard.payloads import FROM_MODEL, FROM_TOOL, Payload
from dashboard.questions import Questions
from dashboard.standing import Standing
from dashboard.twins import Twin
from ledger import calls, chains, ids, masking, masks, partials
from ledger.calls import Cancellation
from ledger.errors import NotFound
from ledger.masks import Hidden
from ledger.models import (
    Agent,
    Attempt,
    Delivery,
    Event,
    Fetch,
    Handle,
    Interrupt,
    Notice,
    Result,
    ToolCall,
    Worker,
)
from ledger.permissions import Person
from ledger.vocabulary import Actor, CallState, Deadline, spoken
from recovery.models import Incident

ROWS_SHOWN = 50
RELATED = ("agent", "session", "turn", "policy", "tool_version")
CANCELLING = {
    "at rest": "Nothing runs: the call ends at once, without an effect. The model reads that it "
    "was cancelled.",
    "under way": "An attempt may be under way: it is asked to stop, and does so if it has not "
    "crossed its boundary. After the boundary it is left to end, and what happened is told. "
    "Nothing outside is undone.",
    "in doubt": "No attempt runs, but the effect may have happened or may be under way outside. "
    "Your wish is recorded: the call ends as cancelled only where it is proved that nothing "
    "happened. Nothing outside is stopped or undone.",
}
"""What cancelling would do, by how the call stands."""

RUNS = (CallState.RUNNING, CallState.PARKED, CallState.INTERRUPTED)


TOLD = Count("id") + Count("acknowledged_at")
"""How often a model was shown something of a call, and how often it confirmed that: only grows."""


def get(person: Person, call_id: str) -> ToolCall:
    """A call of the person's workspace by its shown id, with `told`. Raises NotFound."""
    shown = Delivery.objects.filter(call=OuterRef("id")).order_by().values("call")
    found = ToolCall.objects.filter(workspace=person.workspace_id, id=ids.read("call", call_id))
    told = Subquery(shown.annotate(told=TOLD).values("told"))
    call = found.select_related(*RELATED).annotate(told=told).first()
    if call is None:
        raise NotFound(noun="call")
    return call


class EventRow(NamedTuple):
    """One event of the chain, with what it says, masked."""

    seq: int
    kind: str
    state: Label
    effect: Label
    by: str
    at: datetime
    fence: int | None
    cause: str
    facts: str
    hash: str
    is_broken: bool


class Due(NamedTuple):
    """An armed deadline, and the timeout of the policy that it came from."""

    name: str
    at: datetime


class Reading(NamedTuple):
    """What somebody was shown of the call."""

    at: datetime
    who: str
    what: str
    state: Label
    digest: str
    is_read: bool


class Hold(NamedTuple):
    """A question that holds the call: its page, and the call that it waits for, if it does."""

    address: str
    other_at: str = ""
    other: UUID | None = None


class Other(NamedTuple):
    """An incident beside the call."""

    shown: str
    address: str
    state: Any
    note: str


@dataclass(frozen=True, slots=True)
class Live:
    """The part that changes while one looks: labels, questions, timeline, deadlines."""

    call: ToolCall
    standing: Standing
    questions: Questions
    timeline: Timeline
    deadlines: list[Due]
    every: str
    readings: list[Reading] = field(default_factory=list)
    incidents: list[Other] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    runbook: str = ""
    budgets: list[BudgetRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Record:
    """Every event of the call, which grows while one looks, and how many are not as written."""

    events: list[EventRow]
    broken: int
    every: str


@dataclass(frozen=True, slots=True)
class Still:
    """The part that keeps still: payloads, handles, twins, and what cancelling would do."""

    arguments: Payload
    outcome: list[Payload]
    handles: list[Handle]
    twins: list[Twin]
    cancellation: Cancellation
    cancelling: str
    tool_at: str
    session_at: str


def live(call: ToolCall, now: datetime) -> Live:
    """Read what changes, in a constant number of queries."""
    return Live(
        call=call,
        standing=standing.of(call),
        questions=questions.of(call),
        timeline=figures.timeline_of(histories.read(call, now)),
        deadlines=list(_deadlines(call)),
        every=every(call),
        readings=list(_readings(call)),
        incidents=list(_incidents(call)),
        holds=list(_holds(call)),
        runbook=runbook_of(call),
        budgets=[] if call.is_settled else budgets.of_call(call),
    )


def runbook_of(call: ToolCall) -> str:
    """What to do first with a call that broke; empty for one that did not."""
    point = call.failure_point
    return call.policy.call_policy.runbook_at(point) if point else ""


def record(call: ToolCall) -> Record:
    """Read the events and check their chain, in a constant number of queries."""
    events = list(_events(call, masks.of(call)))
    return Record(events, sum(each.is_broken for each in events), every(call))


def every(call: ToolCall) -> str:
    """How often the part is asked for: never once the call is settled (console, section 11)."""
    if call.is_settled:
        return ""
    return "2s" if call.state in RUNS else "10s"


def _events(call: ToolCall, hidden: Hidden) -> Iterable[EventRow]:
    broken = chains.broken(call.id)
    rows = list(Event.objects.filter(call=call).order_by("seq"))
    names = _names(call, rows)
    for row in rows:
        facts = masking.masked(row.facts_json, known=hidden.texts)
        name = names.get((row.actor, row.actor_id), row.actor_id[-8:])
        who = f"{row.actor} {name}".strip()
        yield EventRow(
            row.seq, spoken(row.kind), STATES[row.to_state], EFFECTS[row.effect], who,
            row.at, row.fence, spoken(row.cause),
            json.dumps(facts, ensure_ascii=False, sort_keys=True) if facts else "",
            bytes(row.hash).hex(), row.seq in broken,
        )  # fmt: skip


def _names(call: ToolCall, rows: Iterable[Event]) -> dict[tuple[str, str], str]:
    """The names of the people, agents and workers who acted, by role and id; a query for each."""
    acted = {(row.actor, row.actor_id) for row in rows}
    people = [id_ for actor, id_ in acted if actor == Actor.OPERATOR and id_.isdecimal()]
    agents = Agent.objects.filter(
        workspace=call.workspace_id, id__in=[id_ for actor, id_ in acted if actor == Actor.AGENT]
    )
    workers = Worker.objects.filter(attempts__call=call).distinct()
    return {
        **{(Actor.OPERATOR, str(id_)): name for id_, name in
           get_user_model().objects.filter(id__in=people).values_list("id", "username")},
        **{(Actor.AGENT, id_.hex): name for id_, name in agents.values_list("id", "name")},
        **{(Actor.WORKER, id_.hex): name for id_, name in workers.values_list("id", "name")},
    }  # fmt: skip


def _deadlines(call: ToolCall) -> Iterable[Due]:
    armed = [(getattr(call, f"{each}_at"), each) for each in Deadline]
    for at, each in sorted((at, each) for at, each in armed if at is not None):
        yield Due(str(each).replace("_", "-"), at)


def _readings(call: ToolCall) -> Iterable[Reading]:
    """Deliveries first, since they name a turn; then what was fetched through the API."""
    offered = Delivery.objects.filter(call=call).select_related("turn").order_by("offered_at")
    for row in offered[:ROWS_SHOWN]:
        yield Reading(row.offered_at, f"{row.consumer}, turn {row.turn.number}", str(row.kind),
                      STATES[row.state], row.sha256, row.acknowledged_at is not None)  # fmt: skip
    for fetch in Fetch.objects.filter(call=call).order_by("first_at")[:ROWS_SHOWN]:
        times = f", {fetch.times} times" if fetch.times > 1 else ""
        yield Reading(fetch.first_at, _reader(call, fetch.reader), f"fetched{times}",
                      STATES[fetch.state], fetch.sha256, is_read=True)  # fmt: skip


def _reader(call: ToolCall, reader: str) -> str:
    return f"its agent {call.agent.name}" if reader == call.agent_id.hex else reader


def _incidents(call: ToolCall) -> Iterable[Other]:
    for row in Incident.objects.filter(call=call).order_by("-opened_at")[:ROWS_SHOWN]:
        shown = ids.shown("incident", row.id)
        note = spoken(f"{row.kind}, {row.state}")
        yield Other(shown, addresses.of("incident", row.id), None, note)


def _holds(call: ToolCall) -> Iterable[Hold]:
    for row in Interrupt.objects.filter(call=call, ended_at__isnull=True):
        question = reverse("inbox-hold", args=[row.id])
        yield Hold(question, addresses.of("call", row.waits_for_id), row.waits_for_id)


def still(call: ToolCall) -> Still:
    """Read what keeps still, in a constant number of queries."""
    hidden, cancellation = masks.of(call), calls.cancellation_of(call)
    return Still(
        arguments=arguments_of(call, hidden),
        outcome=list(_outcome(call, hidden)),
        handles=list(
            Handle.objects.filter(call=call).defer("value_encrypted").order_by("stored_at")
        ),
        twins=twins.of(call),
        cancellation=cancellation,
        cancelling=CANCELLING[_standing_at_cancel(call, cancellation)],
        tool_at=addresses.of_tool(call.tool),
        session_at=addresses.of("session", call.session_id),
    )


def _standing_at_cancel(call: ToolCall, cancellation: Cancellation) -> str:
    if cancellation.at_once:
        return "at rest"
    runs = Attempt.objects.filter(call=call, kind__in=histories.ROWS_OF, ended_at__isnull=True)
    return "under way" if runs.exists() else "in doubt"


def arguments_of(call: ToolCall, hidden: Hidden | None = None, *, raw: bool = False) -> Payload:
    """The arguments as the tool was given them, masked."""
    secret = hidden or masks.of(call)
    return payloads.of_body(
        call.arguments.encode(), raw=raw, media_type="application/json", why_not_json="",
        title="Arguments", source=FROM_MODEL, sha256=call.arguments_sha256,
        pointers=secret.arguments, known=secret.texts,
        download=reverse("calls-arguments", args=[ids.shown("call", call.id)]),
        reveal=reverse("calls-reveal", args=[ids.shown("call", call.id)]),
    )  # fmt: skip


def result_of(call: ToolCall) -> Result | None:
    """The call's result, or that of the call that it is a twin of."""
    return Result.objects.filter(call=call).first()


def shown_result(call: ToolCall, result: Result, hidden: Hidden, *, raw: bool = False) -> Payload:
    """The result as the tool brought it, masked."""
    return payloads.of_body(
        bytes(result.body), raw=raw, media_type=result.media_type,
        why_not_json=result.why_not_json, title="Result", source=FROM_TOOL, sha256=result.sha256,
        size_bytes=result.size_bytes, pointers=hidden.result, known=hidden.texts,
        download=reverse("calls-result", args=[ids.shown("call", call.id)]),
        reveal=reverse("calls-reveal", args=[ids.shown("call", call.id)]),
    )  # fmt: skip


def _outcome(call: ToolCall, hidden: Hidden) -> Iterable[Payload]:
    """The result, the text in its place, the error, the partial output: what there is of them."""
    result = result_of(call)
    if result is not None:
        yield shown_result(call, result, hidden)
    notice = Notice.objects.filter(call=call).order_by("-seq").first()
    if notice is not None:
        written = f"written by the ledger, template {notice.template}"
        yield payloads.of_text(notice.text, title="Told in place of a result", source=written,
                               known=hidden.texts)  # fmt: skip
    if call.error:
        yield payloads.of_text(call.error, title="Error", source=FROM_TOOL, known=hidden.texts)
    attempt = partials.last_with_output(call)
    partial = attempt and attempts.partial_of(
        call, attempt, hidden, title="Partial output, never a result", most=partials.QUOTED_BYTES
    )
    if partial:
        yield partial
