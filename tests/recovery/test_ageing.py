"""What waits for a person ages: reminded at half and at nine tenths, then a wider circle asked."""

from datetime import timedelta

import pytest

from ledger import clock
from ledger.journal import events_of
from ledger.models import ToolCall
from recovery import ageing, watchdog
from recovery.models import Incident
from tests import builders
from tests.builders import a_call, fire, fresh, past
from tests.cast import Acme
from tests.recovery.test_late import contradictions
from tests.recovery.test_late import (
    test_success_after_a_settled_failure_proposes_a_correction as settle_otherwise,
)
from tests.recovery.test_recovering import incident_of

REVIEW_S = 4 * 3600


def age(incident: Incident, part: float) -> None:
    """Let this part of the review time have passed; a second more."""
    incident.refresh_from_db()
    left = timedelta(seconds=REVIEW_S * (1 - part) - 1)
    back = incident.review_at - clock.now() - left  # type: ignore[operator]
    Incident.objects.filter(id=incident.id).update(
        review_at=incident.review_at - back,  # type: ignore[operator]
        remind_at=incident.remind_at - back,  # type: ignore[operator]
    )


def reminded(call: ToolCall) -> int:
    return [event.kind for event in events_of(call.id)].count("reminded")


def test_an_exhausted_incident_has_its_dates(acme: Acme) -> None:
    call = a_call(acme, in_state="ambiguous")
    incident = incident_of(call)
    half = incident.review_at - incident.remind_at  # type: ignore[operator]
    assert half.total_seconds() == pytest.approx(REVIEW_S / 2, abs=1)
    assert abs((incident.review_at - call.review_at).total_seconds()) < 5  # type: ignore[operator]


def test_at_half_and_at_nine_tenths_the_same_circle_is_reminded(acme: Acme) -> None:
    call = a_call(acme, in_state="ambiguous")
    incident = incident_of(call)
    assert watchdog.remind() == 0
    for times, part in enumerate((0.5, 0.9), start=1):
        age(incident, part)
        assert [watchdog.remind(), watchdog.remind()] == [1, 0]
        assert reminded(call) == times
    incident.refresh_from_db()
    assert (incident.escalation_level, incident.remind_at) == (0, incident.review_at)
    assert fresh(call).state == "ambiguous"


def test_at_the_review_deadline_a_wider_circle_is_asked_and_nothing_decided(acme: Acme) -> None:
    call = a_call(acme, in_state="ambiguous")
    asked = []
    for _ in range(3):
        past(call, "review")
        fire()
        incident = incident_of(call)
        asked.append(ageing.asked(incident.escalation_level))
        assert incident.review_at > incident.remind_at  # type: ignore[operator]
    assert asked == ["approver", "admin", "admin"]
    assert (fresh(call).state, reminded(call)) == ("ambiguous", 3)
    assert fresh(call).review_at > call.review_at  # type: ignore[operator]


def test_both_dates_of_one_review_ask_wider_once(acme: Acme) -> None:
    call = a_call(acme, in_state="ambiguous")
    age(incident_of(call), 1.0)
    past(call, "review")
    watchdog.sweep()
    assert incident_of(call).escalation_level == 1
    assert reminded(call) == 1


def test_each_reminder_is_a_line_with_its_level(acme: Acme) -> None:
    call = past(a_call(acme, in_state="ambiguous"), "review")
    fire()
    line = incident_of(call).steps.latest("id")
    assert (line.rung, line.timer, line.facts["asked"]) == ("review", "review", "approver")


def test_the_machines_turn_again_reminds_nobody(acme: Acme) -> None:
    call = a_call(acme, in_state="interrupted")
    incident = incident_of(call)
    ageing.begin(incident, REVIEW_S)
    age(incident, 1.0)
    watchdog.remind()
    incident.refresh_from_db()
    assert (incident.remind_at, reminded(call)) == (None, 0)


def test_a_contradiction_of_a_settled_call_ages_too(acme: Acme) -> None:
    settle_otherwise(acme)
    incident = Incident.objects.get(kind="contradiction")
    call = fresh(incident.call_id)
    before = len(events_of(call.id))
    age(incident, 1.0)
    assert watchdog.remind() == 1
    (incident,) = contradictions(call)
    assert incident.escalation_level == 1
    assert len(events_of(call.id)) == before


def test_a_closed_incident_has_no_dates(acme: Acme) -> None:
    call = a_call(acme, in_state="ambiguous")
    with_result = builders.claim_of(call)
    builders.settlements.settle([builders.settlement(with_result)])
    fire()
    incident = incident_of(call)
    assert (incident.state, incident.remind_at, incident.review_at) == ("skipped", None, None)
