"""From what was noticed to messages: filters, one thread one message, digest, quiet hours."""

from datetime import UTC, datetime, time

import pytest

from ledger import clock
from ledger.permissions import Person
from notifications import channels, composing, notifier
from notifications.models import Line, Occurrence
from notifications.vocabulary import Event
from recovery import watchdog
from recovery.models import Incident
from tests import builders, cast
from tests.notifications.telling import (
    WHY,
    a_channel,
    a_pass,
    messages_of,
    minutes_pass,
    told,
    wanted,
)
from tests.notifications.test_sources import give_up
from tests.recovery import deciding
from tests.recovery.test_ageing import age

pytestmark = pytest.mark.django_db


def alarms(acme: cast.Acme, count: int) -> None:
    for _ in range(count):
        builders.a_call(acme, in_state="ambiguous")


def test_what_happens_after_a_channel_was_made_is_told_once(acme: cast.Acme, anna: Person) -> None:
    alarms(acme, 1)
    a_pass()
    channel = a_channel(anna)
    a_pass()
    assert told(channel) == []
    alarms(acme, 1)
    a_pass()
    a_pass()
    assert told(channel) == ["incident.opened"]


def test_every_channel_is_told_by_itself(acme: cast.Acme, anna: Person) -> None:
    one, other = a_channel(anna), a_channel(anna, name="day shift")
    alarms(acme, 1)
    a_pass()
    assert told(one) == told(other) == ["incident.opened"]
    assert messages_of(one)[0].id != messages_of(other)[0].id


def test_a_neighbour_is_told_nothing(acme: cast.Acme, globex: cast.Globex, anna: Person) -> None:
    theirs = a_channel(cast.as_decider(globex.mallory_herself))
    a_channel(anna)
    alarms(acme, 1)
    a_pass()
    assert told(theirs) == []
    assert not Occurrence.objects.filter(workspace=globex.workspace).exists()


@pytest.mark.parametrize(
    ("filters", "is_told"),
    [
        ({"classes": ("side_effect",)}, True),
        ({"classes": ("read_only",)}, False),
        ({"tools": ("mail.send",)}, True),
        ({"tools": ("mail.read",)}, False),
        ({"events": ("budget.spent",)}, False),
        ({"events": ("incident.opened",)}, True),
        ({"least_age_s": 60.0}, False),
    ],
    ids=["its class", "another class", "its tool", "another tool", "another event", "its event",
         "not old enough"],
)  # fmt: skip
def test_a_channel_is_told_what_its_filters_let_through(
    acme: cast.Acme, anna: Person, filters: dict[str, object], is_told: bool
) -> None:
    channel = a_channel(anna, **filters)
    builders.a_call(acme, in_state="ambiguous", tool=builders.a_tool(acme, "mail.send"))
    a_pass()
    assert bool(told(channel)) is is_told


def test_what_is_old_enough_by_now_is_told(acme: cast.Acme, anna: Person) -> None:
    channel = a_channel(anna, least_age_s=60.0)
    alarms(acme, 1)
    a_pass()
    minutes_pass(channel, 1)
    a_pass()
    assert told(channel) == ["incident.opened"]


def test_whoever_got_the_alarm_gets_the_all_clear(acme: cast.Acme, anna: Person) -> None:
    asked = a_channel(anna, events=("incident.opened",))
    others = a_channel(anna, name="budgets", events=("budget.spent",))
    call = deciding.ambiguous(acme)
    a_pass()
    give_up(acme, call)
    a_pass()
    assert told(asked) == ["incident.opened", "incident.resolved"]
    assert told(others) == []
    assert len({each.thread for each in messages_of(asked)}) == 1


def test_what_is_over_before_it_was_told_is_told_to_nobody(acme: cast.Acme, anna: Person) -> None:
    channel = a_channel(anna, least_age_s=60.0)
    call = deciding.ambiguous(acme)
    a_pass()
    give_up(acme, call)
    a_pass()
    minutes_pass(channel, 2)
    a_pass()
    assert told(channel) == []
    assert set(Line.objects.values_list("dropped", flat=True)) == {"over"}


def test_the_steps_of_one_incident_that_wait_are_one_message(acme: cast.Acme, anna: Person) -> None:
    channel = a_channel(anna)
    incident = deciding.incident_of(builders.a_call(acme, in_state="ambiguous"))
    for part in (0.9, 1.0):
        age(incident, part)
        watchdog.remind()
    a_pass()
    (message,) = messages_of(channel)
    assert (message.event, message.lines_count) == ("review.past", 2)


def test_more_than_five_at_once_become_one(acme: cast.Acme, anna: Person) -> None:
    channel = a_channel(anna)
    alarms(acme, 6)
    a_pass()
    (message,) = messages_of(channel)
    assert (message.event, message.lines_count) == ("digest", 6)


def test_what_comes_after_five_in_five_minutes_waits_and_becomes_one(
    acme: cast.Acme, anna: Person
) -> None:
    channel = a_channel(anna)
    for _ in range(8):
        alarms(acme, 1)
        a_pass()
    assert told(channel) == ["incident.opened"] * 5
    minutes_pass(channel, 5.1)
    a_pass()
    assert told(channel)[5:] == ["digest"]
    assert messages_of(channel)[-1].lines_count == 3


def test_a_steady_stream_is_a_digest_each_five_minutes(acme: cast.Acme, anna: Person) -> None:
    channel = a_channel(anna)
    for _ in range(4):
        alarms(acme, 7)
        a_pass()
        minutes_pass(channel, 2)
    assert [(each.event, each.lines_count) for each in messages_of(channel)] == [
        ("digest", 7), ("digest", 21),
    ]  # fmt: skip


