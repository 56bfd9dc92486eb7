"""The doorbell: it may be lost, doubled or dead; a submit does not notice."""

import time
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import transaction
from redis import Redis

from ledger import dispatch
from ledger.models import ToolCall
from recovery import watchdog
from tests import builders
from tests.cast import Acme
from tests.refusals import sql

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def messages(broker: str) -> Iterator["Messages"]:
    with Redis.from_url(broker) as redis:
        yield Messages(redis)


class Messages:
    """What waits at the broker."""

    def __init__(self, redis: "Redis") -> None:
        self.redis = redis

    def of(self, queue: str) -> int:
        return int(self.redis.llen(f"clearhouse:{queue}"))  # type: ignore[arg-type]


def test_a_submit_rings_the_queue_of_its_class(acme: Acme, messages: Messages) -> None:
    builders.a_call(acme, recovery_class="read_only")
    assert (messages.of("reads"), messages.of("effects")) == (1, 0)


def test_a_hundred_rings_are_one_message(messages: Messages) -> None:
    for _ in range(100):
        assert dispatch.ring(["effects"])
    assert messages.of("effects") == 1


def test_a_ring_is_new_once_the_last_was_answered(messages: Messages) -> None:
    dispatch.ring(["effects"])
    messages.redis.lpop("clearhouse:effects")
    dispatch.answered("effects")
    dispatch.ring(["effects"])
    assert messages.of("effects") == 1


def test_a_message_that_waits_is_not_doubled_after_the_flag_has_gone(messages: Messages) -> None:
    dispatch.ring(["effects"])
    dispatch.answered("effects")
    dispatch.ring(["effects"])
    assert messages.of("effects") == 1


def test_a_submit_that_is_undone_rings_nobody(acme: Acme, messages: Messages) -> None:
    tool = builders.a_tool(acme)
    with transaction.atomic():
        builders.answer_to(builders.a_submit(acme, tool))
        transaction.set_rollback(True)
    assert messages.of("effects") == 0


def test_with_the_broker_dead_a_submit_succeeds_within_two_seconds(
    acme: Acme, dead_broker: str
) -> None:
    tool = builders.a_tool(acme)
    began = time.monotonic()
    answer = builders.answer_to(builders.a_submit(acme, tool))
    assert time.monotonic() - began < 2.0
    assert ToolCall.objects.get().id == answer.call_id


def test_after_a_failed_ring_nobody_is_rung_for_a_while(dead_broker: str) -> None:
    assert not dispatch.ring(["effects"])
    began = time.monotonic()
    assert not dispatch.ring(["effects"])
    assert time.monotonic() - began < 0.01


def test_a_dead_broker_says_so(dead_broker: str) -> None:
    assert not dispatch.is_there()


def test_a_flushed_broker_costs_a_delay_and_no_call(acme: Acme, messages: Messages) -> None:
    call = builders.a_call(acme)
    messages.redis.flushdb()
    sql("UPDATE ledger_toolcall SET ring_at = clock_timestamp() WHERE id = %s", call.id)
    assert watchdog.ring_again() == 1
    assert messages.of("effects") == 1


def test_an_unclaimed_call_is_rung_again_ever_more_slowly(acme: Acme, broker: str) -> None:
    call = builders.a_call(acme)
    waits = []
    for _ in range(4):
        sql("UPDATE ledger_toolcall SET ring_at = clock_timestamp() WHERE id = %s", call.id)
        watchdog.ring_again()
        rows = sql("SELECT extract(epoch FROM ring_at - clock_timestamp())::float8, rings "
                   "FROM ledger_toolcall WHERE id = %s", call.id)  # fmt: skip
        waits.append(round(rows[0][0]))
    assert waits == [5, 15, 60, 60]
    assert builders.fresh(call).rings == 4


def test_ringing_is_not_an_attempt(acme: Acme, broker: str) -> None:
    call = builders.a_call(acme)
    sql("UPDATE ledger_toolcall SET ring_at = clock_timestamp() WHERE id = %s", call.id)
    watchdog.ring_again()
    assert builders.fresh(call).attempts_used == 0


def test_a_due_poll_rings_the_control_queue(acme: Acme, messages: Messages) -> None:
    call = builders.a_call(acme, in_state="parked", recovery_class="long_running")
    builders.past(call, "next_poll")
    watchdog.ring_again()
    assert messages.of("control") == 1


def test_the_broker_of_the_settings_is_the_one_that_is_rung(broker: str) -> None:
    assert settings.ENVIRONMENT.redis_url == broker
    assert dispatch.is_there()
