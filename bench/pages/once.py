"""What is there once beside the copied sessions, so that its pages are read as well."""

import json
from collections.abc import Callable
from typing import Any

from django.http import QueryDict

from bench.pages.stories import Stories
from dashboard import saved_views
from ledger import compactions, handoffs
from ledger.compactions import Wanted as WantedCut
from ledger.handoffs import Offer
from ledger.imports import receiving
from ledger.models import Agent, Policy, Session
from ledger.vocabulary import Actor, BreakerState, GateKind, ResolutionAnswer
from notifications import channels
from notifications.channels import Wanted as WantedChannel
from notifications.vocabulary import CHOSEN, ChannelKind
from recovery import breakers, bulk, imports, rehearsals
from recovery.bulk import Selection
from recovery.imports import By
from recovery.imports import Wanted as WantedImport
from recovery.models import Breaker, Incident
from recovery.rulings import Wish

BULK_ROWS = 200
TURNS_IMPORTED = 100
GROUNDS = "An installation to be measured needs one of each."


def make(at: Stories) -> None:
    """One of each. The incidents of the bulk run are among those that were copied."""
    for each in ONE_OF_EACH:
        each(at)


def compacted(at: Stories) -> None:
    session = _ordinary(at)
    prepared = compactions.prepare(session=session)
    compactions.commit(
        workspace_id=at.workspace.id, agent_id=at.agent.id, session_id=session.id,
        wanted=WantedCut(token=prepared.token, cut=prepared.cuts[0].place,
                         summary="The first days are done; each customer has been told."),
    )  # fmt: skip


def handed_on(at: Stories) -> None:
    Agent.objects.get_or_create(workspace=at.workspace, name="receiver")
    session = Session.objects.filter(label__startswith="Rendering").latest("id")
    handoffs.offer(
        workspace_id=at.workspace.id, agent_id=at.agent.id, session_id=session.id,
        wanted=Offer(agent="receiver", epoch=session.epoch, grounds=GROUNDS),
    )  # fmt: skip


def imported(at: Stories) -> None:
    """A long conversation in which every tenth call has lost its result."""
    body = json.dumps([each for number in range(TURNS_IMPORTED) for each in _broken_turn(number)])
    imports.take(WantedImport(
        workspace_id=at.workspace.id, agent_id=at.agent.id, key="bench",
        received=receiving.received(body.encode(), content_type="application/json",
                                    format="openai-chat"),
        by=By(actor=Actor.AGENT, id=at.agent.id.hex, name=at.agent.name),
        binding={"label": "Imported"},
    ))  # fmt: skip


def _broken_turn(number: int) -> list[dict[str, Any]]:
    asked = {"name": "orders.lookup", "arguments": json.dumps({"day": number})}
    call: dict[str, Any] = {"id": f"call_{number}", "type": "function", "function": asked}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "Three orders."}
    return [
        {"role": "user", "content": f"What came in on day {number}?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        *([result] if number % 10 else []),
        {"role": "assistant", "content": "Three orders."},
    ]


def decided_in_bulk(at: Stories) -> None:
    rows = Incident.objects.filter(workspace=at.workspace, state="exhausted", closed_at=None)
    bulk.freeze(
        selection=Selection(incidents=list(rows.values_list("id", flat=True)[:BULK_ROWS])),
        wish=Wish(answer=ResolutionAnswer.ABANDON, grounds=GROUNDS),
        evidence={}, by=at.decider(),
    )  # fmt: skip


def a_breaker(at: Stories) -> None:
    row = Breaker.objects.create(workspace=at.workspace, kind=GateKind.TOOL, name="crm.search")
    breakers.put(
        workspace_id=at.workspace.id, breaker_id=row.id, state=BreakerState.OPEN, grounds=GROUNDS,
        person=at.person,
    )  # fmt: skip


def a_trial(at: Stories) -> None:
    present = Policy.objects.filter(workspace=at.workspace, tool__name="mail.send").latest("number")
    document = present.document | {"review_s": 3600.0}
    rehearsals.attempt(person=at.decider(), tool_name="mail.send", document=document)


def a_view(at: Stories) -> None:
    saved_views.save(person=at.decider(), page="calls", address=QueryDict("state=ambiguous"),
                     name="Unknown", shared=True)  # fmt: skip


def a_channel(at: Stories) -> None:
    channels.make(
        kind=ChannelKind.WEBHOOK, target="https://hooks.example.org/clearhouse",
        wanted=WantedChannel(name="On call", events=tuple(CHOSEN)), grounds=GROUNDS,
        by=at.decider(),
    )  # fmt: skip


def _ordinary(at: Stories) -> Session:
    return Session.objects.filter(workspace=at.workspace, label__startswith="Ordinary").latest("id")


ONE_OF_EACH: tuple[Callable[[Stories], None], ...] = (
    compacted, handed_on, imported, decided_in_bulk, a_breaker, a_trial, a_view, a_channel,
)  # fmt: skip
