"""From the outbox to messages: what is told at once, together, later, or not at all.

One thread is one message; more than five in five minutes become one digest; what is critical
passes it. Quiet hours hold everything back but an interrupt that is about to expire. An alarm
that is over before it was told is dropped with its all-clear.
"""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from itertools import groupby
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Case, When

from ledger import clock
from ledger.models.fields import ClockTimestamp
from notifications import rendering
from notifications.models import Channel, Line, Message
from notifications.vocabulary import ALL_CLEAR, CRITICAL, NEVER_QUIET, Dropped, Event

WINDOW = timedelta(minutes=5)
MESSAGES_MAX = 5
"""In one window; what comes on top becomes one digest (console, section 18)."""
LINES_MAX = 1_000
"""Looked at in one pass, with all else that waits on their threads."""
AT_ONCE = CRITICAL | {Event.SWEEP_BACK}
"""These pass the digest."""


def compose(limit: int = 100) -> int:
    """Make the messages that are due, channel by channel; return how many."""
    due = Line.objects.filter(
        message=None, dropped="", due_at__lte=ClockTimestamp(), channel__is_on=True
    )
    return sum(map(_compose, due.values_list("channel", flat=True).distinct()[:limit]))


@transaction.atomic
def _compose(channel_id: UUID) -> int:
    channel = (
        Channel.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
        .filter(id=channel_id, is_on=True)
        .first()
    )
    if channel is None:
        return 0
    now = clock.now()
    told_now = NEVER_QUIET if in_quiet_hours(channel, now) else frozenset(Event)
    lines = _without_what_is_over(channel, now, told_now)
    return len([_message(channel, each) for each in _together(channel, lines, now)])


def _without_what_is_over(
    channel: Channel, now: datetime, told_now: frozenset[Event]
) -> list[Line]:
    """The lines to tell now. An all-clear before its alarm was told drops both, due or not."""
    waiting = _waiting(channel, now, told_now)
    over = {each.occurrence.thread: each.occurrence_id for each in waiting
            if each.occurrence.event in ALL_CLEAR}  # fmt: skip
    told = set(
        Line.objects.filter(
            channel=channel, message__isnull=False, occurrence__thread__in=over
        ).values_list("occurrence__thread", flat=True)
    )
    dropped = [each.id for each in waiting
               if each.occurrence_id <= over.get(each.occurrence.thread, 0)
               and (each.occurrence.thread not in told or each.occurrence.event not in ALL_CLEAR)
               ]  # fmt: skip
    Line.objects.filter(id__in=dropped).update(dropped=Dropped.OVER)
    gone = set(dropped)
    return [each for each in waiting if each.id not in gone and each.due_at <= now
            and each.occurrence.event in told_now]  # fmt: skip


def _waiting(channel: Channel, now: datetime, told_now: frozenset[Event]) -> list[Line]:
    """The first lines that may be told now, with the others of their threads, oldest first.

    What is held back stays out of the bound, and what passes the digest comes first: neither
    makes an interrupt wait that is about to expire.
    """
    rows = Line.objects.filter(channel=channel, message=None, dropped="")
    due = rows.filter(due_at__lte=now, occurrence__event__in=told_now)
    rank = Case(When(occurrence__event__in=AT_ONCE | NEVER_QUIET, then=0), default=1)
    first = due.order_by(rank, "due_at", "occurrence_id")
    threads = set(first.values_list("occurrence__thread", flat=True)[:LINES_MAX])
    of_threads = rows.filter(occurrence__thread__in=threads).select_related("occurrence")
    return list(of_threads.order_by("occurrence_id"))


def in_quiet_hours(channel: Channel, now: datetime) -> bool:
    """Whether the channel's wall clock stands within its quiet hours, which may pass midnight."""
    if channel.quiet_from is None or channel.quiet_to is None:
        return False
    here = now.astimezone(ZoneInfo(channel.zone or "UTC")).time()
    return _between(here, channel.quiet_from, channel.quiet_to)


def _between(here: time, begins: time, ends: time) -> bool:
    if begins < ends:
        return begins <= here < ends
    return here >= begins or here < ends


def _together(channel: Channel, lines: Sequence[Line], now: datetime) -> list[list[Line]]:
    """The lines in groups, one for each message that is made now."""
    passing = [each for each in lines if _passes(each)]
    threads = {each.occurrence.thread for each in passing}
    # What is critical takes the other steps of its thread along.
    at_once = _by_thread([each for each in lines if each.occurrence.thread in threads])
    ordinary = _by_thread([each for each in lines if each.occurrence.thread not in threads])
    if not ordinary:
        return at_once
    recent = _recent(channel, now)
    # Held back that long, by the digest or by quiet hours, it is told together.
    has_waited = min(line.due_at for group in ordinary for line in group) <= now - WINDOW
    if not has_waited and len(ordinary) + recent <= MESSAGES_MAX:
        return at_once + ordinary
    if not has_waited and recent:
        return at_once  # the rest waits until it is one digest
    return [*at_once, [line for group in ordinary for line in group]]


def _passes(line: Line) -> bool:
    return line.occurrence.event in AT_ONCE


def _by_thread(lines: Sequence[Line]) -> list[list[Line]]:
    ordered = sorted(lines, key=lambda each: (each.occurrence.thread, each.occurrence_id))
    groups = [list(group) for _, group in groupby(ordered, lambda each: each.occurrence.thread)]
    return sorted(groups, key=lambda group: group[0].occurrence_id)


def _recent(channel: Channel, now: datetime) -> int:
    """How many messages of the window count against the digest: critical ones and tests do not."""
    return (
        Message.objects.filter(channel=channel, made_at__gt=now - WINDOW)
        .exclude(event__in=[*AT_ONCE, Event.TEST])
        .count()
    )


def _message(channel: Channel, lines: Sequence[Line]) -> Message:
    message = rendering.message_of(channel, [each.occurrence for each in lines])
    message.next_try_at = ClockTimestamp()
    message.save(force_insert=True)
    Line.objects.filter(id__in=[each.id for each in lines]).update(message=message)
    return message
