"""What nobody took, and what an agent lost, becomes an incident of its session, once."""

import pytest

from ledger import handoffs, ids, lost_lines, unresolved
from ledger.models import CompactionCheck, HandOff
from ledger.models.fields import ClockTimestamp
from ledger.vocabulary import FailurePoint, IncidentKind, IncidentState
from recovery import handovers
from recovery.models import Incident
from tests.cast import Acme
from tests.ledger.test_compactions import a_call, a_history, compacted
from tests.ledger.test_handoffs import bens, offered, receiver, taken

pytestmark = pytest.mark.django_db


def of_kind(kind: IncidentKind) -> list[Incident]:
    return list(Incident.objects.filter(kind=kind).order_by("number"))


def test_a_missing_call_opens_one_incident_on_the_session(acme: Acme) -> None:
    session, turn = a_history(acme)
    lost = a_call(acme, turn, "running", 0)
    row = compacted(session)
    for _ in range(2):
        lost_lines.compare(session=session, compaction=row, transcript=[])
    assert (handovers.sweep(10), handovers.sweep(10)) == (2, 0)
    (incident,) = of_kind(IncidentKind.COMPACTION_LOSS)
    assert (incident.session_id, incident.call_id) == (session.id, None)
    assert incident.failure_point is FailurePoint.DURING_HANDOFF
    assert incident.facts["missing"] == [ids.shown("call", lost.id)]
    assert incident.steps.count() == 2


def test_a_later_comparison_that_finds_every_call_ends_it(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    row = compacted(session)
    _, lines = lost_lines.compare(session=session, compaction=row, transcript=[])
    handovers.sweep(10)
    lost_lines.compare(session=session, compaction=row, transcript=[lines[0]["said"]])
    assert handovers.sweep(10) == 1
    (incident,) = of_kind(IncidentKind.COMPACTION_LOSS)
    assert incident.state is IncidentState.COMPLETED
    assert not CompactionCheck.objects.filter(taken_up_at__isnull=True).exists()


def test_a_whole_transcript_opens_nothing(acme: Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    row = compacted(session)
    lost_lines.compare(session=session, compaction=row, transcript=row.carry_over)
    assert handovers.sweep(10) == 1
    assert of_kind(IncidentKind.COMPACTION_LOSS) == []


def test_a_declined_offer_is_an_incident_of_its_sender(acme: Acme) -> None:
    session, turn = a_history(acme)
    call = a_call(acme, turn, "running", 0)
    row = offered(session)
    handoffs.refuse(hand_off_id=row.id, by=receiver(bens(acme)), why="Not mine.")
    assert (handovers.sweep(10), handovers.sweep(10)) == (1, 0)
    (incident,) = of_kind(IncidentKind.HAND_OFF)
    assert (incident.session_id, incident.subject) == (session.id, row.id.hex)
    assert "declined: Not mine." in incident.steps.get().grounds
    assert [each.id for each in unresolved.of_session(session.id)] == [call.id]


def test_an_offer_that_nobody_answered_expires_and_is_an_incident(acme: Acme) -> None:
    session, _ = a_history(acme)
    row = offered(session)
    HandOff.objects.filter(id=row.id).update(expires_at=ClockTimestamp())
    assert handovers.sweep(10) == 2
    row.refresh_from_db()
    assert (row.ended_as, len(of_kind(IncidentKind.HAND_OFF))) == ("expired", 1)


def test_an_accepted_offer_is_no_incident(acme: Acme) -> None:
    session, _ = a_history(acme)
    taken(offered(session), bens(acme))
    assert handovers.sweep(10) == 0
