"""A session as its transcript, with what the ledger knows of each call drawn over it.

Read a window of turns at a time, in a fixed number of queries. What stands behind a call is chosen
by the code that renders a session for a provider, so that the page never shows another text than
the model reads. Everything that people, models and tools said is masked before it is clipped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Max

from dashboard import payloads
from dashboard.payloads import FROM_MODEL, FROM_TOOL, Payload
from dashboard.transcript_lines import CORRECTED, Bar, CallShown, Offered, Read, Said, TurnShown
from ledger import conversations, masks
from ledger.calls import Fetchable, read_calls
from ledger.conversations import CORRECTION, Conversation
from ledger.masks import Hidden
from ledger.models import (
    Compaction,
    CompactionCheck,
    Delivery,
    Fetch,
    HandOff,
    Message,
    Offer,
    Session,
    ToolCall,
    Turn,
    TurnEvent,
)
from ledger.vocabulary import TurnEventKind

TURNS = 10
"""How many turns stand on a page."""
CALLS_MAX = 500
"""How many calls of a window are drawn; what is beyond is counted, never hidden."""
PAYLOAD_BYTES = 8 * 1024
"""Up to this size arguments and results unfold in the transcript; above it, on the call's page."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which turns of a session a page shows, by number; turn 0 is what belongs to no turn."""

    first: int
    last: int
    newest: int

    @property
    def earlier(self) -> int | None:
        """The number that leads to the page before; None on the first."""
        return self.first - TURNS if self.first > 0 else None

    @property
    def later(self) -> int | None:
        """The number that leads to the page after; None on the last."""
        return self.first + TURNS if self.first + TURNS <= self.newest else None


def window(session: Session, wanted: int | None) -> Window:
    """The page that holds this turn, or the newest one. Pages begin at 0, 10, 20, …"""
    newest = Turn.objects.filter(session=session).aggregate(n=Max("number"))["n"] or 0
    number = newest if wanted is None else max(0, min(wanted, newest))
    first = number - number % TURNS
    return Window(first, min(first + TURNS - 1, newest), newest)


@dataclass(frozen=True, slots=True)
class Pages:
    """The turns of a window, oldest first, and how many calls of it are not drawn."""

    window: Window
    turns: list[TurnShown]
    left_out: int = 0


def of(session: Session, wanted: int | None = None) -> Pages:
    """The turns of one page of a session."""
    span = window(session, wanted)
    rows = Turn.objects.filter(session=session, number__range=(span.first, span.last))
    turns = {each.id: each for each in rows.order_by("number")}
    calls, left_out = _calls(session, turns, with_loose=span.first == 0)
    reading = _Reading(session, turns, calls)
    return Pages(span, list(reading.turns()), left_out)


def _calls(
    session: Session, turns: dict[UUID, Turn], *, with_loose: bool
) -> tuple[list[Fetchable], int]:
    found = ToolCall.objects.filter(session=session)
    within = found.filter(turn__in=turns) | (
        found.filter(turn=None) if with_loose else found.none()
    )
    order = ("turn__number", "model_step", "position", "id")
    named = list(within.order_by(*order).values_list("id", flat=True)[: CALLS_MAX + 1])
    left_out = within.count() - CALLS_MAX if len(named) > CALLS_MAX else 0
    return read_calls(named[:CALLS_MAX]) if named else [], left_out


