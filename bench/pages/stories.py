"""The sessions that are copied: each lived through the verbs, so that no history is impossible."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection

from ledger import attempts, claims, offers, registry, replies, sessions, settlements, strictjson
from ledger import workers as ledger_workers
from ledger.claims import Claim
from ledger.conditions import Seen
from ledger.handles import HandleToStore, park
from ledger.messages import Place
from ledger.models import Agent, Membership, Session, ToolCall, Turn, Workspace
from ledger.permissions import Person
from ledger.registry import Author, Declaration
from ledger.replies import Heard
from ledger.sessions import Prompt
from ledger.settlements import Settlement
from ledger.transcripts.neutral import Call, Entry, Role, Text
from ledger.vocabulary import (
    Cause,
    DeliveryMode,
    FenceKind,
    Meaning,
    ProofOfDeath,
    ResolutionAnswer,
)
from ledger.workers import Holder
from recovery import changes, reports, resolutions, statements, watchdog
from recovery.models import Incident
from recovery.resolutions import Decision
from recovery.rulings import Wish

AUTHOR = Author(name="bench", grounds="An installation to be measured needs tools.")
FORMAT = "neutral"
QUEUES = ("effects", "reads", "control")
TOOLS = {
    "orders.lookup": "read_only",
    "crm.search": "read_only",
    "documents.write": "idempotent_write",
    "mail.send": "side_effect",
    "mail.traced": "side_effect",
    "clips.render": "long_running",
}
MORE_TOOLS = 25
POLICIES: dict[str, dict[str, Any]] = {
    "idempotent_write": {"key_template": "path:{path}"},
    "side_effect": {"in_flight_grace_s": 1, "delivery_delay_s": 0},
}
TRACED = {"probe": {"authoritative": False, "interval_s": 600}, "recovery_window_s": 3600}
TURNS = 5
SETTLED_CALLS = 20
"""Of the session of ordinary work: four in each turn."""

Ask = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class Stories:
    """A workspace with tools and one worker, and the sessions that were lived in it."""

    workspace: Workspace
    agent: Agent
    person: User
    holder: Holder
    claims: dict[UUID, Claim] = field(default_factory=dict)

    @classmethod
    def begin(cls, workspace: Workspace, agent: Agent, person: User) -> "Stories":
        for name, recovery_class in TOOLS.items():
            _register(workspace, name, recovery_class)
        for number in range(MORE_TOOLS):
            _register(workspace, f"more.tool_{number:02}", "read_only")
        holder = ledger_workers.register(
            name="bench-1", queues=QUEUES, slots=64, fence_kind=FenceKind.KERNEL
        )
        return cls(workspace, agent, person, holder)

    def live(self) -> dict[str, UUID]:
        """Every story once; the sessions by the name of their story."""
        lived = {}
        for name, story in STORIES.items():
            session, _ = sessions.open_session(
                workspace_id=self.workspace.id, agent_id=self.agent.id,
                label=f"{name.replace('_', ' ').capitalize()} of the week",
                working_directory="/srv/books", host="desk-7", model="house-model-4",
            )  # fmt: skip
            story(self, session)
            lived[name] = session.id
        return lived

    # What happens in a turn

    def turn(self, session: Session, said: str) -> Turn:
        entry = Entry(Role.USER, (Text(said),))
        return sessions.open_turn(session=session, prompt=Prompt(FORMAT, [entry]))[0]

    def asks(self, turn: Turn, said: str, *wanted: Ask) -> list[UUID]:
        """A reply of the model with these calls."""
        heard = Heard(
            format=FORMAT,
            entries=[Entry(Role.ASSISTANT, (Text(said), *(
                Call(f"toolu_{turn.number}_{n}", tool, arguments)
                for n, (tool, arguments) in enumerate(wanted))))],
        )  # fmt: skip
        done = replies.reply(self.place(turn), heard)
        return [done.calls[position].call_id for position in sorted(done.calls)]

    def place(self, turn: Turn) -> Place:
        return Place(
            workspace_id=self.workspace.id, agent_id=self.agent.id,
            session_id=turn.session_id, turn_id=turn.id,
        )  # fmt: skip

    def reads(self, turn: Turn) -> None:
        """The model is shown what came, and says so."""
        made = offers.offer(self.place(turn), mode=DeliveryMode.APPEND_BOTH)
        if made.offer is not None:
            offers.acknowledge(
                workspace_id=self.workspace.id, agent_id=self.agent.id, offer_id=made.offer.id
            )

    def claimed(self, call_id: UUID, *, crosses: bool = True) -> Claim:
        call = ToolCall.objects.get(id=call_id)
        if call_id not in self.claims:
            won = claims.claim(queue=call.queue, holder=self.holder, limit=64)
            self.claims |= {each.call_id: each for each in won}
        claim = self.claims[call_id]
        if crosses and call.effect != "none":
            attempts.cross(call_id=call_id, fence=claim.fence)
        return claim

    def settled(self, call_id: UUID, result: Mapping[str, Any]) -> None:
        settlements.settle([
            Settlement(claim=self.claimed(call_id), stored=strictjson.storable(dict(result)),
                       media_type="application/json")
        ])  # fmt: skip

    def refused(self, call_id: UUID) -> None:
        reports.ended(
            claim=self.claimed(call_id), cause=Cause.VALIDATION, means=Meaning.REFUSED,
            proof=ProofOfDeath.REPORTED, message="The outside refused the arguments.",
        )  # fmt: skip

    def lost(self, call_id: UUID) -> None:
        """The worker falls silent behind the boundary, and the watchdog finds it."""
        self.claimed(call_id)
        _past(call_id, "heartbeat_at")
        _ask("UPDATE ledger_attempt SET lease_until = clock_timestamp() - interval '1 hour' "
             "WHERE call_id = %s", call_id)  # fmt: skip
        watchdog.fire_due()

    def ambiguous(self, call_id: UUID) -> None:
        self.lost(call_id)
        for deadline in ("next_step_at", "recovery_window_at"):
            if ToolCall.objects.get(id=call_id).state == "interrupted":
                _past(call_id, deadline)
                watchdog.fire_due()
        watchdog.prove_dead()

    def decided(self, call_id: UUID) -> None:
        """A person looks, finds it done, and says so."""
        person = self.decider()
        seen = statements.Found(
            kind="checked", finding="happened", message="It is in the list.", reference="sent/4711"
        )
        evidence = statements.state_evidence(call_id=call_id, found=seen, by=person)
        incident = Incident.objects.get(call=call_id)
        wish = Wish(
            answer=ResolutionAnswer.HAPPENED, then="", grounds="The provider lists it.",
            evidence=(evidence.id,), result=None, error="", handle=False,
        )  # fmt: skip
        version = changes.version_after(changes.of(call_id))
        call = ToolCall.objects.get(id=call_id)
        resolutions.record(
            incident_id=incident.id, by=person,
            decision=Decision(wish=wish, seen=Seen(version=version), confirm=f"{call.tool} 1"),
        )  # fmt: skip
        _ask("UPDATE recovery_incident SET pending_until = clock_timestamp() "
             "WHERE call_id = %s AND pending_until IS NOT NULL", call_id)  # fmt: skip
        resolutions.carry_out_due()

    def decider(self) -> Person:
        held = Membership.objects.filter(person=self.person, workspace=self.workspace)
        return Person(
            id=self.person.id, name=self.person.username, workspace_id=self.workspace.id,
            roles=frozenset(held.values_list("role", flat=True)), login_age_s=0.0,
        )  # fmt: skip


# The stories


def ordinary_work(at: Stories, session: Session) -> None:
    """Five turns of four calls, one of them refused outside; each result is read."""
    for number in range(1, TURNS + 1):
        turn = at.turn(session, f"Look after the orders of day {number}, and tell the customer.")
        found, searched, written, sent = at.asks(
            turn, "I look the orders up, write the summary and send it.",
            ("orders.lookup", {"day": number}),
            ("crm.search", {"query": f"customer of day {number}", "limit": 20}),
            ("documents.write", {"path": f"day-{number}.txt", "text": "Three orders came in."}),
            ("mail.send", {"to": "customer@example.org", "subject": f"Day {number}"}),
        )  # fmt: skip
        at.settled(found, {"orders": [{"number": n, "cents": 1000 * n} for n in range(8)]})
        at.settled(searched, {"customers": ["C-1042", "C-1043"]})
        at.settled(written, {"written": True})
        if number == TURNS:
            at.refused(sent)
        else:
            at.settled(sent, {"accepted": True})
        at.reads(turn)
        at.asks(turn, f"Day {number} is done: three orders, and the customer has been told.")
        sessions.close_turn(turn=turn, closed_as="answered")


def _sends(at: Stories, session: Session, tool: str = "mail.send") -> UUID:
    turn = at.turn(session, "Send the invoice.")
    return at.asks(turn, "I send it.", (tool, {"to": "c@example.org", "subject": "2291"}))[0]


def unknown_effect(at: Stories, session: Session) -> None:
    """A worker was lost behind the boundary: an operator's turn."""
    at.ambiguous(_sends(at, session))


