"""Times: ages and countdowns never round up, and the instant stands beside them in UTC."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone as timezone_of

from dashboard.templatetags import times

NOW = datetime(2027, 3, 2, 9, 41, 20, 120_000, tzinfo=UTC)
PAGE = {"now": NOW}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 m 00 s"),
        (3599, "59 m 59 s"),
        (7500, "2 h 05 m"),
        (86399, "23 h 59 m"),
        (273600, "3 d 04 h"),
    ],
)
def test_an_age_has_two_units_and_is_never_rounded_up(seconds: float, text: str) -> None:
    assert times.span(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "0.5 s"), (30.0, "30 s"), (90.0, "90 s"), (240.0, "4 m"), (3600, "1 h"), (86400, "1 d")],
)
def test_a_time_out_is_said_exactly_in_the_largest_unit_that_it_fills(
    seconds: float, text: str
) -> None:
    assert times.exactly(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (42, "in 0:42"),
        (7500, "in 2:05:00"),
        (90000, "in 1 d 01 h"),
        (0, "now"),
        (-9, "now"),
        (-65, "overdue by 1:05"),
    ],
)
def test_a_deadline_counts_down_and_then_says_that_it_is_overdue(seconds: int, text: str) -> None:
    late_before = NOW - timedelta(seconds=10)
    assert times.due_text(NOW + timedelta(seconds=seconds), NOW, late_before) == text


def test_a_deadline_says_to_the_browser_for_how_long_it_is_now() -> None:
    html = times.due(NOW + timedelta(seconds=42), NOW, NOW - timedelta(seconds=10))
    assert 'datetime="2027-03-02T09:42:02.120Z"' in html
    assert ' data-due="10">in 0:42</time>' in html


def test_a_clock_that_is_ahead_makes_an_age_of_zero_and_not_a_negative_one() -> None:
    assert times.span(timedelta(seconds=-3)) == "0 s"


def test_an_end_is_said_in_the_zone_of_who_looks_and_counted_down_by_the_browser() -> None:
    with timezone_of.override(ZoneInfo("Asia/Kolkata")):
        html = times.until(PAGE, NOW + timedelta(seconds=42))
    assert " data-due>at 15:12:02 +05:30</time>" in html
    assert 'title="in 42 s, 2027-03-02 09:42:02 UTC, ' in html


def test_every_time_carries_its_instant_in_utc() -> None:
    berlin = NOW.astimezone(timezone(timedelta(hours=1)))
    html = times.age(berlin, NOW + timedelta(seconds=5))
    assert 'datetime="2027-03-02T09:41:20.120Z"' in html
    assert 'title="5 s ago, 2027-03-02 09:41:20 UTC"' in html
    assert ">5 s</time>" in html


def test_a_mark_carries_its_age_and_its_instant() -> None:
    html = times.since(NOW - timedelta(seconds=5), NOW, "cancel requested")
    assert 'title="5 s ago, 2027-03-02 09:41:15 UTC">cancel requested</time>' in html


def test_a_text_in_a_time_is_escaped() -> None:
    assert "<b>" not in times.since(NOW, NOW, "<b>")


@pytest.mark.parametrize(
    ("hours", "text"), [(2, ">11:41:20 UTC<"), (23, ">2027-03-03 08:41:20 UTC<")]
)
def test_a_time_of_another_day_carries_its_date(hours: int, text: str) -> None:
    assert text in times.clock(PAGE, NOW + timedelta(hours=hours))


def test_another_day_is_meant_in_the_zone_of_who_looks() -> None:
    with timezone_of.override(ZoneInfo("Asia/Tokyo")):
        assert ">2027-03-03 00:41:20 +09:00<" in times.clock(PAGE, NOW + timedelta(hours=6))


def test_a_page_that_knows_no_present_gives_the_date_with_each_time() -> None:
    assert ">2027-03-02 09:41:20 UTC<" in times.clock({}, NOW)


def test_a_history_always_has_date_seconds_and_offset() -> None:
    with timezone_of.override(ZoneInfo("Europe/Berlin")):
        assert ">2027-03-02 10:41:20 +01:00<" in times.instant(PAGE, NOW)
        assert ">2027-03-02 10:41:20.120 +01:00<" in times.instant(PAGE, NOW, ms=True)


def test_behind_a_time_stand_its_age_utc_and_local_time() -> None:
    with timezone_of.override(ZoneInfo("Europe/Berlin")):
        past = times.instant(PAGE, NOW - timedelta(hours=2))
        future = times.due(NOW + timedelta(seconds=42), NOW, NOW)
    assert 'title="2 h 00 m ago, 2027-03-02 07:41:20 UTC, 2027-03-02 08:41:20 +01:00"' in past
    assert 'title="in 42 s, 2027-03-02 09:42:02 UTC, 2027-03-02 10:42:02 +01:00"' in future


def test_an_instant_that_is_not_there_is_a_dash() -> None:
    assert times.age(None, NOW) == times.instant(PAGE, None) == "–"
    assert times.due(None, NOW, NOW) == "–"