class _Reading:
    """Everything that the turns of one window are drawn from; one use."""

    def __init__(
        self, session: Session, turns: dict[UUID, Turn], calls: Sequence[Fetchable]
    ) -> None:
        self._turns = turns
        by_call = [each.call.id for each in calls]
        deliveries = Delivery.objects.filter(call__in=by_call).select_related("turn")
        self._deliveries = _grouped(deliveries.order_by("offered_at", "id"), "call_id")
        self._offers = _offers(turns)
        self._events = _grouped(TurnEvent.objects.filter(turn__in=turns).order_by("id"), "turn_id")
        self._bars = _bars(session, turns)
        fetches = Fetch.objects.filter(call__in=by_call, reader=session.agent_id.hex)
        self._fetched = {each.call_id: each for each in fetches.order_by("last_at")}
        self._hidden = masks.of_calls(each.call for each in calls)
        messages = Message.objects.filter(turn__in=turns).order_by("turn__number", "position")
        self._conversation = Conversation(
            session=session,
            consumer=conversations.CONSUMER,
            turns=turns,
            messages=list(messages),
            calls=calls,
            seen={
                call_id: [each for each in rows if each.consumer == conversations.CONSUMER]
                for call_id, rows in self._deliveries.items()
            },
            compaction=Compaction.objects.filter(session=session).order_by("-number").first(),
            handed_over=_owners(session, calls),
        )

    def turns(self) -> Iterator[TurnShown]:
        """The calls outside any turn, then each turn."""
        loose = self._loose_of(None)
        if loose:
            yield TurnShown(0, None, [self._step(calls) for _, calls in loose])
        for turn in self._turns.values():
            events = self._events.get(turn.id, [])
            said = [e for e in events if e.kind == TurnEventKind.INTERRUPTED]
            yield TurnShown(
                number=turn.number,
                turn=turn,
                lines=list(self._lines(turn)),
                offers=self._offers.get(turn.id, []),
                events=events,
                interruption=said[0].facts if said else {},
            )

    def _loose_of(self, turn_id: UUID | None) -> list[tuple[int, list[Fetchable]]]:
        """The steps of a turn that nobody recorded a reply for."""
        steps = self._conversation.of_step
        return sorted(
            (step, calls)
            for (of_turn, step), calls in steps.items()
            if of_turn == turn_id and (turn_id, step) not in self._conversation.replies
        )

    def _lines(self, turn: Turn) -> Iterator[Said | Bar]:
        loose = self._loose_of(turn.id)
        bars = [each for each in self._bars if each.compaction.through_turn == turn.number]
        for message in self._conversation.messages:
            if message.turn_id != turn.id:
                continue
            while loose and message.model_step is not None and loose[0][0] < message.model_step:
                yield self._step(loose.pop(0)[1])
            yield self._message(message)
            while bars and bars[0].compaction.through_position <= message.position:
                yield bars.pop(0)
        for _, calls in loose:
            yield self._step(calls)
        yield from bars

    def _step(self, calls: Sequence[Fetchable]) -> Said:
        covered = all(self._conversation.covers_call(each.call) for each in calls)
        shown = [self._call(each) for each in calls]
        return Said("assistant", calls[0].call.recorded_at, calls=shown, is_covered=covered)

    def _message(self, message: Message) -> Said:
        parts = message.parts_json
        calls = self._calls_of(message)
        texts = [each["text"] for each in parts if "text" in each]
        others = [str(each["opaque"]) for each in parts if "opaque" in each and "body" in each]
        return Said(
            role=message.role,
            at=message.at,
            position=message.position,
            texts=[payloads.of_text(each, title="Text", source=message.role) for each in texts],
            others=sorted(set(others)),
            calls=[self._call(each) for each in calls],
            refused=message.refused,
            stop_reason=message.stop_reason,
            failed=message.failed,
            is_covered=self._conversation.covers(message),
        )

    def _calls_of(self, message: Message) -> list[Fetchable]:
        if message.model_step is None:
            return []
        return self._conversation.of_step.get((message.turn_id, message.model_step), [])

    def _call(self, fetched: Fetchable) -> CallShown:
        call, result = fetched.call, fetched.result
        shown, hidden = self._conversation.in_place(fetched), self._hidden[call.id]
        fetch = self._fetched.get(call.id)
        is_current = fetch is not None and fetch.state == call.state
        return CallShown(
            call=call,
            shown=shown,
            told="" if shown.is_its_own else hidden.text(shown.text),
            reads=[self._read(each, call) for each in self._deliveries.get(call.id, [])],
            fetched_at=fetch.last_at if fetch is not None and is_current else None,
            is_covered=self._conversation.covers_call(call),
            owner=self._conversation.handed_over.get(call.id),
            arguments=_arguments(call, hidden),
            result=_result(fetched, hidden),
            result_bytes=result.size_bytes if result else 0,
            result_is_error=result is not None and result.is_error,
        )

    def _read(self, row: Delivery, call: ToolCall) -> Read:
        return Read(
            kind=_kind_of(row),
            turn=row.turn.number,
            offered_at=row.offered_at,
            acknowledged_at=row.acknowledged_at,
            consumer=row.consumer,
            is_current=row.state == call.state,
        )