def finding_out(at: Stories, session: Session) -> None:
    """The same, and the machine is still finding out."""
    at.lost(_sends(at, session, "mail.traced"))


def decided_by_a_person(at: Stories, session: Session) -> None:
    """The same, and a person found that it had happened."""
    call_id = _sends(at, session)
    at.ambiguous(call_id)
    at.decided(call_id)
    at.reads(Turn.objects.get(session=session))


def rendering_elsewhere(at: Stories, session: Session) -> None:
    """A job runs outside, and its handle is held."""
    turn = at.turn(session, "Render the clip.")
    (call_id,) = at.asks(turn, "I render it.", ("clips.render", {"frames": 600}))
    claim = at.claimed(call_id)
    handle = HandleToStore(value=f"run-{call_id.hex}", poll_after_s=3600)
    park(call_id=call_id, fence=claim.fence, handle=handle)


def asked_twice(at: Stories, session: Session) -> None:
    """The same mail again: it is answered from the first, and sent once."""
    turn = at.turn(session, "Send the invoice, and once more.")
    ask: Ask = ("mail.send", {"to": "c@example.org", "subject": "2292"})
    (first,) = at.asks(turn, "I send it.", ask)
    at.settled(first, {"accepted": True})
    at.asks(turn, "And again.", ask)


