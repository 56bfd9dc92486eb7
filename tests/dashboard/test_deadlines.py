"""Everything that is waited for: one list, soonest first, with what happens then."""

import pytest

from dashboard import deadlines
from ledger import clock
from ledger.errors import Invalid
from ledger.vocabulary import Deadline
from tests import builders, cast
from tests.dashboard.watching import signed_in, text_of
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


def test_a_settled_call_is_waited_for_no_longer(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="succeeded")
    assert waits(acme) == []
    assert "Nothing is waiting" in text_of(signed_in(acme.vera).get("/deadlines"))


def test_pages_go_on_where_the_last_one_ended(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        builders.a_call(acme, in_state="scheduled")
    monkeypatch.setattr(deadlines, "ROWS", 2)
    seen, cursor = [], ""
    while True:
        page = deadlines.read(acme.workspace.id, clock.now(), cursor)
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
