"""Incidents on a session: one open for each subject, aged and confirmed like those on a call."""

from datetime import timedelta

import pytest
from django.db import transaction

from ledger import clock
from ledger.models import Session
from ledger.vocabulary import FailurePoint, IncidentKind, IncidentState
from recovery import aborts, ageing, companions, confirmations, incidents, watchdog
from recovery.models import Incident
from recovery.refusals import NoCall
from tests import builders
from tests.cast import Acme

pytestmark = pytest.mark.django_db


def reported(session: Session, subject: str = "one") -> Incident:
    with transaction.atomic():
        return incidents.report_of_session(
            session, IncidentKind.HAND_OFF, subject=subject, grounds="Nobody took it.", facts={}
        )  # fmt: skip


def test_a_second_report_of_one_subject_is_a_line_on_the_first(acme: Acme) -> None:
    session = builders.a_session(acme)
    first, again, other = reported(session), reported(session), reported(session, "two")
    assert (first.id, first.steps.count()) == (again.id, 2)
    assert (other.id != first.id, other.number) == (True, 2)
    assert first.failure_point is FailurePoint.DURING_HANDOFF


def test_it_reminds_and_asks_wider_by_a_time_of_its_own(acme: Acme) -> None:
    incident = reported(builders.a_session(acme))
    Incident.objects.filter(id=incident.id).update(remind_at=clock.now())
    assert watchdog.remind() == 1
    past = clock.now() - timedelta(seconds=1)
    Incident.objects.filter(id=incident.id).update(remind_at=past, review_at=past)
    assert watchdog.remind() == 1
    incident.refresh_from_db()
    assert [each.rung for each in incident.steps.order_by("id")] == [
        "hand_off",
        "reminder",
        "review",
    ]
    assert incident.review_at is not None
    left = (incident.review_at - clock.now()).total_seconds()
    assert (incident.escalation_level, left) == (1, pytest.approx(ageing.SESSION_REVIEW_S, abs=30))


def test_a_person_who_has_looked_ends_it(acme: Acme) -> None:
    incident = reported(builders.a_session(acme))
    for _ in range(2):
        ended = confirmations.confirm(
            workspace_id=acme.workspace.id, incident_id=incident.id, by_name="olga",
            grounds="Ben is on leave.",
        )  # fmt: skip
    assert (ended.state, ended.remind_at, ended.steps.count()) == (IncidentState.RESOLVED, None, 2)


def test_nothing_that_needs_a_call_is_done_to_it(acme: Acme) -> None:
    incident = reported(builders.a_session(acme))
    with pytest.raises(NoCall, match="about a session"):
        aborts.stop(
            workspace_id=acme.workspace.id, incident_id=incident.id, by_id="1", by_name="olga",
            grounds="Enough.",
        )  # fmt: skip


def test_it_is_the_companion_of_an_interrupted_call_of_its_session(acme: Acme) -> None:
    session = builders.a_session(acme)
    call = builders.a_call(acme, "interrupted", session_id=session.id)
    beside, elsewhere = Incident.objects.get(call=call), reported(builders.a_session(acme))
    incident = reported(session)
    found = companions.of([incident.id, beside.id, elsewhere.id])
    assert found == {incident.id: [beside.id], beside.id: [incident.id]}
