"""Hand-offs: a session's unresolved calls pass to another session, under the same ids (R108).

Offered, then accepted (`ledger/acceptances.py`), declined, or expired after fifteen minutes. Until
it is accepted the sender owns its calls and goes on with them; an offer changes nothing else.

Locks: sessions in the order of their ids, hand-off.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from ledger import bindings, clock, ids, unresolved
from ledger.carry_over import Line, lines
from ledger.errors import (
    HandOffEnded,
    HandOffOpen,
    Invalid,
    KeyReused,
    NotFound,
)
from ledger.models import Agent, HandOff, Session, ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.transactions import repeatable
from ledger.vocabulary import HandOffEnd

EXPIRES_S = 15 * 60
"""How long an offer stands, in seconds (semantics, 16.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """To whom a session offers its calls, and why. Without a session, one of the agent's choice.

    `epoch` is the one that the sender's agent knows; None means the first.
    """

    agent: str
    session_id: UUID | None = None
    model: str = ""
    grounds: str
    key: str = ""
    epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Who answers an offer: an agent by its key, and for an acceptance the session that takes it.

    `epoch` is the one the session was seen at, if the agent says so.
    """

    workspace_id: UUID
    agent_id: UUID
    scopes: frozenset[str] = frozenset()
    session_id: UUID | None = None
    epoch: int | None = None


# Offering


@repeatable
def offer(
    *, workspace_id: UUID, agent_id: UUID, session_id: UUID, wanted: Offer
) -> tuple[HandOff, bool]:
    """Offer the unresolved calls of a session; the same key gives the same offer, and False.

    Raises NotFound for a session, agent or receiving session that is absent or foreign,
    HandOffOpen, KeyReused, StaleEpoch, and Invalid for an offer to itself or without grounds.
    """
    if not wanted.grounds.strip():
        raise Invalid(detail="A hand-off needs grounds: say why in one sentence.")
    session = locked([session_id], workspace_id)[session_id]
    if session.agent_id != agent_id:
        raise NotFound(noun="session")
    receiver = _agent(workspace_id, wanted.agent)
    known = _known(session, receiver, wanted)
    if known is not None:
        return known, False
    bindings.check_epoch(session, wanted.epoch)
    _refuse_unofferable(session, receiver, wanted)
    row = HandOff.objects.create(
        workspace_id=workspace_id,
        from_session=session,
        to_agent=receiver,
        to_session_id=wanted.session_id,
        to_model=wanted.model,
        key=wanted.key,
        grounds=wanted.grounds,
        expires_at=clock.now() + timedelta(seconds=EXPIRES_S),
    )
    return row, True


def _agent(workspace_id: UUID, name: str) -> Agent:
    # Another workspace's agent reads like none (16.7; R110).
    agent = Agent.objects.filter(workspace=workspace_id, name=name).first()
    if agent is None:
        raise NotFound(noun="agent")
    return agent


def _known(session: Session, receiver: Agent, wanted: Offer) -> HandOff | None:
    found = HandOff.objects.filter(from_session=session, key=wanted.key).first()
    if not wanted.key or found is None:
        return None
    asked = (receiver.id, wanted.model, wanted.grounds)
    if (found.to_agent_id, found.to_model, found.grounds) != asked:
        raise KeyReused(earlier="another hand-off of this session")
    return found


def _refuse_unofferable(session: Session, receiver: Agent, wanted: Offer) -> None:
    if wanted.session_id == session.id:
        raise Invalid(detail="A session cannot hand its calls to itself.")
    theirs = Session.objects.filter(id__in=[wanted.session_id], agent=receiver)
    if wanted.session_id is not None and not theirs.exists():
        raise NotFound(noun="session")
    present = HandOff.objects.filter(from_session=session, ended_at__isnull=True).first()
    if present is not None:
        raise HandOffOpen(hand_off=ids.shown("hand_off", present.id))


# Answering


@repeatable
def refuse(*, hand_off_id: UUID, by: Receiver, why: str = "") -> tuple[HandOff, bool]:
    """Decline an offer; declining twice is one. Raises NotFound and HandOffEnded."""
    offered = offered_to(hand_off_id, by)
    locked({offered.from_session_id}, by.workspace_id)
    row = HandOff.objects.select_for_update(of=("self",)).get(id=offered.id)
    if row.ended_as == HandOffEnd.DECLINED:
        return row, False
    refuse_ended(row)
    end(row, HandOffEnd.DECLINED, ended_why=why)
    return row, True


def get(*, workspace_id: UUID, agent_id: UUID, hand_off_id: UUID) -> HandOff:
    """A hand-off that this agent gave or was offered. Raises NotFound."""
    row = (
        HandOff.objects.filter(Q(from_session__agent=agent_id) | Q(to_agent=agent_id))
        .filter(id=hand_off_id, workspace=workspace_id)
        .first()
    )
    if row is None:
        raise NotFound(noun="hand-off")
    return row


def locked(session_ids: Iterable[UUID], workspace_id: UUID) -> dict[UUID, Session]:
    """These sessions of a workspace under their locks. Raises NotFound."""
    rows = Session.objects.select_for_update(no_key=True).filter(
        id__in=list(session_ids), workspace=workspace_id
    )
    found = {row.id: row for row in rows.order_by("id")}
    if len(found) < len(set(session_ids)):
        raise NotFound(noun="session")
    return found


def offered_to(hand_off_id: UUID, by: Receiver) -> HandOff:
    """The hand-off as its receiver finds it. Raises NotFound."""
    row = HandOff.objects.filter(
        id=hand_off_id, workspace=by.workspace_id, to_agent=by.agent_id
    ).first()
    if row is None:
        raise NotFound(noun="hand-off")
    return row


def refuse_ended(row: HandOff) -> None:
    """Raise HandOffEnded for one that ended, or whose time is over."""
    if row.ended_at is not None:
        raise HandOffEnded(ended=row.ended_as)
    if row.expires_at <= clock.now():
        raise HandOffEnded(ended=HandOffEnd.EXPIRED)


def end(row: HandOff, ended_as: HandOffEnd, **columns: object) -> None:
    """End a hand-off whose lock the caller holds."""
    HandOff.objects.filter(id=row.id).update(
        ended_as=ended_as, ended_at=ClockTimestamp(), **columns
    )
    row.refresh_from_db()


# Reading and expiring


def set_of(row: HandOff) -> list[Line]:
    """The unresolved calls of a hand-off: as fixed by its acceptance, else as they stand now."""
    if row.ended_as != HandOffEnd.ACCEPTED:
        return lines(unresolved.of_session(row.from_session_id)) if row.ended_at is None else []
    taken = ToolCall.objects.open().filter(id__in=row.calls).select_related("turn", "tool_version")
    return lines(sorted(taken, key=lambda call: row.calls.index(call.id)))


def expire_due(limit: int) -> int:
    """End the offers that nobody answered in time; safe to run twice. Served by `hand_off_due`."""
    with transaction.atomic():
        due = (
            HandOff.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(ended_at__isnull=True, expires_at__lte=ClockTimestamp())
            .order_by("expires_at")[:limit]
        )
        for row in due:
            end(row, HandOffEnd.EXPIRED)
        return len(due)
