"""What is noticed: each thing that waits for a person once, its end once, and nothing else."""

import json
from datetime import timedelta

import pytest

from ledger import clock
from ledger.models import ToolCall
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import ResolutionAnswer
from notifications import sources
from notifications.models import Channel, Occurrence
from recovery import bulk, disputes, watchdog
from recovery.bulk import Selection
from recovery.models import BulkRun, Incident, Refusal, Sweep
from recovery.rulings import Wish
from tests import builders, cast
from tests.recovery import deciding
from tests.recovery.test_ageing import age

pytestmark = pytest.mark.django_db


def give_up(acme: cast.Acme, call: ToolCall) -> None:
    """Olga closes it with its effect unknown, at once."""
    deciding.decide(acme, call, "abandon")
    deciding.delay_over(call)


def events() -> list[str]:
    return [str(each) for each in Occurrence.objects.order_by("id").values_list("event", flat=True)]


def test_a_call_that_waits_for_a_person_is_noticed_once(acme: cast.Acme) -> None:
    call = builders.a_call(acme, in_state="ambiguous")
    assert [sources.notice(), sources.notice()] == [1, 0]
    row = Occurrence.objects.get()
    incident = deciding.incident_of(call)
    assert (row.event, row.subject, row.tool) == ("incident.opened", str(incident.id), call.tool)
    assert row.recovery_class == "side_effect"
    assert (row.facts["state"], row.facts["effect"]) == ("ambiguous", "possible")


@pytest.mark.parametrize("state", ["interrupted", "running", "backing_off", "failed"])
def test_the_machines_turn_wakes_nobody(acme: cast.Acme, state: str) -> None:
    builders.a_call(acme, in_state=state)
    assert sources.notice() == 0


def test_what_is_noticed_never_carries_arguments_or_results(acme: cast.Acme) -> None:
    call = builders.a_call(acme, in_state="ambiguous", arguments={"path": "canary-of-acme"})
    deciding.found(call, "happened", cast.as_decider(acme.olga))
    sources.notice()
    assert "canary" not in json.dumps(list(Occurrence.objects.values()), default=str)
    assert "provider's list" not in json.dumps(list(Occurrence.objects.values()), default=str)


def test_a_review_time_is_near_at_nine_tenths_and_past_at_its_end(acme: cast.Acme) -> None:
    incident = deciding.incident_of(builders.a_call(acme, in_state="ambiguous"))
    for part, noticed in ((0.5, 1), (0.9, 1), (1.0, 1)):
        age(incident, part)
        watchdog.remind()
        assert sources.notice() == noticed
    assert events() == ["incident.opened", "review.near", "review.past"]
    assert sources.notice() == 0


def test_a_closed_incident_is_the_all_clear_once(acme: cast.Acme) -> None:
    call = deciding.ambiguous(acme)
    sources.notice()
    give_up(acme, call)
    assert [sources.notice(), sources.notice()] == [1, 0]
    assert events() == ["incident.opened", "incident.resolved"]
    assert not Occurrence.objects.filter(is_open=True).exists()


def test_an_incident_that_nobody_was_told_of_has_no_all_clear(acme: cast.Acme) -> None:
    call = deciding.ambiguous(acme)
    give_up(acme, call)
    assert sources.notice() == 0


def test_a_dispute_is_noticed_once_and_until_it_is_decided(acme: cast.Acme) -> None:
    call = deciding.ambiguous(acme, delivery_delay_s=60)
    hers = deciding.decide(acme, call, "happened")
    sources.notice()
    omar = cast.as_decider(cast.a_person("omar", acme.workspace, "operator"))
    disputes.begin(
        resolution_id=hers.id, by=omar,
        wish=Wish(answer=ResolutionAnswer.DID_NOT_HAPPEN, then="close", grounds="No such mail."),
    )  # fmt: skip
    assert [sources.notice(), sources.notice()] == [1, 0]
    row = Occurrence.objects.latest("id")
    assert (row.event, row.subject) == ("incident.disputed", str(deciding.incident_of(call).id))
    assert (row.facts["answer"], "No such mail." in str(row.facts)) == ("did_not_happen", False)


def test_the_silence_of_every_watchdog_is_noticed_and_its_end_too(acme: cast.Acme) -> None:
    Sweep.objects.create(name="w1")
    assert sources.notice() == 0
    Sweep.objects.update(swept_at=clock.now() - timedelta(seconds=90))
    assert [sources.notice(), sources.notice()] == [1, 0]
    Sweep.objects.update(swept_at=ClockTimestamp())
    assert [sources.notice(), sources.notice()] == [1, 0]
    assert events() == ["sweep.silent", "sweep.back"]


def test_one_watchdog_that_sweeps_is_enough(acme: cast.Acme) -> None:
    Sweep.objects.create(name="dead", swept_at=clock.now() - timedelta(days=1))
    Sweep.objects.create(name="alive")
    assert sources.notice() == 0


def test_a_spent_budget_of_a_tool_is_noticed_once_a_day(acme: cast.Acme) -> None:
    call = builders.a_call(acme, in_state="failed")
    for _ in range(3):
        Refusal.objects.create(
            workspace=acme.workspace, call=call, tool=call.tool, scope="tool", grounds="Spent."
        )
    assert [sources.notice(), sources.notice()] == [1, 0]
    row = Occurrence.objects.get()
    assert (row.event, row.tool, row.facts["scope"]) == ("budget.spent", call.tool, "tool")


def test_a_spent_call_is_left_to_its_incident(acme: cast.Acme) -> None:
    call = builders.a_call(acme, in_state="failed")
    Refusal.objects.create(
        workspace=acme.workspace, call=call, tool=call.tool, scope="call", grounds="Spent."
    )
    assert sources.notice() == 0


def test_a_finished_bulk_run_says_how_many_rows_were_done(acme: cast.Acme) -> None:
    call = deciding.ambiguous(acme)
    sources.notice()
    olga = cast.as_decider(acme.olga)
    wish = Wish(answer="abandon", grounds="Nobody can know.")  # type: ignore[arg-type]
    run = bulk.freeze(
        selection=Selection(incidents=[deciding.incident_of(call).id]), wish=wish, evidence={},
        by=olga,
    )  # fmt: skip
    assert sources.notice() == 0
    bulk.stop(run_id=run.id, by=olga)
    assert BulkRun.objects.get().finished_at is not None
    assert sources.notice() == 1
    row = Occurrence.objects.latest("id")
    assert (row.event, row.facts["rows"], row.facts["stopped"]) == ("bulk_run.finished", 1, True)


def test_a_channel_that_was_disabled_is_noticed_once_for_each_time(acme: cast.Acme) -> None:
    channel = Channel.objects.create(
        workspace=acme.workspace, kind="mail", name="old", target=b"", shown="x", events=["test"],
        is_on=False, disabled_at=clock.now(),
    )  # fmt: skip
    assert [sources.notice(), sources.notice()] == [1, 0]
    Channel.objects.filter(id=channel.id).update(disabled_at=clock.now() + timedelta(hours=1))
    assert sources.notice() == 1


def test_two_notifiers_notice_one_thing(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="ambiguous")
    statement = sources.SOURCES["incidents"]
    assert sources._new(statement, 10) == 1
    assert sources._new(statement, 10) == 0
    assert Occurrence.objects.count() == Incident.objects.count() == 1
