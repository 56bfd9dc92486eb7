"""After a restore: what may have happened since the backup is suspect until a person looks."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from ledger.journal import events_of
from ledger.models import Attempt, ToolCall
from ledger.vocabulary import IncidentKind
from recovery import restored
from recovery.models import Incident
from recovery.restored import Marked
from tests import builders
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme
from tests.recovery.test_recovering import PROBED


def mark(acme: Acme, within: timedelta = timedelta(hours=24)) -> Marked:
    return restored.mark(settled_within=within, by_id=str(acme.olga.pk), by_name="olga",
                         grounds="The disk was lost.")  # fmt: skip


def suspicions(call: ToolCall) -> list[Incident]:
    return list(Incident.objects.filter(call=call, kind=IncidentKind.RESTORED))


@pytest.mark.parametrize("in_state", ["scheduled", "backing_off", "running"])
def test_what_had_not_crossed_in_the_backup_may_have_crossed_since(
    acme: Acme, in_state: str
) -> None:
    call = a_call(acme, in_state)
    mark(acme)
    call = fresh(call)
    assert (call.state, call.effect, call.cause) == ("interrupted", "possible", "restored")
    event = [each for each in events_of(call.id) if each.kind == "restored"][0]
    assert (event.actor, event.actor_id) == ("operator", str(acme.olga.pk))
    past(call, "next_step")
    fire()
    assert fresh(call).state == "ambiguous"
    assert len(suspicions(call)) == 1


def test_no_worker_gets_it_again(acme: Acme) -> None:
    call = a_call(acme, "scheduled")
    mark(acme)
    with pytest.raises(AssertionError, match="could not be claimed"):
        builders.claimed(call)
    assert not Attempt.objects.filter(call=call).exists()


def test_what_ran_is_fenced(acme: Acme) -> None:
    call = a_call(acme, "running", crossed=True)
    mark(acme)
    assert Attempt.objects.get(call=call).fence_lost_at is not None
    assert fresh(call).heartbeat_at is None


def test_a_probe_is_asked_before_a_person(acme: Acme) -> None:
    call = a_call(acme, "scheduled", policy=PROBED)
    mark(acme)
    past(call, "next_step")
    fire()
    assert builders.claimed(call).kind == "probe"


@pytest.mark.parametrize("recovery_class", ["read_only", "idempotent_write"])
def test_what_may_run_twice_runs(acme: Acme, recovery_class: str) -> None:
    call = a_call(acme, "scheduled", recovery_class)
    assert mark(acme) == Marked(0, 0)
    assert builders.claimed(call).kind == "run"


def test_what_settled_shortly_before_is_to_be_confirmed(acme: Acme) -> None:
    call = a_call(acme, "succeeded")
    before = len(events_of(call.id))
    assert mark(acme) == Marked(open=0, settled=1)
    (incident,) = suspicions(call)
    assert incident.facts == {"stood_at": "succeeded", "effect": "happened"}
    assert (fresh(call).state, len(events_of(call.id))) == ("succeeded", before)


def test_what_settled_long_before_is_left_alone(acme: Acme) -> None:
    a_call(acme, "succeeded")
    a_call(acme, "scheduled", "read_only")
    assert mark(acme, within=timedelta(0)) == Marked(0, 0)


def test_marking_twice_is_marking_once(acme: Acme) -> None:
    a_call(acme, "scheduled")
    a_call(acme, "succeeded")
    assert [mark(acme), mark(acme)] == [Marked(1, 1), Marked(0, 0)]


def test_a_call_that_is_ambiguous_already_stays_it(acme: Acme) -> None:
    call = a_call(acme, "ambiguous")
    mark(acme)
    assert fresh(call).state == "ambiguous"
    assert len(suspicions(call)) == 1


def test_the_command_records_who_restored_it(
    acme: Acme, capsys: pytest.CaptureFixture[str]
) -> None:
    call = a_call(acme, "scheduled")
    call_command("mark_restored", "--by", "olga", "--grounds", "The disk was lost.")
    assert "Marked 1 open and 0 settled calls." in capsys.readouterr().out
    assert "olga" in suspicions(call)[0].steps.get().grounds


def test_nobody_marks_without_a_name(acme: Acme) -> None:
    a_call(acme, "scheduled")
    with pytest.raises(CommandError, match="Nobody logs in as 'mallory'"):
        call_command("mark_restored", "--by", "mallory", "--grounds", "Mine.")
    assert not Incident.objects.exists()
