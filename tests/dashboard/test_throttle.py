"""Tries of signing in: counted in the database, by pair, address and name."""

import pytest

from dashboard import throttle
from dashboard.models import TryCounter
from dashboard.throttle import TooManyTries
from ledger.models.fields import ClockTimestamp

pytestmark = pytest.mark.django_db

HERE, THERE = "203.0.113.7", "198.51.100.9"
PAIR = throttle.LIMITS["pair"][0]


def tried(name: str, address: str, times: int) -> None:
    for _ in range(times):
        throttle.take(name, address)


def test_the_sixth_try_of_a_name_from_an_address_waits() -> None:
    tried("olga", HERE, PAIR)
    with pytest.raises(TooManyTries, match="was not looked at") as refusal:
        throttle.take("olga", HERE)
    assert 0 < refusal.value.wait_s <= 300


def test_others_do_not_wait_for_one_pair() -> None:
    tried("olga", HERE, PAIR)
    throttle.take("olga", THERE)
    throttle.take("vera", HERE)


def test_a_refused_try_does_not_count_so_nobody_prolongs_the_wait_of_another() -> None:
    tried("olga", HERE, PAIR)
    for _ in range(20):
        with pytest.raises(TooManyTries):
            throttle.take("olga", HERE)
    assert set(TryCounter.objects.values_list("tries", flat=True)) == {PAIR}


def test_the_window_ends_by_the_clock_of_the_database() -> None:
    tried("olga", HERE, PAIR)
    TryCounter.objects.update(since=ClockTimestamp() - throttle.KEPT / 100)
    throttle.take("olga", HERE)


def test_a_right_password_takes_the_tries_of_its_pair_back() -> None:
    tried("olga", HERE, PAIR)
    throttle.succeeded("olga", HERE)
    tried("olga", HERE, PAIR)


def test_many_addresses_cannot_lock_somebody_out_of_a_known_one() -> None:
    throttle.take("olga", HERE)
    throttle.succeeded("olga", HERE)
    for place in range(throttle.LIMITS["name"][0]):
        throttle.take("olga", f"198.51.100.{place}")
    with pytest.raises(TooManyTries):
        throttle.take("olga", "192.0.2.200")
    throttle.take("olga", HERE)


def test_one_address_cannot_try_many_names() -> None:
    for number in range(throttle.LIMITS["address"][0]):
        throttle.take(f"name{number}", HERE)
    with pytest.raises(TooManyTries):
        throttle.take("olga", HERE)


def test_a_network_of_one_machine_counts_as_one_address() -> None:
    for number in range(PAIR):
        throttle.take("olga", f"2001:db8::{number + 1:x}")
    with pytest.raises(TooManyTries):
        throttle.take("olga", "2001:db8::ffff")


def test_a_name_is_the_same_however_it_is_written() -> None:
    tried("olga", HERE, PAIR)
    with pytest.raises(TooManyTries):
        throttle.take(" OLGA ", HERE)


def test_what_was_typed_as_a_name_is_not_stored() -> None:
    throttle.take("my password typed into the wrong field", HERE)
    stored = str(list(TryCounter.objects.values()))
    assert "password" not in stored
    assert HERE not in stored


def test_counters_of_a_month_ago_are_deleted() -> None:
    throttle.take("olga", HERE)
    TryCounter.objects.update(since=ClockTimestamp() - throttle.KEPT * 2)
    throttle.take("vera", THERE)
    assert TryCounter.objects.count() == 3
