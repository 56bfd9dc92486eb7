"""What the pages of notifications show: channels, what each was told, the log of the tries.

A target is shown by its host alone, and no secret is ever read here.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count
from django.utils.text import capfirst

from dashboard.label_filters import plain
from ledger import ids
from ledger.vocabulary import RecoveryClass
from notifications.models import Channel, ChannelChange, Delivery, Message
from notifications.rendering import DIGEST
from notifications.vocabulary import CHOSEN, ChannelKind, MessageState

MESSAGES_MAX = 50
TRIES_MAX = 20
CHANGES_MAX = 20

KINDS = {
    ChannelKind.WEBHOOK: "Webhook, signed (Standard Webhooks)",
    ChannelKind.SLACK: "Slack, or what takes its incoming webhooks",
    ChannelKind.MAIL: "Mail",
}
EVENTS = {
    "incident.opened": "an incident waits for a person",
    "review.near": "90 % of its review time are over",
    "review.past": "its review time is over",
    "incident.disputed": "somebody disputes what another recorded",
    "approval.requested": "a decision waits for a second person",
    "interrupt.raised": "a paused call waits for an answer",
    "interrupt.expiring": "the time for an answer is nearly over; passes quiet hours",
    "result.late": "a late result came for what a person looks at",
    "session.drifted": "a session came back with another binding",
    "budget.spent": "a budget is spent",
    "bulk_run.finished": "a bulk run has finished",
    "webhook.disabled": "another channel was switched off by itself",
    "sweep.silent": "the watchdog has stopped sweeping",
}
assert list(EVENTS) == [str(each) for each in CHOSEN]  # noqa: S101 a new event must be explained

CLASSES = plain(RecoveryClass)
STANDINGS = {
    MessageState.WAITING: "waiting",
    MessageState.SENT: "taken",
    MessageState.DEAD: "given up",
}
DONE = {
    "made": "made",
    "changed": "changed",
    "secret_renewed": "renewed the secret of",
    "switched_on": "switched on",
    "switched_off": "switched off",
    "tested": "sent a test through",
    "resent": "sent a message again through",
}
assert DONE.keys() == set(ChannelChange.WHAT)  # noqa: S101 a new deed must be told


@dataclass(frozen=True, slots=True)
class Row:
    """One channel of the list."""

    id: str
    name: str
    kind: str
    shown: str
    standing: str
    """`on`, `off`, or `disabled`."""
    why: str
    taken_at: datetime | None
    waiting: int
    dead: int


@dataclass(frozen=True, slots=True)
class Try:
    """One try of a message."""

    number: int
    began_at: datetime
    took_s: float | None
    status: int | None
    said: str
    answer: str


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of a channel with its tries, the newest first."""

    id: str
    event: str
    title: str
    lines: int
    made_at: datetime
    standing: str
    next_try_at: datetime | None
    tries: list[Try]
    more_tries: int

    @property
    def can_be_resent(self) -> bool:
        return self.next_try_at is None


@dataclass(frozen=True, slots=True)
class Change:
    """One line of what admins did."""

    by_name: str
    done: str
    about: str
    after: str
    grounds: str
    at: datetime


def rows_of(workspace_id: UUID) -> list[Row]:
    """The channels of a workspace by name, with what waits and what was given up."""
    counts = _counts(workspace_id)
    return [
        Row(
            id=str(each), name=each.name, kind=str(each.kind), shown=each.shown,
            standing=standing_of(each), why=each.disabled_why, taken_at=each.taken_at,
            waiting=counts.get((each.id, MessageState.WAITING), 0),
            dead=counts.get((each.id, MessageState.DEAD), 0),
        )
        for each in Channel.objects.filter(workspace=workspace_id).order_by("name")
    ]  # fmt: skip


def standing_of(channel: Channel) -> str:
    if channel.is_on:
        return "on"
    return "disabled" if channel.disabled_at else "off"


def _counts(workspace_id: UUID) -> dict[tuple[UUID, MessageState], int]:
    rows = Message.objects.filter(workspace=workspace_id).exclude(state=MessageState.SENT)
    found = rows.values_list("channel", "state").annotate(n=Count("id")).order_by()
    return {(channel, MessageState(state)): n for channel, state, n in found}


def messages_of(channel: Channel) -> list[Sent]:
    """What a channel was told last, with the log of the tries; two queries."""
    messages = list(Message.objects.filter(channel=channel).order_by("-made_at")[:MESSAGES_MAX])
    tries: dict[UUID, list[Delivery]] = {}
    for each in Delivery.objects.filter(message__in=messages).order_by("message", "-number"):
        tries.setdefault(each.message_id, []).append(each)
    return [_sent(each, tries.get(each.id, [])) for each in messages]


def _sent(message: Message, tries: list[Delivery]) -> Sent:
    return Sent(
        id=str(message),
        event=message.event if message.event != DIGEST else f"digest of {message.lines_count}",
        title=message.title, lines=message.lines_count, made_at=message.made_at,
        standing=STANDINGS[message.state], next_try_at=message.next_try_at,
        tries=[_try(each) for each in tries[:TRIES_MAX]],
        more_tries=max(0, len(tries) - TRIES_MAX),
    )  # fmt: skip


def _try(delivery: Delivery) -> Try:
    took = delivery.ended_at - delivery.began_at if delivery.ended_at else None
    said = "taken" if delivery.was_taken else delivery.error
    if delivery.ended_at is None:
        said = "Its end is not known yet. Where the notifier was stopped in it, it is tried again."
    return Try(
        number=delivery.number, began_at=delivery.began_at,
        took_s=round(took.total_seconds(), 2) if took else None, status=delivery.status,
        said=capfirst(said), answer=delivery.answer,
    )  # fmt: skip


def changes_of(workspace_id: UUID, channel: Channel | None = None) -> list[Change]:
    """The newest deeds of admins, of all channels or of one."""
    rows = ChannelChange.objects.filter(workspace=workspace_id)
    rows = rows.filter(channel=channel) if channel else rows
    return [
        Change(each.by_name, DONE[each.what], each.about, each.after, each.grounds, each.at)
        for each in rows.order_by("-id")[:CHANGES_MAX]
    ]


def id_of(text: str) -> UUID:
    """A channel's id as it stands in an address. Raises NotFound."""
    return ids.read("channel", text)


def typed(channel: Channel) -> dict[str, Any]:
    """A channel as its form shows it; the target is never shown again."""
    return {
        "name": channel.name, "events": channel.events, "tools": ", ".join(channel.tools),
        "classes": channel.classes, "least_age_min": round(channel.least_age_s / 60),
        "quiet_from": channel.quiet_from, "quiet_to": channel.quiet_to,
        "zone": channel.zone, "may_be_local": channel.may_be_local,
    }  # fmt: skip
