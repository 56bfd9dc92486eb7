"""The peek panel: a row's essentials beside its list, as a part; a plain link without scripts."""

import re
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ledger import ids
from ledger.models import ToolCall
from ledger.vocabulary import IncidentKind
from recovery import asides, incidents, takings
from tests import builders, cast
from tests.cast import as_decider
from tests.dashboard.deciding import address, operator
from tests.ledger.test_twins import Talk, abandon
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, found, incident_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    return operator(acme.olga)


def peek_at(shown: str) -> str:
    noun = "incidents" if shown.startswith("inc_") else "calls"
    return f"/parts/{noun}/{shown}/peek"


def of_incident(call: ToolCall) -> str:
    return peek_at(ids.shown("incident", incident_of(call).id))


def of_call(call: ToolCall) -> str:
    return peek_at(ids.shown("call", call.id))


def text(answer: Any) -> str:
    """The part as it is read."""
    assert answer.status_code == 200
    return " ".join(re.sub("<[^>]+>", " ", answer.content.decode()).split())


def test_a_peek_answers_the_three_questions_and_says_why_and_what_is_due(
    olga: Client, acme: cast.Acme
) -> None:
    call = ambiguous(acme, runbook="Look at the outbox.")
    read = text(olga.get(of_incident(call)))
    assert "Did it start? Yes A worker claimed it once" in read
    assert "Did the effect happen? Not proved" in read
    assert "What did the model see? Nothing" in read
    assert "A call whose outcome is not known. Cause: worker lost." in read
    assert "Due next: a wider circle is asked in " in read
    assert read.count("a wider circle is asked") == 1
    assert "Runbook: Look at the outbox." in read
    assert "Open the incident Open its call" in read


@pytest.mark.parametrize("state", ["scheduled", "running", "parked", "backing_off", "succeeded"])
def test_every_call_of_the_list_can_be_peeked_at(olga: Client, acme: cast.Acme, state: str) -> None:
    recovery_class = "long_running" if state == "parked" else "side_effect"
    read = text(olga.get(of_call(builders.a_call(acme, state, recovery_class))))
    assert "Did it start?" in read
    assert ("Due next" in read) is (state != "succeeded")


def test_a_call_names_its_open_incident(olga: Client, acme: cast.Acme) -> None:
    call = ambiguous(acme)
    page = olga.get(of_call(call)).content.decode()
    assert f'href="{address(call)}"' in page
    assert "Open its incident" in page


def test_a_held_call_says_what_it_waits_for_and_names_its_question(
    olga: Client, acme: cast.Acme
) -> None:
    talk = Talk(acme, "side_effect", delivery_delay_s=0)
    abandon(acme, talk.ask("ambiguous"))
    answer = olga.get(of_call(talk.ask()))
    assert "Nobody can know what became of the same call." in text(answer)
    assert "the question expires in" in text(answer)
    assert re.search(r'href="/interrupts/[^"]+">Open its question', answer.content.decode())


def test_an_incident_on_a_session_has_no_questions(olga: Client, acme: cast.Acme) -> None:
    with transaction.atomic():
        made = incidents.report_of_session(
            builders.a_session(acme), IncidentKind.HAND_OFF, subject="one", facts={},
            grounds="Nobody took it.",
        )  # fmt: skip
    read = text(olga.get(peek_at(ids.shown("incident", made.id))))
    assert "Nobody took a hand-off." in read
    assert "Did it start?" not in read
    assert "Due next: a wider circle is asked" in read


def test_whoever_has_it_in_hand_is_named_and_a_peek_takes_nothing(
    olga: Client, acme: cast.Acme
) -> None:
    incident = incident_of(ambiguous(acme))
    at = peek_at(ids.shown("incident", incident.id))
    assert "Taken by" not in text(olga.get(at))
    takings.take(incident_id=incident.id, by=as_decider(acme.olga))
    asides.set_aside(incident_id=incident.id, minutes=30, by=as_decider(acme.olga))
    read = text(olga.get(at))
    assert "Taken by olga" in read
    assert re.search("it comes back from being set aside in (30:00|29:5)", read)


def test_an_unchanged_peek_is_not_sent_again_and_a_changed_one_is(
    olga: Client, acme: cast.Acme
) -> None:
    call = builders.a_call(acme, "running")
    first = olga.get(of_call(call))
    assert "HX-PTag" not in first, "its control would keep it"
    [tag] = re.findall(r'hx-ptag="([^"]+)"', first.content.decode())
    assert olga.get(of_call(call), headers={"HX-PTag": tag}).status_code == 304
    builders.settle(call)
    assert olga.get(of_call(call), headers={"HX-PTag": tag}).status_code == 200


def test_what_cannot_change_any_more_is_not_asked_for_again(olga: Client, acme: cast.Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    assert 'hx-trigger="every 5s' in olga.get(of_incident(call)).content.decode()
    decide(acme, call, "happened")
    for at in (of_incident(call), of_call(call)):
        assert "hx-trigger" not in olga.get(at).content.decode()


def test_nobody_peeks_into_another_workspace(acme: cast.Acme, globex: cast.Globex) -> None:
    call, mallory = ambiguous(acme), operator(globex.mallory_herself)
    assert mallory.get(of_incident(call)).status_code == 404
    assert mallory.get(of_call(call)).status_code == 404


@pytest.mark.parametrize("path", ["/inbox", "/calls"])
def test_without_scripts_the_control_leads_where_the_row_leads(
    olga: Client, acme: cast.Acme, path: str
) -> None:
    call = ambiguous(acme)
    page = olga.get(path).content.decode()
    at = {"/inbox": address(call), "/calls": f"/calls/{ids.shown('call', call.id)}"}[path]
    part = {"/inbox": of_incident(call), "/calls": of_call(call)}[path]
    [control] = re.findall(r"<a class=\"peeks\"[^>]+>", page)
    assert f'href="{at}"' in control
    assert f'hx-get="{part}"' in control
    assert 'aria-label="Peek at ' in control


def queries_of(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def test_a_peek_of_a_long_story_asks_as_often_as_one_of_a_short_story(
    olga: Client, acme: cast.Acme
) -> None:
    call = ambiguous(acme)
    few = {at: queries_of(olga, at) for at in (of_incident(call), of_call(call))}
    for _ in range(5):
        ambiguous(acme)
        found(call, "happened", as_decider(acme.olga))
    assert {at: queries_of(olga, at) for at in few} == few
