"""Forgetting: what is over, told and old goes with its log; nothing is told a second time by it."""

from datetime import timedelta

import pytest
from django.db.models import F

from ledger.models import ToolCall
from ledger.permissions import Person
from notifications import pruning
from notifications.models import Channel, Delivery, Line, Message, Occurrence
from tests import builders, cast
from tests.notifications.telling import Receiver, a_channel, a_pass, told
from tests.notifications.test_sources import give_up

pytestmark = pytest.mark.django_db
MONTH = timedelta(days=pruning.KEPT_DAYS, minutes=1)


@pytest.fixture
def channel(anna: Person, receiver: Receiver) -> Channel:
    return a_channel(anna, receiver.address)


def an_alarm(acme: cast.Acme) -> ToolCall:
    call = builders.a_call(acme, in_state="ambiguous")
    a_pass(send=True)
    return call


def a_month_passes() -> None:
    Occurrence.objects.update(at=F("at") - MONTH)
    Message.objects.filter(ended_at__isnull=False).update(ended_at=F("ended_at") - MONTH)


def test_what_is_over_and_old_goes_with_its_log_and_is_never_told_again(
    acme: cast.Acme, channel: Channel
) -> None:
    give_up(acme, an_alarm(acme))
    a_pass(send=True)
    assert told(channel) == ["incident.opened", "incident.resolved"]
    a_month_passes()
    assert pruning.prune() == 2
    assert not any(model.objects.exists() for model in (Occurrence, Line, Message, Delivery))
    a_pass(send=True)
    assert told(channel) == []


def test_what_is_over_and_young_stays(acme: cast.Acme, channel: Channel) -> None:
    give_up(acme, an_alarm(acme))
    a_pass(send=True)
    assert pruning.prune() == 0
    assert Message.objects.count() == 2


def test_what_stands_open_stays_however_old_it_is(acme: cast.Acme, channel: Channel) -> None:
    an_alarm(acme)
    a_month_passes()
    assert pruning.prune() == 0
    a_pass(send=True)
    assert told(channel) == ["incident.opened"]


def test_what_was_not_told_yet_stays(acme: cast.Acme, channel: Channel, receiver: Receiver) -> None:
    receiver.status = 503
    give_up(acme, an_alarm(acme))
    a_month_passes()
    assert pruning.prune() == 0
    assert Message.objects.get().state == "waiting"


def test_it_forgets_a_part_at_a_time(acme: cast.Acme, channel: Channel) -> None:
    give_up(acme, an_alarm(acme))
    a_pass(send=True)
    a_month_passes()
    assert [pruning.prune(limit=1) for _ in range(3)] == [1, 1, 0]