def test_what_is_critical_passes_the_digest(acme: cast.Acme, anna: Person) -> None:
    channel = a_channel(anna)
    for _ in range(5):
        alarms(acme, 1)
        a_pass()
    incident = deciding.incident_of(builders.a_call(acme, in_state="ambiguous"))
    age(incident, 1.0)
    watchdog.remind()
    alarms(acme, 1)
    a_pass()
    assert told(channel)[5:] == ["review.past"]


def test_what_is_critical_goes_alone_where_six_were_told_already(
    acme: cast.Acme, anna: Person
) -> None:
    channel = a_channel(anna)
    for _ in range(5):
        alarms(acme, 1)
        a_pass()
    alarms(acme, 1)
    a_pass()
    Line.objects.filter(message=None).update(due_at=clock.now() - composing.WINDOW)
    a_pass()
    assert len(told(channel)) == 6
    incident = Incident.objects.order_by("opened_at")[0]
    age(incident, 1.0)
    watchdog.remind()
    a_pass()
    assert told(channel)[6:] == ["review.past"]


def test_quiet_hours_hold_back_and_end_in_one_message(acme: cast.Acme, anna: Person) -> None:
    channel = a_channel(anna)
    _quiet(channel.id, anna, begins=time(0, 0), ends=time(23, 59, 59))
    for _ in range(7):
        alarms(acme, 1)
        a_pass()
    assert told(channel) == []
    _quiet(channel.id, anna, begins=None, ends=None)
    a_pass()
    assert told(channel) == ["digest"]


def test_quiet_hours_never_hold_an_answer_whose_time_ends(acme: cast.Acme, anna: Person) -> None:
    channel = a_channel(anna)
    _quiet(channel.id, anna, begins=time(0, 0), ends=time(23, 59, 59))
    expiring(acme)
    a_pass()
    assert told(channel) == ["interrupt.expiring"]


def test_an_answer_whose_time_ends_waits_behind_nothing_that_is_held(
    acme: cast.Acme, anna: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composing, "LINES_MAX", 2)
    channel = a_channel(anna)
    _quiet(channel.id, anna, begins=time(0, 0), ends=time(23, 59, 59))
    alarms(acme, 3)
    a_pass()
    expiring(acme)
    a_pass()
    assert told(channel) == ["interrupt.expiring"]


def test_what_is_due_waits_behind_nothing_that_is_not_old_enough(
    acme: cast.Acme, anna: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composing, "LINES_MAX", 2)
    channel = a_channel(anna, least_age_s=7 * 86_400.0)
    alarms(acme, 3)
    a_pass()
    channels.change(channel_id=channel.id, target="", grounds=WHY, by=anna, wanted=wanted())
    alarms(acme, 1)
    a_pass()
    assert told(channel) == ["incident.opened"]


def test_an_answer_whose_time_ends_waits_for_no_digest(
    acme: cast.Acme, anna: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composing, "LINES_MAX", 2)
    monkeypatch.setattr(composing, "MESSAGES_MAX", 1)
    channel = a_channel(anna)
    alarms(acme, 1)
    a_pass()
    alarms(acme, 3)
    a_pass()
    expiring(acme)
    a_pass()
    assert told(channel) == ["incident.opened", "interrupt.expiring"]


def test_what_is_over_drops_its_alarm_however_many_are_held(
    acme: cast.Acme, anna: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composing, "LINES_MAX", 1)
    channel = a_channel(anna, least_age_s=60.0)
    alarms(acme, 1)
    call = deciding.ambiguous(acme)
    a_pass()
    give_up(acme, call)
    a_pass()
    minutes_pass(channel, 2)
    a_pass()
    assert told(channel) == ["incident.opened"]


def expiring(acme: cast.Acme) -> None:
    """An interrupt whose time for an answer is nearly over."""
    call = builders.a_call(acme, in_state="ambiguous")
    Occurrence.objects.create(
        workspace=acme.workspace, event=Event.INTERRUPT_EXPIRING, key="x", thread="interrupt:int_1",
        subject="int_1", tool=call.tool, since=call.recorded_at,
    )  # fmt: skip


def _quiet(channel_id: object, anna: Person, *, begins: time | None, ends: time | None) -> None:
    channels.change(
        channel_id=channel_id, target="", grounds=WHY, by=anna,  # type: ignore[arg-type]
        wanted=wanted(quiet_from=begins, quiet_to=ends),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("zone", "utc", "is_quiet"),
    [
        ("UTC", "2026-11-22T23:00", True),
        ("UTC", "2026-11-22T05:59", True),
        ("UTC", "2026-11-22T06:00", False),
        ("UTC", "2026-11-22T21:59", False),
        ("Asia/Kolkata", "2026-11-22T16:30", True),
        ("Asia/Kolkata", "2026-11-22T00:30", False),
        # The night on which the clocks of Berlin go back: 06:00 is an hour later.
        ("Europe/Berlin", "2026-10-25T04:59", True),
        ("Europe/Berlin", "2026-10-25T05:00", False),
    ],
)
def test_quiet_hours_are_read_off_the_wall_clock_of_their_zone(
    anna: Person, zone: str, utc: str, is_quiet: bool
) -> None:
    channel = a_channel(anna, quiet_from=time(22), quiet_to=time(6), zone=zone)
    now = datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert composing.in_quiet_hours(channel, now) is is_quiet


def test_a_channel_that_is_off_is_told_nothing_of_that_time(acme: cast.Acme, anna: Person) -> None:
    channel = a_channel(anna)
    channels.switch(channel_id=channel.id, on=False, grounds=WHY, by=anna)
    alarms(acme, 1)
    a_pass()
    channels.switch(channel_id=channel.id, on=True, grounds=WHY, by=anna)
    assert notifier.prepare() == 0
    alarms(acme, 1)
    a_pass()
    assert told(channel) == ["incident.opened"]
