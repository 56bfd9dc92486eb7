"""Trying messages: claim, send, write down how it ended. At least once, with one id.

The claim is a date: who tries a message first moves its next try beyond the longest try, in a
commit of its own with the row of the log. A sender that is killed leaves that date, and the
message is tried again with the same id and bytes; a receiver tells a repeat by the id.
"""

import random
from datetime import timedelta
from uuid import UUID

from django.db import connection, transaction

from ledger.models.fields import ClockTimestamp
from notifications import channels, transports
from notifications.models import Channel, Delivery, Message
from notifications.transports import Outcome, Outside
from notifications.vocabulary import MessageState

CLAIM_S = 30.0
"""Above `transports.TRY_S` with the connection, so that a living sender is never doubled."""

RETRY_AFTER_S = (5, 30, 120, 600, 1800, 3600, 7200, 14400, 28800, 43200, 57600, 86400)
"""Waits after each failed try, before the jitter; about three days in all (console, 22.7)."""
JITTER = 0.2
RETRY_AFTER_MAX_S = 86400.0
"""The longest wait that a receiver can ask for."""
TRIES_MAX = len(RETRY_AFTER_S) + 1

CLAIM = """
UPDATE notifications_message m
   SET next_try_at = clock_timestamp() + %s * interval '1 second', tries = m.tries + 1
 WHERE m.id = (
   SELECT w.id FROM notifications_message w JOIN notifications_channel h ON h.id = w.channel_id
    WHERE w.channel_id = %s AND w.state = 'waiting' AND w.next_try_at <= clock_timestamp()
      AND (h.is_on OR w.is_asked)
    ORDER BY w.next_try_at, w.id LIMIT 1 FOR UPDATE OF w SKIP LOCKED)
RETURNING m.id
"""


def channels_due(limit: int = 200) -> list[UUID]:
    """The channels that have a message to try now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT w.channel_id FROM notifications_message w "
            "JOIN notifications_channel h ON h.id = w.channel_id WHERE w.state = 'waiting' "
            "AND w.next_try_at <= clock_timestamp() AND (h.is_on OR w.is_asked) LIMIT %s",
            [limit],
        )
        return [row[0] for row in cursor.fetchall()]


def send_due(channel_id: UUID, outside: Outside, limit: int = 50) -> int:
    """Try what is due for a channel, one message after the other; return how many."""
    for tried in range(limit):
        delivery = _claim(channel_id)
        if delivery is None:
            return tried
        message = delivery.message
        _write_down(delivery, transports.send(message, message.channel, outside))
    return limit


@transaction.atomic
def _claim(channel_id: UUID) -> Delivery | None:
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, [CLAIM_S, channel_id])
        found = cursor.fetchone()
    if found is None:
        return None
    message = Message.objects.select_related("channel").get(id=found[0])
    return Delivery.objects.create(
        workspace_id=message.workspace_id,
        message=message,
        number=message.deliveries.count() + 1,
    )


@transaction.atomic
def _write_down(delivery: Delivery, outcome: Outcome) -> None:
    # Channel before message: the order of `channels.silence` and of a person's deeds.
    channel = Channel.objects.select_for_update(no_key=True).get(id=delivery.message.channel_id)
    message = Message.objects.select_for_update().get(id=delivery.message_id)
    Delivery.objects.filter(id=delivery.id).update(
        ended_at=ClockTimestamp(), was_taken=outcome.was_taken, status=outcome.status,
        answer=outcome.answer, error=outcome.error,
    )  # fmt: skip
    if outcome.was_taken:
        _end(message, MessageState.SENT)
        Channel.objects.filter(id=channel.id).update(taken_at=ClockTimestamp())
    elif message.state is not MessageState.WAITING or message.tries != delivery.message.tries:
        return  # another sender went on while this one was stopped, or a person ended it
    elif outcome.is_gone or message.tries >= TRIES_MAX:
        _give_up(channel, message, outcome)
    else:
        wait_s = _wait_s(message.tries, outcome)
        Message.objects.filter(id=message.id).update(
            next_try_at=ClockTimestamp() + timedelta(seconds=wait_s)
        )


def _wait_s(tries: int, outcome: Outcome) -> float:
    """Seconds until the next try: growing, spread by a fifth, never before the receiver asks."""
    own = RETRY_AFTER_S[tries - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 no secret
    return max(own, min(outcome.retry_after_s, RETRY_AFTER_MAX_S))


def _end(message: Message, state: MessageState) -> None:
    Message.objects.filter(id=message.id).update(
        state=state, next_try_at=None, ended_at=ClockTimestamp()
    )


def _give_up(channel: Channel, message: Message, outcome: Outcome) -> None:
    """The message is dead; its channel goes off too where it took nothing since."""
    _end(message, MessageState.DEAD)
    first = message.deliveries.order_by("-number")[: message.tries].values_list("began_at")
    began = min((row[0] for row in first), default=message.made_at)
    if channel.taken_at is not None and channel.taken_at >= began and not outcome.is_gone:
        return
    if not channel.is_on:
        return
    why = "Its receiver said that it is gone (410)." if outcome.is_gone else (
        f"A message failed {message.tries} times, and none was taken meanwhile."
    )  # fmt: skip
    channels.silence(channel.id)
    Channel.objects.filter(id=channel.id).update(disabled_at=ClockTimestamp(), disabled_why=why)
