"""A session of the ledger as it is read: turns, messages, calls, and what was shown of each.

Everything comes in a fixed number of queries, however long the session is. Results are no rows of
their own: what stands behind a call is chosen from the call (transcripts, part e), and a text that
a model has read stays where it was read (semantics, 15.3). Reading changes nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from uuid import UUID

from ledger import ids, notices, outcomes, unresolved
from ledger.calls import Fetchable, read_calls, read_session
from ledger.models import Compaction, Delivery, Fetch, HandOff, Message, Session, ToolCall, Turn
from ledger.outcomes import Shown
from ledger.vocabulary import DeliveryKind

CONSUMER = "agent"
"""Who takes deliveries where nobody says otherwise."""
CORRECTION = "correction"

Place = tuple[int, int, int, str]
"""Where a call stands: turn number (0 without a turn), model step, position, our id."""


@dataclass(frozen=True)
class Conversation:
    """One session as it stands for one consumer, in the order of turn, step and position.

    `seen` are the deliveries of each call to that consumer, oldest first; `fetched` the digests
    that the agent read through the API, by call. `received` are the calls of other sessions that
    were handed over to this one and are its own today, `handed_over` the sessions that own calls
    of this one today.
    """

    session: Session
    consumer: str
    turns: Mapping[UUID, Turn]
    messages: Sequence[Message]
    calls: Sequence[Fetchable]
    seen: Mapping[UUID, Sequence[Delivery]]
    fetched: Mapping[UUID, frozenset[str]] = field(default_factory=dict)
    compaction: Compaction | None = None
    received: Sequence[Fetchable] = ()
    handed_over: Mapping[UUID, UUID] = field(default_factory=dict)

    @cached_property
    def of_step(self) -> Mapping[tuple[UUID | None, int], list[Fetchable]]:
        """The calls by turn and model step."""
        found: dict[tuple[UUID | None, int], list[Fetchable]] = {}
        for each in self.calls:
            found.setdefault((each.call.turn_id, each.call.model_step), []).append(each)
        return found

    @cached_property
    def replies(self) -> Mapping[tuple[UUID, int], Message]:
        """The recorded replies by turn and model step."""
        return {
            (each.turn_id, each.model_step): each
            for each in self.messages
            if each.model_step is not None
        }

    def number_of(self, call: ToolCall) -> int:
        """The number of a call's turn; 0 where it has none."""
        return place_of(call, self.turns)[0]

    def place_of(self, call: ToolCall) -> Place:
        """Where a call stands, independent of when anything arrived (R105)."""
        return place_of(call, self.turns)

    def closed_as(self, call: ToolCall) -> str:
        """How the turn of a call ended; empty while it is open."""
        turn = self.turns.get(call.turn_id) if call.turn_id else None
        return turn.closed_as if turn else ""

    # What was shown

    def acknowledged(self, call_id: UUID) -> list[Delivery]:
        """What this consumer confirmed of a call, oldest first."""
        return [each for each in self.seen.get(call_id, ()) if each.acknowledged_at is not None]

    def now(self, fetched: Fetchable) -> Shown:
        """What holds of a call now. Who was shown it otherwise is told so by a correction."""
        owner = self.handed_over.get(fetched.call.id)
        if owner is not None:
            told = notices.render("handed_over", session=ids.shown("session", owner))
            return outcomes.of_text(told)
        if self.acknowledged(fetched.call.id):
            fetched = replace(fetched, read_before=False)
        return outcomes.shown(fetched, turn_closed_as=self.closed_as(fetched.call))

    def in_place(self, fetched: Fetchable) -> Shown:
        """What stands behind a call: what was read there, or what holds while nothing was."""
        for each in self.acknowledged(fetched.call.id):
            if each.template != CORRECTION:
                return as_shown(each, fetched)
        return self.now(fetched)

    def was_answered_with(self, fetched: Fetchable) -> bool:
        """Whether its turn was answered after the agent had fetched this very outcome."""
        read = self.fetched.get(fetched.call.id, frozenset())
        is_answered = self.closed_as(fetched.call) == "answered" or not fetched.call.turn_id
        return is_answered and outcomes.digest_of(fetched) in read

    # What a compaction covers

    def covers(self, message: Message) -> bool:
        """Whether the latest summary stands for this message."""
        if self.compaction is None:
            return False
        place = (self.turns[message.turn_id].number, message.position)
        return place <= (self.compaction.through_turn, self.compaction.through_position)

    def covers_call(self, call: ToolCall) -> bool:
        """Whether the latest summary stands for the place of this call."""
        if self.compaction is None:
            return False
        reply = self.replies.get((call.turn_id, call.model_step)) if call.turn_id else None
        if reply is not None:
            return self.covers(reply)
        number, through = self.number_of(call), self.compaction.through_turn
        is_before = call.recorded_at is not None and call.recorded_at <= self.compaction.at
        return number < through or number == through and is_before


