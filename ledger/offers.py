"""What the next turn is shown: offered to one consumer, delivered when that says so (R95, R101).

An offer is made of what nobody confirmed yet: results, notices for calls of earlier turns that have
none, and corrections of what was read otherwise before. What is confirmed is never offered again; a
notice that nobody confirmed is replaced by the result (semantics, section 15).

Locks: the session, so that two offers at once are one after the other, then calls by id.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Coalesce

from ledger import bindings, clock, conversations, ids, messages, notices, outcomes
from ledger.calls import Fetchable, Reader, read_many
from ledger.conversations import CORRECTION, Conversation, place_of
from ledger.entries import line_of
from ledger.errors import NotFound, TurnClosed
from ledger.messages import Place
from ledger.models import Delivery, Offer, Session, ToolCall, Turn
from ledger.models.fields import ClockTimestamp
from ledger.outcomes import Shown
from ledger.transactions import repeatable
from ledger.transcripts.profiles import CAP_BYTES
from ledger.vocabulary import SETTLED, DeliveryKind, DeliveryMode


@dataclass(frozen=True, slots=True)
class Item:
    """One call as a turn is shown it, or would be."""

    fetched: Fetchable
    shown: Shown

    @property
    def call(self) -> ToolCall:
        return self.fetched.call

    @property
    def is_text(self) -> bool:
        """Whether it is told beside the results, since its place was read otherwise before."""
        return self.shown.template == CORRECTION

    @property
    def key(self) -> tuple[UUID, str]:
        return self.call.id, self.shown.sha256


@dataclass(slots=True)
class Lists:
    """What a turn has to know before it is assembled (semantics, 15.2), each in order of place.

    `outcomes` are the undelivered results and the notices for open calls that go with them.
    `unresolved` are all open calls with the text that holds of each, offered or not; `waiting`
    are corrections that are due in the next turn, because the earlier text was read in this one.
    """

    undelivered: list[Item] = field(default_factory=list)
    unresolved: list[Item] = field(default_factory=list)
    corrections: list[Item] = field(default_factory=list)
    waiting: list[Item] = field(default_factory=list)
    outcomes: list[Item] = field(default_factory=list)

    @property
    def offered(self) -> list[Item]:
        """Results and notices in the order of their places, then corrections in theirs."""
        return [*self.outcomes, *self.corrections]


@dataclass(frozen=True, slots=True)
class Offered:
    """An offer with its items in order; without a row where there was nothing to offer."""

    offer: Offer | None
    items: Sequence[Item]
    lists: Lists
    new: bool


@repeatable
def offer(
    place: Place, *, mode: DeliveryMode, consumer: str = conversations.CONSUMER, close: bool = False
) -> Offered:
    """Offer a turn what its consumer has not confirmed; the same again is the same offer.

    `close` gives open calls of this very turn a notice too; those of earlier turns always get one.
    Raises NotFound and TurnClosed.
    """
    session, turn = messages.held(place)
    if not turn.takes_calls:
        raise TurnClosed()
    conversation = conversations.read(
        session, up_to=turn.number, consumer=consumer, leave_out=_done_with(session, consumer)
    )
    found = lists(conversation, turn, close=close)
    items = found.offered
    if not items:
        return Offered(None, [], found, new=False)
    standing = _standing(turn, consumer, mode, items)
    if standing is not None:
        return Offered(standing, items, found, new=False)
    again = [_again(item, conversation) for item in items]
    return Offered(_write(session, turn, consumer, mode, again), again, found, new=True)


def _done_with(session: Session, consumer: str) -> list[UUID]:
    """Calls whose result was confirmed, with no event since: read again, they would say the same.

    Most calls of a long session are such, and their results need not be read to find that out.
    """
    confirmed = Delivery.objects.filter(
        offer__session=session,
        consumer=consumer,
        acknowledged_at__isnull=False,
        kind__in=outcomes.ITS_OWN,
        event_seq=F("call__seq"),
    )
    return list(confirmed.values_list("call", flat=True))


def lists(conversation: Conversation, turn: Turn, *, close: bool = False) -> Lists:
    """Sort the calls of a session into what a turn has to know. Changes nothing."""
    found = Lists()
    for fetched in [*conversation.calls, *conversation.received]:
        now = Item(fetched, conversation.now(fetched))
        if fetched.call.id in conversation.handed_over:
            # Its outcome goes to its owner; who was told something else is told so once.
            if _was_told(conversation, fetched.call):
                _correct(found, conversation, now, turn)
        elif not fetched.call.is_settled:
            found.unresolved.append(now)
            is_earlier = fetched.call.turn_id != turn.id
            if (close or is_earlier) and not _was_told(conversation, fetched.call):
                found.outcomes.append(now)
        elif _was_told(conversation, fetched.call):
            _correct(found, conversation, now, turn)
        elif not conversation.was_answered_with(fetched):
            found.undelivered.append(now)
            found.outcomes.append(now)
    return found


def _was_told(conversation: Conversation, call: ToolCall) -> bool:
    """Whether something was read of it, in its place or in a carry-over."""
    return bool(conversation.acknowledged(call.id)) or _carried(conversation, call) is not None


def _carried(conversation: Conversation, call: ToolCall) -> str | None:
    """The line of the carry-over that stands for this call."""
    compaction = conversation.compaction
    if compaction is None or call.id not in compaction.unresolved:
        return None
    named = ids.shown("call", call.id)
    return next((line for line in map(line_of, compaction.carry_over) if named in line), named)


def _correct(found: Lists, conversation: Conversation, now: Item, turn: Turn) -> None:
    """Add the correction of what was read last, unless that says the same."""
    read: list[Delivery] = []
    for each in conversation.acknowledged(now.call.id):
        if not read or read[-1].sha256 != each.sha256:
            read.append(each)
    if not read:
        earlier = _carried(conversation, now.call) or ""
        found.corrections.append(_correction(now, earlier))
        return
    last = read[-1]
    if now.shown.sha256 == last.sha256:
        return
    before = _words(read[-2], now) if len(read) > 1 else _carried(conversation, now.call) or ""
    if last.template == CORRECTION and _correction(now, before).shown.sha256 == last.sha256:
        return
    item = _correction(now, _words(last, now))
    (found.waiting if last.turn_id == turn.id else found.corrections).append(item)


def _words(delivery: Delivery, now: Item) -> str:
    """What a delivery said."""
    return conversations.as_shown(delivery, now.fetched).text


def _correction(now: Item, earlier: str) -> Item:
    """What is known now, for a model that has read something else before (semantics, 15.3)."""
    known = now.shown.text
    if now.shown.is_its_own:
        known = f"The tool's result: {notices.quoted(known, most_bytes=CAP_BYTES)}"
    told = notices.correction(call=ids.shown("call", now.call.id), earlier=earlier, now=known)
    stated = now.shown.kind is DeliveryKind.OPERATOR_STATED
    kind = DeliveryKind.OPERATOR_STATED if stated else DeliveryKind.NOTICE
    shown = Shown(kind, told.text, told.sha256, told.template, told.version)
    return Item(now.fetched, shown)


def _standing(turn: Turn, consumer: str, mode: DeliveryMode, items: Sequence[Item]) -> Offer | None:
    """The offer of this turn that holds these very items and is not confirmed yet."""
    last = (
        Offer.objects.filter(turn=turn, consumer=consumer, mode=mode, acknowledged_at=None)
        .order_by("-offered_at")
        .first()
    )
    if last is None:
        return None
    held = set(last.deliveries.values_list("call", "sha256"))
    return last if held == {item.key for item in items} else None


def _again(item: Item, conversation: Conversation) -> Item:
    """The same, said to be a replay where these bytes were offered before."""
    seen = {each.sha256 for each in conversation.seen.get(item.call.id, ())}
    if item.shown.kind is not DeliveryKind.REAL or item.shown.sha256 not in seen:
        return item
    return Item(item.fetched, replace(item.shown, kind=DeliveryKind.REPLAYED))


def _write(
    session: Session, turn: Turn, consumer: str, mode: DeliveryMode, items: Sequence[Item]
) -> Offer:
    row = Offer.objects.create(
        workspace_id=session.workspace_id, session=session, turn=turn, consumer=consumer, mode=mode
    )
    Delivery.objects.bulk_create(_delivery(row, item) for item in items)
    row.refresh_from_db()
    return row


def _delivery(row: Offer, item: Item) -> Delivery:
    """What is shown of one call; a stored result is kept by its digest, every other text whole."""
    result = item.fetched.result
    is_stored = result is not None and result.sha256 == item.shown.sha256
    return Delivery(
        workspace_id=row.workspace_id,
        offer=row,
        call_id=item.call.id,
        turn_id=row.turn_id,
        consumer=row.consumer,
        kind=item.shown.kind,
        template=item.shown.template,
        version=item.shown.version,
        text="" if is_stored else item.shown.text,
        sha256=item.shown.sha256,
        state=item.call.state,
        effect=item.call.effect,
        event_seq=item.call.seq,
    )


# Reading and confirming


def get(*, workspace_id: UUID, agent_id: UUID, offer_id: UUID) -> Offered:
    """An offer of the agent's own session as it was made. Raises NotFound."""
    row = _own(workspace_id, agent_id, offer_id)
    return Offered(row, items_of(row.deliveries.all()), Lists(), new=False)


