"""Trying messages against a server that really listens: signed, repeated, given up, resent."""

import threading
from datetime import timedelta

import pytest

from ledger import clock, secrets
from ledger.errors import Invalid, NotFound
from ledger.permissions import Person
from notifications import channels, notifier, sending, signing, transports
from notifications.models import Channel, Delivery, Message, Occurrence
from notifications.sending import RETRY_AFTER_S
from notifications.transports import Outside
from tests import builders, cast, waits
from tests.notifications.telling import (
    WHY,
    Receiver,
    a_channel,
    a_pass,
    due_again,
    messages_of,
    send_all,
    told,
)

pytestmark = pytest.mark.django_db


def fresh(message: Message) -> Message:
    return Message.objects.get(id=message.id)


def a_message(acme: cast.Acme, channel: Channel) -> Message:
    """A message of this channel that is due now."""
    builders.a_call(acme, in_state="ambiguous")
    a_pass()
    return messages_of(channel)[-1]


def test_a_webhook_arrives_signed_over_the_bytes_that_came(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    channel = a_channel(anna, receiver.address)
    message = a_message(acme, channel)
    assert send_all() == 1
    (got,) = receiver.got
    assert got.headers["webhook-id"] == f"ntf_{message.id.hex}"
    assert got.headers["content-type"] == "application/json"
    at = int(got.headers["webhook-timestamp"])
    assert abs(at - clock.now().timestamp()) < 60
    assert channel.secret is not None
    secret = secrets.decrypt(channel.secret)
    signed = signing.signature(secret, got.headers["webhook-id"], at, got.body)
    assert got.headers["webhook-signature"] == signed
    assert (fresh(message).state, Delivery.objects.get().status) == ("sent", 204)


def test_two_secrets_sign_until_the_old_one_ends(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    channel = a_channel(anna, receiver.address)
    channels.renew_secret(channel_id=channel.id, grounds=WHY, by=anna)
    a_message(acme, channel)
    send_all()
    assert len(receiver.got[0].headers["webhook-signature"].split()) == 2
    Channel.objects.update(old_secret_until=clock.now() - timedelta(seconds=1))
    a_message(acme, channel)
    send_all()
    assert len(receiver.got[1].headers["webhook-signature"].split()) == 1


def test_a_failed_try_is_repeated_later_with_the_same_id_and_bytes(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    receiver.status = 503
    message = a_message(acme, a_channel(anna, receiver.address))
    assert [send_all(), send_all()] == [1, 0]
    wait_s = (fresh(message).next_try_at - clock.now()).total_seconds()  # type: ignore[operator]
    assert 3 < wait_s <= 6.1
    receiver.status = 200
    due_again(message)
    send_all()
    first, second = receiver.got
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert fresh(message).state == "sent"
    assert [each.was_taken for each in message.deliveries.order_by("number")] == [False, True]


def test_a_sender_killed_in_its_try_leaves_a_message_that_is_tried_again(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    channel = a_channel(anna, receiver.address)
    message = a_message(acme, channel)
    assert sending._claim(channel.id) is not None  # and then it is gone
    assert send_all() == 0
    due_again(message)
    assert send_all() == 1
    assert fresh(message).state == "sent"
    assert [each.ended_at is None for each in message.deliveries.order_by("number")] == [
        True, False,
    ]  # fmt: skip


def test_retry_after_is_respected(acme: cast.Acme, anna: Person, receiver: Receiver) -> None:
    receiver.status, receiver.headers = 429, {"Retry-After": "1800"}
    message = a_message(acme, a_channel(anna, receiver.address))
    send_all()
    wait_s = (fresh(message).next_try_at - clock.now()).total_seconds()  # type: ignore[operator]
    assert 1700 < wait_s <= 1801


def test_a_redirect_is_a_failure_and_is_not_followed(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    receiver.status, receiver.headers = 307, {"Location": receiver.address}
    message = a_message(acme, a_channel(anna, receiver.address))
    send_all()
    assert len(receiver.got) == 1
    assert fresh(message).state == "waiting"
    assert "redirects" in message.deliveries.get().error


def test_at_most_one_kibibyte_of_an_answer_is_kept(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    receiver.status, receiver.answer = 200, b"\x00<script>" + b"x" * 5000
    message = a_message(acme, a_channel(anna, receiver.address))
    send_all()
    answer = message.deliveries.get().answer
    assert len(answer) == 1024
    assert "\x00" not in answer


def test_a_dead_receiver_is_tried_for_three_days_then_its_channel_goes_off_and_that_is_told(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    dead = a_channel(anna, "http://127.0.0.1:9/nobody", name="dead")
    alive = a_channel(anna, receiver.address, events=("webhook.disabled",))
    message = a_message(acme, dead)
    waiting = a_message(acme, dead)
    Message.objects.filter(id=waiting.id).update(next_try_at=clock.now() + timedelta(days=1))
    for _ in RETRY_AFTER_S:
        send_all()
        due_again(message)
    assert Channel.objects.get(id=dead.id).is_on
    send_all()
    assert fresh(message).state == fresh(waiting).state == "dead"
    gone = Channel.objects.get(id=dead.id)
    assert not gone.is_on
    assert "13 times" in gone.disabled_why
    a_pass(send=True)
    assert told(alive) == ["webhook.disabled"]
    assert b'"channel":"dead"' in receiver.got[0].body
    assert 2 < sum(RETRY_AFTER_S) / 86400 < 3


def test_a_message_that_only_one_receiver_refuses_does_not_end_its_channel(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    channel = a_channel(anna, receiver.address)
    poison = a_message(acme, channel)
    receiver.status = 400
    for _ in RETRY_AFTER_S:
        send_all()
        due_again(poison)
    Message.objects.filter(id=poison.id).update(next_try_at=clock.now() + timedelta(days=1))
    receiver.status = 200
    a_message(acme, channel)
    send_all()
    receiver.status = 400
    due_again(poison)
    send_all()
    assert fresh(poison).state == "dead"
    assert Channel.objects.get(id=channel.id).is_on


def test_410_ends_a_channel_at_once(acme: cast.Acme, anna: Person, receiver: Receiver) -> None:
    receiver.status = 410
    channel = a_channel(anna, receiver.address)
    message = a_message(acme, channel)
    send_all()
    assert fresh(message).state == "dead"
    assert "410" in Channel.objects.get(id=channel.id).disabled_why


def test_a_person_sends_a_dead_message_again_with_its_id(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    receiver.status = 410
    channel = a_channel(anna, receiver.address)
    message = a_message(acme, channel)
    send_all()
    receiver.status = 200
    channels.resend(message_id=message.id, by=anna)
    assert send_all() == 1
    assert fresh(message).state == "sent"
    assert receiver.got[0].headers["webhook-id"] == receiver.got[1].headers["webhook-id"]
    assert not Channel.objects.get(id=channel.id).is_on


def test_what_is_still_tried_is_not_sent_again(acme: cast.Acme, anna: Person) -> None:
    message = a_message(acme, a_channel(anna))
    with pytest.raises(Invalid, match="still being tried"):
        channels.resend(message_id=message.id, by=anna)


def test_a_neighbours_message_is_not_there(
    acme: cast.Acme, anna: Person, globex: cast.Globex
) -> None:
    message = a_message(acme, a_channel(anna))
    with pytest.raises(NotFound):
        channels.resend(message_id=message.id, by=cast.as_decider(globex.mallory_herself))


def test_a_test_message_goes_out_although_the_channel_is_off(
    anna: Person, receiver: Receiver
) -> None:
    channel = a_channel(anna, receiver.address)
    channels.switch(channel_id=channel.id, on=False, grounds=WHY, by=anna)
    channels.test(channel_id=channel.id, by=anna)
    assert send_all() == 1
    assert b'"type":"test"' in receiver.got[0].body


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "169.254.169.254", "::1"])
def test_a_name_that_leads_inside_is_refused_when_it_is_connected_to(
    acme: cast.Acme, anna: Person, address: str
) -> None:
    channel = a_channel(anna, "https://hooks.example.com/x", may_be_local=False)
    message = a_message(acme, channel)
    inside = transports.Network(resolve=lambda host, port: [address])
    send_all(Outside(inside))
    assert fresh(message).state == "waiting"
    assert "may reach" in message.deliveries.get().error


@pytest.mark.django_db(transaction=True)
def test_a_receiver_that_hangs_holds_up_no_other_channel(
    acme: cast.Acme, anna: Person, receiver: Receiver
) -> None:
    from tests.notifications.telling import a_receiver

    with a_receiver() as slow:
        slow.held = threading.Event()
        a_channel(anna, slow.address, name="slow")
        quick = a_channel(anna, receiver.address)
        builders.a_call(acme, in_state="ambiguous")
        a_pass()
        senders = notifier.Senders(Outside())
        assert senders.start() == 2
        waits.until(lambda: told(quick) and receiver.got and slow.got, what="both to be tried")
        waits.until(lambda: messages_of(quick)[0].state == "sent", what="the quick one to be sent")
        assert senders.start() == 0
        slow.held.set()
        senders.end()
    assert set(Message.objects.values_list("state", flat=True)) == {"sent"}
    assert Occurrence.objects.filter(event="incident.opened").count() == 1
