"""Everything that is waited for: one list, soonest first, with what happens then."""

from datetime import timedelta

import pytest

from dashboard import deadlines
from ledger import clock, ids
from ledger.errors import Invalid
from ledger.models import Gate
from ledger.vocabulary import Deadline, GateKind
from tests import builders, cast
from tests.dashboard.watching import signed_in, text_of
from tests.ledger.test_compactions import a_call, a_history
from tests.ledger.test_handoffs import offered
from tests.recovery import deciding

pytestmark = pytest.mark.django_db


def waits(acme: cast.Acme) -> list[deadlines.Wait]:
    return deadlines.read(acme.workspace.id, clock.now()).waits


def test_every_deadline_says_what_happens_then() -> None:
    assert set(map(str, Deadline)) <= set(deadlines.THEN)


def test_open_calls_and_decisions_stand_in_one_list_soonest_first(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="scheduled")
    call = deciding.ambiguous(acme, delivery_delay_s=5)
    deciding.decide(acme, call, "happened")
    found = waits(acme)
    assert found[0].what == "resolution"
    assert {each.what for each in found[1:]} == {"schedule_to_start", "review"}
    assert [each.at for each in found] == sorted(each.at for each in found)


def test_a_request_for_a_second_person_lapses_and_says_so(acme: cast.Acme) -> None:
    call = deciding.ambiguous(acme, second_person="always")
    deciding.decide(acme, call, "happened")
    assert "request" in {each.what for each in waits(acme)}


def test_a_hand_off_leads_to_the_session_whose_calls_are_offered(acme: cast.Acme) -> None:
    session, turn = a_history(acme)
    a_call(acme, turn, "running", 0)
    offered(session)
    [wait] = [each for each in waits(acme) if each.what == "hand_off"]
    assert wait.address == f"/sessions/{ids.shown('session', session.id)}"
    assert signed_in(acme.vera).get(wait.address).status_code == 200


def a_gate(acme: cast.Acme, kind: GateKind = GateKind.TOOL, *, in_s: float = -60) -> Gate:
    """An open breaker's gate, whose trial is due in so many seconds."""
    trial_at = clock.now() + timedelta(seconds=in_s)
    return Gate.objects.create(
        workspace=acme.workspace, kind=kind, name="lookup", why="breaker_open", trial_at=trial_at
    )


def test_a_trial_waits_for_the_next_call_and_is_never_late(acme: cast.Acme) -> None:
    a_gate(acme)
    page = text_of(signed_in(acme.vera).get("/deadlines"))
    assert "at the next call" in page
    assert "overdue" not in page
    assert 'href="/tools/lookup"' in page


def test_a_trial_to_come_counts_down_and_a_providers_has_no_page(acme: cast.Acme) -> None:
    a_gate(acme, GateKind.PROVIDER, in_s=60)
    [wait] = waits(acme)
    assert (wait.awaits_call, wait.is_late, wait.address) == (False, False, "")


def test_a_call_whose_date_has_passed_is_late(acme: cast.Acme) -> None:
    builders.past(builders.a_call(acme, in_state="scheduled"), "schedule_to_start")
    [wait] = deadlines.read(acme.workspace.id, clock.now() + timedelta(minutes=1)).waits
    assert wait.is_late


def test_a_settled_call_is_waited_for_no_longer(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="succeeded")
    assert waits(acme) == []
    assert "Nothing is waiting" in text_of(signed_in(acme.vera).get("/deadlines"))


def test_pages_go_on_where_the_last_one_ended(acme: cast.Acme) -> None:
    for _ in range(5):
        builders.a_call(acme, in_state="scheduled")
    seen, cursor = [], ""
    while True:
        page = deadlines.read(acme.workspace.id, clock.now(), cursor, limit=2)
        seen += [each.id for each in page.waits]
        cursor = page.more
        if not cursor:
            break
    assert len(seen) == len(set(seen)) == 5


@pytest.mark.parametrize("cursor", ["x", "W10=", "bnVsbA==", "WyIxIiwgIjIiXQ=="])
def test_a_foreign_cursor_is_refused(acme: cast.Acme, cursor: str) -> None:
    with pytest.raises(Invalid):
        deadlines.read(acme.workspace.id, clock.now(), cursor)


def test_another_workspace_waits_for_nothing_of_this_one(
    acme: cast.Acme, globex: cast.Globex
) -> None:
    builders.a_call(acme, in_state="scheduled")
    assert deadlines.read(globex.workspace.id, clock.now()).waits == []
