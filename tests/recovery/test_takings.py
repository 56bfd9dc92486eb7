"""Taking an incident: a courtesy that is shown, renewed and taken over, and locks nothing."""

from datetime import timedelta

import pytest

from ledger.errors import NotFound, PermissionMissing
from ledger.models.fields import ClockTimestamp
from ledger.permissions import Person
from recovery import changes, takings
from recovery.models import Incident, Taking
from tests import builders
from tests.cast import Acme, Globex, a_person, as_decider
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, incident_of

pytestmark = pytest.mark.django_db


def omar(acme: Acme) -> Person:
    return as_decider(a_person("omar", acme.workspace, "operator"))


def idle(incident: Incident, **length: float) -> None:
    """Let the last activity at an incident lie this long ago."""
    Taking.objects.filter(incident=incident).update(
        active_at=ClockTimestamp() - timedelta(**length)
    )


def test_a_taken_incident_names_who_works_on_it(acme: Acme) -> None:
    incident = incident_of(builders.a_call(acme, "ambiguous"))
    takings.take(incident_id=incident.id, by=as_decider(acme.olga))
    assert takings.of([incident.id])[incident.id].by_name == "olga"


def test_taking_again_renews_and_keeps_since_when(acme: Acme) -> None:
    incident = incident_of(builders.a_call(acme, "ambiguous"))
    first = takings.take(incident_id=incident.id, by=as_decider(acme.olga))
    idle(incident, minutes=9)
    again = takings.take(incident_id=incident.id, by=as_decider(acme.olga))
    assert again.taken_at == first.taken_at
    assert again.active_at > first.taken_at


def test_a_taking_runs_out_after_ten_minutes_without_activity(acme: Acme) -> None:
    incident = incident_of(builders.a_call(acme, "ambiguous"))
    first = takings.take(incident_id=incident.id, by=as_decider(acme.olga))
    idle(incident, minutes=10, seconds=1)
    assert takings.of([incident.id]) == {}
    takings.touch(incident.id, as_decider(acme.olga))
    assert takings.of([incident.id]) == {}, "activity renews what is in force, and nothing else"
    assert takings.take(incident_id=incident.id, by=as_decider(acme.olga)).taken_at > first.taken_at


def test_somebody_else_takes_over(acme: Acme) -> None:
    incident = incident_of(builders.a_call(acme, "ambiguous"))
    takings.take(incident_id=incident.id, by=as_decider(acme.olga))
    takings.take(incident_id=incident.id, by=omar(acme))
    takings.release(incident_id=incident.id, by=as_decider(acme.olga))
    assert takings.of([incident.id])[incident.id].by_name == "omar"


def test_a_released_incident_is_nobodys(acme: Acme) -> None:
    incident = incident_of(builders.a_call(acme, "ambiguous"))
    takings.take(incident_id=incident.id, by=as_decider(acme.olga))
    takings.release(incident_id=incident.id, by=as_decider(acme.olga))
    takings.release(incident_id=incident.id, by=as_decider(acme.olga))
    assert takings.of([incident.id]) == {}


def test_taking_locks_nothing_and_moves_no_decision_version(acme: Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    before = changes.of(call.id)
    takings.take(incident_id=incident_of(call).id, by=omar(acme))
    assert changes.of(call.id) == before
    decide(acme, call, "happened")
    assert builders.fresh(call).state == "succeeded"


def test_a_closed_incident_is_not_taken(acme: Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "happened")
    with pytest.raises(takings.NotOpen, match="corrected on its call"):
        takings.take(incident_id=incident_of(call).id, by=as_decider(acme.olga))


def test_a_viewer_takes_nothing(acme: Acme) -> None:
    incident = incident_of(builders.a_call(acme, "ambiguous"))
    with pytest.raises(PermissionMissing):
        takings.take(incident_id=incident.id, by=as_decider(acme.vera))


def test_a_neighbour_finds_no_incident_to_take(acme: Acme, globex: Globex) -> None:
    incident = incident_of(builders.a_call(acme, "ambiguous"))
    mallory = as_decider(globex.mallory_herself)
    for verb in (takings.take, takings.release):
        with pytest.raises(NotFound):
            verb(incident_id=incident.id, by=mallory)
