"""What the start page counts and lists."""

from datetime import timedelta

import pytest

from dashboard import access, overview
from dashboard.overview import Figure
from ledger import clock
from ledger.models import ToolCall
from ledger.vocabulary import CallState
from tests import builders, cast

pytestmark = pytest.mark.django_db


def seen_by(person: object) -> overview.Overview:
    return overview.of(access.calls_of(person), clock.now())


def figures(acme: cast.Acme) -> dict[str, str]:
    return {each.view: str(each.figure) for each in seen_by(acme.olga).counters}


def overdue(call: ToolCall, deadline: str) -> None:
    """A minute ago the deadline passed, and no sweep has come."""
    past = clock.now() - timedelta(minutes=1)
    ToolCall.objects.filter(id=call.id).update(**{f"{deadline}_at": past})


def listed(acme: cast.Acme, view: str = "") -> list[str]:
    found = overview.latest(access.calls_of(acme.olga), view, clock.now())
    return [call.state for call in found.calls]


def test_an_empty_workspace_counts_nothing(acme: cast.Acme) -> None:
    assert set(figures(acme).values()) == {"0"}
    assert {str(row.figure) for row in seen_by(acme.olga).states} == {"0"}


def test_every_state_is_counted_once(acme: cast.Acme) -> None:
    for state in ("running", "ambiguous", "failed", "succeeded", "succeeded"):
        builders.a_call(acme, in_state=state)
    counted = {row.label.word: row.figure.number for row in seen_by(acme.olga).states}
    assert {state: n for state, n in counted.items() if n} == {
        "running": 1, "ambiguous": 1, "failed": 1, "succeeded": 2
    }  # fmt: skip
    assert set(counted) == set(CallState)


@pytest.mark.corrupts
def test_the_counters_answer_the_five_questions(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="ambiguous")
    builders.a_call(acme, in_state="interrupted")
    builders.a_call(acme, in_state="running")
    builders.a_call(acme, in_state="failed")
    overdue(builders.a_call(acme), "schedule_to_start")
    assert figures(acme) == {
        "needs_answer": "1", "overdue": "1", "running": "1", "no_settled_result": "2",
        "settled_today": "1",
    }  # fmt: skip


def test_a_counter_lists_exactly_what_it_counts(acme: cast.Acme) -> None:
    for state in ("ambiguous", "interrupted", "running", "failed", "succeeded"):
        builders.a_call(acme, in_state=state)
    for view, figure in figures(acme).items():
        assert len(listed(acme, view)) == int(figure), view


def test_a_view_of_a_state_lists_that_state_only(acme: cast.Acme) -> None:
    for state in ("running", "succeeded", "failed"):
        builders.a_call(acme, in_state=state)
    assert listed(acme, "running") == ["running"]
    assert listed(acme, "failed") == ["failed"]


def test_an_unknown_view_lists_nothing(acme: cast.Acme) -> None:
    builders.a_call(acme)
    assert listed(acme, "no such view") == []


def test_the_newest_call_comes_first_and_the_list_is_short(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "LATEST", 2)
    for state in ("running", "succeeded", "failed"):
        builders.a_call(acme, in_state=state)
    assert listed(acme) == ["failed", "succeeded"]


@pytest.mark.corrupts
def test_a_silent_worker_is_named_on_the_running_counter(acme: cast.Acme) -> None:
    overdue(builders.a_call(acme, in_state="running"), "heartbeat")
    notes = {each.view: each.note for each in seen_by(acme.olga).counters}
    assert notes["running"] == "1 without heartbeat"


def test_a_deadline_that_waits_for_the_next_sweep_is_not_overdue(acme: cast.Acme) -> None:
    builders.past(builders.a_call(acme), "schedule_to_start")
    assert figures(acme)["overdue"] == "0"


def test_a_full_window_says_that_more_may_be_settled(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "WINDOW", 2)
    for state in ("failed", "succeeded", "succeeded"):
        builders.a_call(acme, in_state=state)
    found = seen_by(acme.olga)
    assert found.is_window_full
    assert {row.label.word: str(row.figure) for row in found.states}["succeeded"] == "2+"


def test_a_member_sees_only_the_calls_of_the_workspace(
    acme: cast.Acme, globex: cast.Globex
) -> None:
    call = builders.a_call(acme)
    assert list(access.calls_of(acme.vera)) == [call]
    assert list(access.calls_of(globex.mallory_herself)) == []


def test_a_person_with_several_roles_counts_a_call_once(globex: cast.Globex) -> None:
    builders.a_call(globex)
    assert access.calls_of(globex.mallory_herself).count() == ToolCall.objects.count() == 1


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(0), "0"),
        (Figure(23), "23"),
        (Figure(1000), "1000"),
        (Figure(1001), "1\N{NO-BREAK SPACE}000+"),
        (Figure(412, at_least=True), "412+"),
        (Figure(0, at_least=True), "0"),
    ],
)
def test_a_figure_is_exact_up_to_a_thousand(figure: Figure, text: str) -> None:
    assert str(figure) == text
