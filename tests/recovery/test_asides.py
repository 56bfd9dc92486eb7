"""Setting aside and assigning order the work of people: told on the file, deciding nothing."""

from datetime import timedelta
from typing import Any

import pytest

from ledger.errors import Invalid, NotFound, PermissionMissing
from ledger.models.fields import ClockTimestamp
from ledger.permissions import Person
from recovery import asides, changes, takings
from recovery.models import Aside, Incident, Step
from tests import builders
from tests.cast import Acme, Globex, a_person, as_decider
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, incident_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def incident(acme: Acme) -> Incident:
    return incident_of(builders.a_call(acme, "ambiguous"))


@pytest.fixture
def olga(acme: Acme) -> Person:
    return as_decider(acme.olga)


def lines(incident: Incident) -> list[str]:
    """What people did about the order of work, as the timeline tells it."""
    return list(
        Step.objects.filter(incident=incident, rule="person").values_list("rung", flat=True)
    )


def test_what_is_set_aside_comes_back_by_itself(incident: Incident, olga: Person) -> None:
    made = asides.set_aside(incident_id=incident.id, minutes=60, by=olga)
    assert asides.of([incident.id]) == {incident.id: made}
    assert timedelta(minutes=59) < made.until - made.at <= timedelta(minutes=60)
    Aside.objects.update(until=ClockTimestamp())
    assert asides.of([incident.id]) == {}
    assert lines(incident) == ["set_aside"], "nobody has to do anything for it"


def test_an_escalation_brings_back_what_is_set_aside(incident: Incident, olga: Person) -> None:
    asides.set_aside(incident_id=incident.id, minutes=60, by=olga)
    Incident.objects.filter(id=incident.id).update(escalation_level=1)
    assert asides.of([incident.id]) == {}
    asides.set_aside(incident_id=incident.id, minutes=60, by=olga)
    assert list(asides.of([incident.id])) == [incident.id], "who knows of it may do so again"


def test_bringing_back_ends_it_once(incident: Incident, olga: Person) -> None:
    asides.set_aside(incident_id=incident.id, minutes=60, by=olga)
    for _ in range(2):
        asides.bring_back(incident_id=incident.id, by=olga)
    assert asides.of([incident.id]) == {}
    assert lines(incident) == ["set_aside", "brought_back"]


def test_the_last_word_counts(incident: Incident, olga: Person) -> None:
    first = asides.set_aside(incident_id=incident.id, minutes=60, by=olga)
    second = asides.set_aside(incident_id=incident.id, minutes=5, by=olga, grounds="Back soon.")
    assert second.until < first.until
    assert Step.objects.filter(incident=incident).latest("id").grounds.endswith(" UTC. Back soon.")


def test_neither_moves_the_decision_version(acme: Acme, olga: Person) -> None:
    call = ambiguous(acme)
    before = changes.of(call.id)
    asides.set_aside(incident_id=incident_of(call).id, minutes=5, by=olga)
    asides.assign(incident_id=incident_of(call).id, to="olga", by=olga)
    assert changes.of(call.id) == before


@pytest.mark.parametrize("minutes", [0, -5, 7 * 24 * 60 + 1])
def test_nothing_is_set_aside_for_ever(incident: Incident, olga: Person, minutes: int) -> None:
    with pytest.raises(Invalid, match="10080"):
        asides.set_aside(incident_id=incident.id, minutes=minutes, by=olga)


def test_an_incident_is_the_work_of_one_person_at_a_time(
    acme: Acme, incident: Incident, olga: Person
) -> None:
    a_person("omar", acme.workspace, "operator")
    for name in ("omar", "omar", "olga"):
        asides.assign(incident_id=incident.id, to=name, by=olga)
    assert asides.assigned([incident.id])[incident.id].to_name == "olga"
    asides.assign(incident_id=incident.id, to="", by=olga)
    assert asides.assigned([incident.id]) == {}
    assert lines(incident) == ["assigned"] * 3, "the same name again is no line"


@pytest.mark.parametrize("name", ["vera", "mallory", "nobody-of-this-name"])
def test_only_who_may_work_here_is_given_work(
    acme: Acme, globex: Globex, incident: Incident, olga: Person, name: str
) -> None:
    with pytest.raises(Invalid, match="may work on incidents here"):
        asides.assign(incident_id=incident.id, to=name, by=olga)
    assert name not in asides.able(acme.workspace.id)


DEEDS: dict[str, Any] = {
    "set aside": lambda id_, by: asides.set_aside(incident_id=id_, minutes=5, by=by),
    "bring back": lambda id_, by: asides.bring_back(incident_id=id_, by=by),
    "assign": lambda id_, by: asides.assign(incident_id=id_, to="olga", by=by),
}


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_who_may_not_work_on_it_is_refused(
    acme: Acme, globex: Globex, incident: Incident, deed: Any
) -> None:
    with pytest.raises(NotFound):
        deed(incident.id, as_decider(globex.mallory_herself))
    with pytest.raises(PermissionMissing):
        deed(incident.id, as_decider(acme.vera))


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_a_closed_incident_is_nobodys_work(acme: Acme, olga: Person, deed: Any) -> None:
    call = ambiguous(acme, **AT_ONCE)
    incident = incident_of(call)
    decide(acme, call, "abandon")
    with pytest.raises(takings.NotOpen):
        deed(incident.id, olga)