def held_behind_it(at: Stories, session: Session) -> None:
    """Whether one mail went out is not known, so the next one waits."""
    turn = at.turn(session, "Send the invoice, then the reminder.")
    (first,) = at.asks(turn, "I send it.", ("mail.send", {"to": "d@example.org"}))
    at.ambiguous(first)
    at.asks(turn, "Then the reminder.", ("mail.send", {"to": "e@example.org"}))


def backing_off(at: Stories, session: Session) -> None:
    """Nothing was reached, so nothing began."""
    call_id = _sends(at, session)
    reports.ended(
        claim=at.claimed(call_id, crosses=False), cause=Cause.CONNECT_FAILED,
        means=Meaning.NOT_BEGUN, proof=ProofOfDeath.REPORTED,
    )  # fmt: skip


def running(at: Stories, session: Session) -> None:
    """A worker holds it."""
    at.claimed(_sends(at, session))


def scheduled(at: Stories, session: Session) -> None:
    """It waits for a worker; nothing may be claimed after it, so it comes last."""
    _sends(at, session)


STORIES: dict[str, Callable[[Stories, Session], None]] = {
    story.__name__: story
    for story in (
        ordinary_work, unknown_effect, finding_out, decided_by_a_person, rendering_elsewhere,
        asked_twice,
        held_behind_it, backing_off, running, scheduled,
    )
}  # fmt: skip


def _register(workspace: Workspace, name: str, recovery_class: str) -> None:
    knobs = POLICIES.get(recovery_class, {}) | (TRACED if name == "mail.traced" else {})
    registry.put(
        workspace=workspace,
        declaration=Declaration(
            name=name, executor="python", config={}, input_schema={},
            description=f"Does what {name} says.", handles=recovery_class == "long_running",
            probes="probe" in knobs,
        ),
        policy={"recovery_class": recovery_class, **knobs},
        by=AUTHOR,
    )  # fmt: skip


def _past(call_id: UUID, deadline: str) -> None:
    _ask(f"UPDATE ledger_toolcall SET {deadline} = clock_timestamp() - interval '1 second' "  # noqa: S608 a column of ours
         f"WHERE id = %s AND {deadline} IS NOT NULL", call_id)  # fmt: skip


def _ask(statement: str, call_id: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, [call_id])
