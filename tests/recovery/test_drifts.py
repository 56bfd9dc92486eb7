"""Drifts: what came from elsewhere and was refused is one incident for each field (R60, R111)."""

import pytest

from ledger import bindings
from ledger.bindings import Stated
from ledger.errors import BindingDrift, StaleEpoch
from ledger.models import Drift, Session
from ledger.vocabulary import IncidentKind
from recovery import companions, confirmations, drifts, watchdog
from recovery.models import Incident
from tests import builders
from tests.builders import a_submit, a_tool, answer_to
from tests.cast import Acme
from tests.recovery.rebinding import rebound
from tests.refusals import sql
from tests.threads import at_once

SHOP = {"executor": "http", "config": {"url": "https://shop.example/orders", "method": "POST"}}


@pytest.fixture
def session(acme: Acme) -> Session:
    return builders.a_session(acme, working_directory="/srv/books", host="box-1")


def drifted(acme: Acme, session: Session, **stated: str) -> None:
    with pytest.raises(BindingDrift):
        answer_to(a_submit(acme, a_tool(acme), session_id=session.id, **stated))


def test_a_drift_is_an_incident_of_the_next_sweep_and_says_what_differed(
    acme: Acme, session: Session
) -> None:
    drifted(acme, session, host="box-2")
    watchdog.sweep()
    incident = Incident.objects.get()
    assert (incident.kind, incident.subject, incident.session) == (
        IncidentKind.STALE_BINDING, "host", session,
    )  # fmt: skip
    assert (incident.facts["bound"], incident.facts["stated"]) == ("box-1", "box-2")
    assert incident.review_at is not None


def test_how_often_it_came_back_is_said_in_words(acme: Acme, session: Session) -> None:
    drifted(acme, session, working_directory="/tmp")
    watchdog.sweep()
    grounds = Incident.objects.get().steps.get().grounds
    assert "another working directory than it is bound to, once so far." in grounds


def test_one_is_open_for_each_session_and_field(acme: Acme, session: Session) -> None:
    for _ in range(2):
        drifted(acme, session, host="box-2")
        drifted(acme, session, working_directory="/tmp")
        watchdog.sweep()
    subjects = Incident.objects.order_by("subject").values_list("subject", flat=True)
    assert list(subjects) == ["host", "working_directory"]


def test_what_was_only_noted_is_no_incident(acme: Acme, session: Session) -> None:
    answer_to(a_submit(acme, a_tool(acme, **SHOP), session_id=session.id, host="box-2"))
    watchdog.sweep()
    assert (Drift.objects.count(), Incident.objects.count()) == (1, 0)


def test_who_comes_back_with_a_stale_epoch_is_an_incident(acme: Acme, session: Session) -> None:
    rebound(session, by=acme.olga)
    with pytest.raises(StaleEpoch):
        bindings.come_back(session_id=session.id, workspace_id=session.workspace_id,
                           agent_id=session.agent_id, stated=Stated(epoch=1))  # fmt: skip
    watchdog.sweep()
    assert Incident.objects.get().subject == "epoch"


def test_a_drift_from_before_the_rebind_is_told_no_more(acme: Acme, session: Session) -> None:
    drifted(acme, session, host="box-2")
    rebound(session, by=acme.olga, host="box-2")
    watchdog.sweep()
    assert not Incident.objects.exists()


def test_a_drift_that_goes_on_is_told_again_after_a_while_and_no_oftener(
    acme: Acme, session: Session
) -> None:
    for _ in range(3):
        drifted(acme, session, host="box-2")
        watchdog.sweep()
    incident = Incident.objects.get()
    assert incident.steps.count() == 1
    sql("UPDATE ledger_drift SET told_at = clock_timestamp() - interval '11 minutes'")
    drifted(acme, session, host="box-2")
    watchdog.sweep()
    assert incident.steps.latest("id").facts["times"] == 4


def test_a_person_may_say_that_it_was_looked_at(acme: Acme, session: Session) -> None:
    drifted(acme, session, host="box-2")
    watchdog.sweep()
    confirmed = confirmations.confirm(
        workspace_id=acme.workspace.id, incident_id=Incident.objects.get().id, by_name="olga",
        grounds="The old process is gone.",
    )  # fmt: skip
    assert confirmed.closed_at is not None


def test_a_drift_is_a_companion_of_what_was_interrupted_within_ten_minutes(
    acme: Acme, session: Session
) -> None:
    call = builders.a_call(acme, "interrupted", session_id=session.id)
    drifted(acme, session, host="box-2")
    watchdog.sweep()
    drift = Incident.objects.get(kind=IncidentKind.STALE_BINDING)
    recovery = Incident.objects.get(call=call)
    assert companions.of([drift.id, recovery.id]) == {
        drift.id: [recovery.id], recovery.id: [drift.id],
    }  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_two_watchdogs_at_once_open_one(acme: Acme, session: Session) -> None:
    drifted(acme, session, host="box-2")
    at_once([lambda: drifts.tell(10), lambda: drifts.tell(10)])
    assert Incident.objects.count() == 1
