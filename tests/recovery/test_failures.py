"""A row that cannot be moved: written down each time, and given up the third time."""

import pytest
from django.db import connection

from ledger.journal import events_of
from ledger.models import ToolCall
from ledger.vocabulary import ExhaustionReason, IncidentKind
from recovery import watchdog
from recovery.models import Incident
from tests.builders import a_call, fresh, past
from tests.cast import Acme
from tests.recovery.test_recovering import PROBED, incident_of
from tests.refusals import sql


def stuck(call: ToolCall, *states: str) -> None:
    """Let the database refuse these states for one call, as a bug of ours would."""
    connection.check_constraints()
    refused = ", ".join(f"'{state}'" for state in states)
    sql(f"ALTER TABLE ledger_toolcall ADD CONSTRAINT stuck CHECK (NOT (id = '{call.id}' "
        f"AND state IN ({refused}))) NOT VALID")  # fmt: skip


def mended() -> None:
    connection.check_constraints()
    sql("ALTER TABLE ledger_toolcall DROP CONSTRAINT stuck")


def swept(call: ToolCall, times: int) -> ToolCall:
    for _ in range(times):
        watchdog.fire_due()
    return fresh(call)


def failures(call: ToolCall) -> list[dict[str, object]]:
    return [event.facts_json for event in events_of(call.id) if event.kind == "step_failed"]


@pytest.fixture
def write(acme: Acme) -> ToolCall:
    """A lost keyed write that is due to be repeated, and cannot."""
    call = a_call(acme, "interrupted", "idempotent_write")
    stuck(call, "backing_off")
    return call


def test_a_step_that_breaks_is_a_line_on_the_timeline(write: ToolCall) -> None:
    call = swept(write, 1)
    assert call.state == "interrupted"
    assert failures(call) == [{"error": "IntegrityError 23514", "times": 1}]
    line = incident_of(call).steps.latest("id")
    assert (line.rung, line.rule) == ("error", "recovery_error")
    assert incident_of(call).state == "detected"


def test_the_third_time_an_operator_decides(write: ToolCall) -> None:
    call = swept(write, 3)
    incident = incident_of(call)
    assert (call.state, incident.state) == ("ambiguous", "exhausted")
    assert incident.reason == ExhaustionReason.RECOVERY_ERROR
    assert [each["times"] for each in failures(call)] == [1, 2, 3]


def test_what_was_given_up_is_not_swept_again(write: ToolCall) -> None:
    swept(write, 3)
    before = len(events_of(write.id))
    swept(write, 3)
    assert len(events_of(write.id)) == before


def test_without_an_effect_it_expires(acme: Acme) -> None:
    call = past(a_call(acme, "backing_off", "side_effect"), "backoff")
    stuck(call, "scheduled")
    assert swept(call, 3).state == "expired"


def test_a_lost_attempt_that_cannot_be_moved_is_fenced_and_escalated(acme: Acme) -> None:
    call = past(a_call(acme, "running", "idempotent_write", crossed=True), "start_to_close")
    connection.check_constraints()
    sql("ALTER TABLE recovery_incident ADD CONSTRAINT stuck CHECK (cause <> 'hang') NOT VALID")
    call = swept(call, 3)
    assert (call.state, call.effect) == ("ambiguous", "possible")
    assert incident_of(call).reason == ExhaustionReason.RECOVERY_ERROR


def test_a_give_up_that_breaks_too_is_tried_again_whole(acme: Acme) -> None:
    call = a_call(acme, "interrupted", "idempotent_write")
    stuck(call, "backing_off", "ambiguous")
    call = swept(call, 5)
    assert call.state == "interrupted"
    assert len(failures(call)) == 3
    mended()
    assert swept(call, 1).state == "backing_off"


def test_a_call_that_nothing_moves_is_an_unbounded_wait(acme: Acme) -> None:
    call = a_call(acme, "interrupted", "idempotent_write")
    stuck(call, "backing_off", "ambiguous")
    swept(call, 5)
    waits = Incident.objects.get(call=call, kind=IncidentKind.UNBOUNDED_WAIT)
    assert waits.steps.count() == 1
    assert waits.facts["error"] == "IntegrityError 23514"


def test_no_row_is_quoted(write: ToolCall) -> None:
    swept(write, 1)
    said = str(failures(write)) + incident_of(write).steps.latest("id").grounds
    assert "Failing row" not in said
    assert "report.txt" not in said


def test_a_call_that_moved_begins_to_count_anew(acme: Acme) -> None:
    call = a_call(acme, "interrupted", "side_effect", policy=PROBED)
    stuck(call, "ambiguous")
    past(call, "recovery_window")
    assert len(failures(swept(call, 2))) == 2
    mended()
    assert swept(call, 1).state == "ambiguous"


def test_a_review_that_breaks_leaves_the_call_to_its_operator(acme: Acme) -> None:
    call = past(a_call(acme, "ambiguous", "side_effect"), "review")
    connection.check_constraints()
    sql("ALTER TABLE recovery_step ADD CONSTRAINT stuck CHECK (rung <> 'review') NOT VALID")
    call = swept(call, 4)
    assert call.state == "ambiguous"
    assert Incident.objects.filter(call=call, kind=IncidentKind.UNBOUNDED_WAIT).count() == 1