def as_shown(delivery: Delivery, fetched: Fetchable) -> Shown:
    """What a delivery showed: its text, or the stored result that it names by digest."""
    kind = DeliveryKind(delivery.kind)
    if not delivery.text and fetched.result is not None:
        text, parts = outcomes.text_of(fetched.result), outcomes.parts_of(fetched.result)
        is_error = fetched.result.is_error
        return Shown(kind, text, delivery.sha256, is_error=is_error, parts=parts)
    is_error = kind is not DeliveryKind.OPERATOR_STATED
    return Shown(
        kind, delivery.text, delivery.sha256, delivery.template, delivery.version, is_error
    )


def read(
    session: Session,
    *,
    up_to: int | None = None,
    consumer: str = CONSUMER,
    leave_out: Collection[UUID] = (),
) -> Conversation:
    """A session with its turns up to that number, all of them without one; some calls left out.

    A fixed number of queries. What reads like one instant is one: the caller opens a transaction
    where a change in between would matter.
    """
    turns = {
        each.id: each
        for each in Turn.objects.filter(session=session).order_by("number")
        if up_to is None or each.number <= up_to
    }
    calls = _calls(session, turns, leave_out)
    return Conversation(
        session=session,
        consumer=consumer,
        turns=turns,
        messages=_messages(session, turns),
        calls=calls,
        received=_received(session),
        handed_over=_handed_over(session, calls),
        seen=_seen(session, turns, consumer),
        fetched=_fetched(session),
        compaction=_compaction(session, up_to),
    )


def _calls(
    session: Session, turns: Mapping[UUID, Turn], leave_out: Collection[UUID]
) -> list[Fetchable]:
    """The calls in the order of turn, step and position, never in that of arrival (R105)."""

    def place(fetched: Fetchable) -> Place:
        return place_of(fetched.call, turns)

    found = read_session(session.id, leave_out)
    return sorted(
        (each for each in found if each.call.turn_id is None or each.call.turn_id in turns),
        key=place,
    )


def _received(session: Session) -> list[Fetchable]:
    """The calls taken over from other sessions, in the order of their ids."""
    owned = ToolCall.objects.filter(unresolved.owned_by(session.id)).exclude(session=session)
    ids_ = list(owned.order_by("id").values_list("id", flat=True))
    return read_calls(ids_) if ids_ else []


def _handed_over(session: Session, calls: Sequence[Fetchable]) -> dict[UUID, UUID]:
    """The session that owns each call today, where that is another one."""
    taken = {each.call.id: each.call.handed_off_id for each in calls if each.call.handed_off_id}
    if not taken:
        return {}
    owners = dict(HandOff.objects.filter(id__in=taken.values()).values_list("id", "to_session_id"))
    found = {call_id: owners.get(hand_off) for call_id, hand_off in taken.items()}
    return {call_id: owner for call_id, owner in found.items() if owner and owner != session.id}


def place_of(call: ToolCall, turns: Mapping[UUID, Turn]) -> Place:
    """Where a call stands in its session."""
    turn = turns.get(call.turn_id) if call.turn_id else None
    number = turn.number if turn else 0
    return (number, call.model_step, call.position, call.id.hex)


def _messages(session: Session, turns: Mapping[UUID, Turn]) -> list[Message]:
    found = Message.objects.filter(session=session).order_by("turn__number", "position")
    return [each for each in found if each.turn_id in turns]


def _seen(
    session: Session, turns: Mapping[UUID, Turn], consumer: str
) -> dict[UUID, list[Delivery]]:
    found = Delivery.objects.filter(offer__session=session, consumer=consumer)
    seen: dict[UUID, list[Delivery]] = {}
    for each in found.order_by("offered_at", "id"):
        if each.turn_id in turns:
            seen.setdefault(each.call_id, []).append(each)
    return seen


def _fetched(session: Session) -> dict[UUID, frozenset[str]]:
    rows = Fetch.objects.filter(call__session=session, reader=session.agent_id.hex)
    found: dict[UUID, set[str]] = {}
    for call_id, digest in rows.values_list("call_id", "sha256"):
        found.setdefault(call_id, set()).add(digest)
    return {call_id: frozenset(digests) for call_id, digests in found.items()}


def _compaction(session: Session, up_to: int | None) -> Compaction | None:
    found = Compaction.objects.filter(session=session)
    if up_to is not None:
        found = found.filter(through_turn__lte=up_to)
    return found.order_by("-number").first()