def items_of(deliveries: Iterable[Delivery]) -> list[Item]:
    """Deliveries as they were shown, in the order of turn, step and position."""
    items = [item for _, item in told_of(deliveries)]
    turns = Turn.objects.in_bulk({item.call.turn_id for item in items if item.call.turn_id})
    return sorted(items, key=lambda item: (item.is_text, place_of(item.call, turns)))


def told_of(deliveries: Iterable[Delivery]) -> list[tuple[Delivery, Item]]:
    """Each delivery with what it showed, in the order given."""
    rows = list(deliveries)
    wanted = [(Reader(each.workspace_id), each.call_id) for each in rows]
    found = [each for each in read_many(wanted) if isinstance(each, Fetchable)] if rows else []
    return [
        (each, Item(fetched, conversations.as_shown(each, fetched)))
        for each, fetched in zip(rows, found, strict=True)
    ]


def _own(workspace_id: UUID, agent_id: UUID, offer_id: UUID) -> Offer:
    row = Offer.objects.filter(id=offer_id, workspace=workspace_id, session__agent=agent_id).first()
    if row is None:
        raise NotFound(noun="delivery")
    return row


@repeatable
def acknowledge(
    *, workspace_id: UUID, agent_id: UUID, offer_id: UUID, epoch: int | None = None
) -> Offer:
    """Note that the consumer has sent an offer to its model; a second time changes nothing.

    A fact about the past: it is taken also when the turn is closed by now. Raises NotFound, and
    StaleEpoch: what another process showed its model says nothing about this one's.
    """
    row = _own(workspace_id, agent_id, offer_id)
    session = Session.objects.select_for_update(no_key=True).get(id=row.session_id)
    bindings.check_epoch(session, epoch)
    row = Offer.objects.select_for_update().get(id=row.id)
    if row.acknowledged_at is not None:
        return row
    at = clock.now()
    Offer.objects.filter(id=row.id).update(acknowledged_at=at)
    row.deliveries.update(acknowledged_at=at)
    _stamp(row)
    row.refresh_from_db()
    return row


def _stamp(row: Offer) -> None:
    """Date the calls whose outcome is delivered for the first time."""
    shown = row.deliveries.filter(state__in=SETTLED).values("call")
    calls = ToolCall.objects.filter(id__in=shown).order_by("id")
    held = list(calls.select_for_update(of=("self",), no_key=True).values_list("id", flat=True))
    ToolCall.objects.filter(id__in=held).update(
        delivered_at=Coalesce(F("delivered_at"), ClockTimestamp())
    )