def _kind_of(row: Delivery) -> str:
    return CORRECTED if row.template == CORRECTION else str(row.kind)


def _grouped(rows: Any, name: str) -> dict[UUID, list[Any]]:
    found: dict[UUID, list[Any]] = {}
    for each in rows:
        found.setdefault(getattr(each, name), []).append(each)
    return found


def _offers(turns: dict[UUID, Turn]) -> dict[UUID, list[Offered]]:
    """What each turn was shown, offer by offer, counted by kind."""
    rows = Offer.objects.filter(turn__in=turns).prefetch_related("deliveries")
    found: dict[UUID, list[Offered]] = {}
    for each in rows.order_by("offered_at"):
        kinds: dict[str, int] = {}
        for row in each.deliveries.all():
            kind = _kind_of(row)
            kinds[kind] = kinds.get(kind, 0) + 1
        found.setdefault(each.turn_id, []).append(Offered(each, kinds))
    return found


def _bars(session: Session, turns: dict[UUID, Turn]) -> list[Bar]:
    """The compactions that cut within these turns, in the order of their places."""
    numbers = [each.number for each in turns.values()]
    rows = Compaction.objects.filter(session=session, through_turn__in=numbers)
    checks = CompactionCheck.objects.filter(compaction__in=rows).order_by("at")
    missing = {each.compaction_id: each.missing for each in checks}
    return [
        Bar(each, payloads.of_text(each.summary, title="Summary", source=FROM_MODEL),
            missing.get(each.id, ()))
        for each in rows.order_by("through_turn", "through_position", "number")
    ]  # fmt: skip


def _owners(session: Session, calls: Sequence[Fetchable]) -> dict[UUID, UUID]:
    """The sessions that own calls of this one today."""
    taken = {each.call.id: each.call.handed_off_id for each in calls if each.call.handed_off_id}
    rows = HandOff.objects.filter(id__in=taken.values()) if taken else HandOff.objects.none()
    owners = dict(rows.values_list("id", "to_session_id"))
    found = {call_id: owners.get(hand_off) for call_id, hand_off in taken.items()}
    return {call_id: owner for call_id, owner in found.items() if owner and owner != session.id}


def _arguments(call: ToolCall, hidden: Hidden) -> Payload | None:
    text = call.arguments_received or call.arguments
    size = len(text.encode(errors="replace"))
    if size > PAYLOAD_BYTES:
        return None
    return payloads.of_body(
        text.encode(errors="replace"), media_type="", why_not_json="",
        title=f"Arguments of {call.id.hex[-8:]}",
        source=FROM_MODEL, pointers=hidden.arguments, known=hidden.texts, size_bytes=size,
        sha256=call.arguments_sha256,
    )  # fmt: skip


def _result(fetched: Fetchable, hidden: Hidden) -> Payload | None:
    result = fetched.result
    if result is None or result.size_bytes > PAYLOAD_BYTES:
        return None
    return payloads.of_body(
        bytes(result.body), media_type=result.media_type, why_not_json=result.why_not_json,
        title=f"Result of {fetched.call.id.hex[-8:]}", source=FROM_TOOL,
        size_bytes=result.size_bytes, sha256=result.sha256, pointers=hidden.result,
        known=hidden.texts,
    )  # fmt: skip
