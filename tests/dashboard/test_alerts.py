"""What a browser tells somebody who is not looking: kinds and tools, each once, no payloads."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard import alerts
from dashboard.alerts import Alert
from ledger import ids
from ledger.permissions import Person
from ledger.vocabulary import IncidentKind
from recovery import asides, incidents, takings
from recovery.models import Incident
from tests import builders, cast
from tests.cast import as_decider
from tests.dashboard.deciding import address, operator
from tests.ledger.test_twins import Talk, abandon
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, incident_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(acme: cast.Acme) -> Person:
    return as_decider(acme.olga)


def titles(person: Person) -> list[str]:
    return [each.title for each in alerts.of(person)]


def test_an_incident_that_waits_for_a_person_is_told_with_its_tool_and_page(
    acme: cast.Acme, olga: Person
) -> None:
    call = ambiguous(acme)
    shown = ids.shown("incident", incident_of(call).id)
    assert alerts.of(olga) == [Alert(shown, "Needs an answer", call.tool, address(call))]


def test_what_the_machine_still_works_on_is_not_told(acme: cast.Acme, olga: Person) -> None:
    for state in ("running", "interrupted", "succeeded"):
        builders.a_call(acme, state)
    assert alerts.of(olga) == []


def test_what_is_decided_or_set_aside_is_not_told_any_more(acme: cast.Acme, olga: Person) -> None:
    decided, later = ambiguous(acme, **AT_ONCE), ambiguous(acme)
    decide(acme, decided, "happened")
    asides.set_aside(incident_id=incident_of(later).id, minutes=30, by=olga)
    assert alerts.of(olga) == []


def test_an_incident_on_a_session_and_a_held_call_are_told(acme: cast.Acme, olga: Person) -> None:
    with transaction.atomic():
        incidents.report_of_session(
            builders.a_session(acme), IncidentKind.HAND_OFF, subject="one", facts={},
            grounds="Nobody took it.",
        )  # fmt: skip
    talk = Talk(acme, "side_effect", delivery_delay_s=0)
    abandon(acme, talk.ask("ambiguous"))
    held = talk.ask()
    found = alerts.of(olga)
    assert [(each.title, each.about) for each in found] == [
        ("Needs an answer", "Nobody took a hand-off"),
        ("Needs an answer", held.tool),
    ]
    assert found[1].address.startswith("/interrupts/")


@pytest.mark.parametrize("how", ["taken", "assigned"])
def test_each_escalation_of_an_incident_in_ones_hand_is_told_anew(
    acme: cast.Acme, olga: Person, how: str
) -> None:
    incident = incident_of(ambiguous(acme))
    if how == "taken":
        takings.take(incident_id=incident.id, by=olga)
    else:
        asides.assign(incident_id=incident.id, to="olga", by=olga)
    keys = set()
    for level in (1, 2):
        Incident.objects.filter(id=incident.id).update(escalation_level=level)
        needs, escalated = alerts.of(olga)
        assert (needs.title, escalated.title) == ("Needs an answer", "Your incident was escalated")
        keys |= {needs.key, escalated.key}
    assert len(keys) == 3
    omar = as_decider(cast.a_person("omar", acme.workspace, "operator"))
    assert titles(omar) == ["Needs an answer"]


def test_an_approval_is_told_to_who_may_give_it_and_did_not_ask(acme: cast.Acme) -> None:
    decide(acme, ambiguous(acme, second_person="always"), "happened")
    cast.a_person("anna", acme.workspace, "approver")
    told = {each.name: titles(each) for each in people(acme)}
    assert "Waits for your approval" in told["anna"]
    assert "Waits for your approval" not in told["olga"]


def people(acme: cast.Acme) -> list[Person]:
    rows = [("olga", "operator"), ("anna", "approver")]
    users = {each: User.objects.get(username=each) for each, _ in rows}
    return [
        Person(users[name].pk, name, acme.workspace.id, frozenset({role})) for name, role in rows
    ]


def test_who_only_reads_and_who_is_a_neighbour_is_told_nothing(
    acme: cast.Acme, globex: cast.Globex
) -> None:
    ambiguous(acme)
    vera = Person(acme.vera.pk, "vera", acme.workspace.id, frozenset({"viewer"}))
    assert alerts.of(vera) == []
    neighbour = operator(globex.mallory_herself).get("/parts/alerts")
    assert neighbour.json() == {"alerts": []}


def test_names_are_made_plain_and_cut_short(acme: cast.Acme, olga: Person) -> None:
    call = ambiguous(acme)
    name = "pay\u202e" + "x" * 100
    about = alerts._tool(type(call)(tool=name))
    assert "\u202e" not in about
    assert len(about) <= alerts.NAME_CHARACTERS
    sent = str([each.about for each in alerts.of(olga)])
    assert call.arguments not in sent


def test_an_unchanged_list_is_not_sent_again(acme: cast.Acme) -> None:
    client = operator(acme.olga)
    ambiguous(acme)
    first = client.get("/parts/alerts")
    again = {"HX-PTag": first["HX-PTag"]}
    assert client.get("/parts/alerts", headers=again).status_code == 304
    ambiguous(acme)
    assert len(client.get("/parts/alerts", headers=again).json()["alerts"]) == 2


def test_without_a_login_there_is_nothing() -> None:
    answer: Any = Client().get("/parts/alerts", headers={"HX-Request": "true"})
    assert answer.status_code == 401


def test_many_are_read_in_as_many_statements_as_few(acme: cast.Acme, olga: Person) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            alerts.of(olga)
        return len(captured)

    ambiguous(acme)
    few = queries()
    for _ in range(4):
        ambiguous(acme)
    assert queries() == few
