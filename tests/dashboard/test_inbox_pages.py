"""The inbox: what waits for a person, in the order of its deadlines, and frozen while one reads."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from dashboard import inbox
from ledger import ids
from ledger.models import Interrupt, Session, ToolCall, Turn
from ledger.models.fields import ClockTimestamp
from recovery import takings
from recovery.models import Incident
from tests import builders, cast
from tests.builders import fresh
from tests.cast import as_decider
from tests.dashboard.deciding import address, operator, text
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, incident_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    return operator(acme.olga)


def listed(acme: cast.Acme, **asked: Any) -> list[ToolCall]:
    """The calls of the inbox in its order."""
    found = inbox.of(as_decider(acme.olga), inbox.Asked(**asked))
    return [each.call for each in found.rows if each.call]


def reviewed(call: ToolCall, **until: float) -> None:
    """Let the review of a call's incident end so long from now."""
    Incident.objects.filter(call=call).update(review_at=ClockTimestamp() + timedelta(**until))


def test_what_is_nearest_to_its_deadline_stands_first(acme: cast.Acme) -> None:
    later, overdue, soon = (builders.a_call(acme, "ambiguous") for _ in range(3))
    reviewed(later, hours=3)
    reviewed(overdue, hours=-1)
    reviewed(soon, hours=1)
    assert listed(acme) == [overdue, soon, later]
    Incident.objects.filter(call=later).update(escalation_level=1)
    assert listed(acme)[0] == later, "one that was escalated has been late the longest"


def test_only_what_asks_a_person_is_listed(acme: cast.Acme, olga: Client) -> None:
    for state in ("running", "interrupted", "succeeded"):
        builders.a_call(acme, state)
    assert listed(acme) == []
    page = text(olga.get("/inbox"))
    assert "Nothing needs an answer" in page
    assert "No incident was ever resolved by a person here." in page


def test_an_empty_inbox_names_what_was_resolved_last(acme: cast.Acme, olga: Client) -> None:
    call = ambiguous(acme, **AT_ONCE)
    decide(acme, call, "happened")
    page = olga.get("/inbox")
    assert "The last one was closed at" in text(page)
    assert address(call) in page.content.decode()


def test_each_filter_narrows_and_stands_in_the_address(acme: cast.Acme, olga: Client) -> None:
    side, write = ambiguous(acme), ambiguous(acme, "idempotent_write")
    assert listed(acme, recovery_class="side_effect") == [side]
    assert listed(acme, tool=write.tool) == [write]
    assert set(listed(acme, cause=str(side.cause))) == {side, write}
    assert listed(acme, kind="contradiction") == []
    assert listed(acme, age_min=1) == []
    page = text(olga.get("/inbox?class=read_only"))
    assert "Nothing matches these filters" in page


def test_a_filter_that_is_no_number_counts_as_none(acme: cast.Acme, olga: Client) -> None:
    call = builders.a_call(acme, "ambiguous")
    for query in ("age_min=x", "age_min=-1", "age_min=9999999", "kind=", "group=nonsense"):
        assert address(call) in olga.get(f"/inbox?{query}").content.decode(), query


def test_rows_are_grouped_by_their_cause(acme: cast.Acme, olga: Client) -> None:
    builders.a_call(acme, "ambiguous")
    builders.a_call(acme, "ambiguous")
    page = text(olga.get("/inbox?group=cause"))
    assert "worker lost 2" in page


def test_the_next_one_is_the_first_that_nobody_has_taken(acme: cast.Acme, olga: Client) -> None:
    first, second = builders.a_call(acme, "ambiguous"), builders.a_call(acme, "ambiguous")
    reviewed(first, hours=-1)
    assert olga.get("/inbox/next")["Location"] == address(first)
    takings.take(incident_id=incident_of(first).id, by=as_decider(acme.olga))
    assert olga.get("/inbox/next")["Location"] == address(second)
    takings.take(incident_id=incident_of(second).id, by=as_decider(acme.olga))
    assert olga.get("/inbox/next")["Location"].startswith("/inbox")


def part(calls: list[ToolCall], query: str = "") -> str:
    rows = ",".join(ids.shown("incident", incident_of(each).id) for each in calls)
    return f"/parts/inbox?{query}&rows={rows}"


def test_a_row_resolved_by_somebody_else_stays_greyed_in_its_place(
    acme: cast.Acme, olga: Client
) -> None:
    calls = [ambiguous(acme, **AT_ONCE) for _ in range(3)]
    decide(acme, calls[0], "happened")
    page = olga.get(part(calls)).content.decode()
    places = [page.index(address(each)) for each in calls]
    assert places == sorted(places)
    assert "resolved by <bdi>olga</bdi>" in page
    assert page.count('class="gone"') == 1


def test_what_came_since_is_counted_and_not_drawn(acme: cast.Acme, olga: Client) -> None:
    old, new = ambiguous(acme), ambiguous(acme)
    page = olga.get(part([old])).content.decode()
    assert "1 new" in page
    assert address(new) not in page


def test_the_rows_are_not_sent_again_while_nothing_changes(acme: cast.Acme, olga: Client) -> None:
    call = ambiguous(acme)
    tags = {olga.get(part([call]))["HX-PTag"] for _ in range(2)}
    assert len(tags) <= 2, "the age moves once a minute"
    tag = olga.get(part([call]))["HX-PTag"]
    builders.a_call(acme, "ambiguous")
    assert olga.get(part([call]), headers={"HX-PTag": tag}).status_code == 200


def test_a_neighbours_rows_are_neither_listed_nor_found_by_their_ids(
    acme: cast.Acme, globex: cast.Globex
) -> None:
    call = ambiguous(acme)
    mallory = operator(globex.mallory_herself)
    for path in ("/inbox", part([call])):
        assert call.tool not in mallory.get(path).content.decode()


def test_the_inbox_costs_the_same_queries_for_many_rows(
    acme: cast.Acme, olga: Client, django_assert_max_num_queries: Any
) -> None:
    for _ in range(2):
        builders.a_call(acme, "ambiguous")
    with django_assert_max_num_queries(20):
        olga.get("/inbox")
    for _ in range(8):
        builders.a_call(acme, "ambiguous")
    with django_assert_max_num_queries(20):
        olga.get("/inbox")


# Holds


@pytest.fixture
def held(acme: cast.Acme) -> Interrupt:
    """A call held behind a side effect of its turn that may have happened."""
    session: Session = builders.a_session(acme)
    turn: Turn = builders.a_turn(session)
    place = {"session_id": session.id, "turn_id": turn.id}
    builders.a_call(acme, "ambiguous", tool_call_id="t1", **place)
    submit = builders.a_submit(
        acme, builders.a_tool(acme), tool_call_id="t2", arguments={"path": "b.txt"}, **place
    )
    builders.answer_to(submit)
    return Interrupt.objects.get(ended_at__isnull=True)


def test_a_hold_says_what_it_waits_for_and_shows_what_would_run(
    acme: cast.Acme, olga: Client, held: Interrupt
) -> None:
    page = text(olga.get(f"/interrupts/{held.id}"))
    assert "It has not run: an earlier side effect of its turn may have happened." in page
    assert "b.txt" in page


def test_an_operator_reads_who_may_let_a_held_call_run(
    acme: cast.Acme, olga: Client, held: Interrupt
) -> None:
    answer = {"answer": "approve", "grounds": "It does not depend on it.", "once": "a"}
    refused = olga.post(f"/interrupts/{held.id}", answer)
    assert refused.status_code == 403
    assert "It does not depend on it." in text(refused)
    assert fresh(held.call_id).state == "paused"


def test_an_approver_lets_a_held_call_run_once(acme: cast.Acme, held: Interrupt) -> None:
    arno = operator(cast.a_person("arno", acme.workspace, "approver"))
    answer = {"answer": "approve", "grounds": "It does not depend on it.", "once": "a"}
    assert arno.post(f"/interrupts/{held.id}", answer).status_code == 302
    assert arno.post(f"/interrupts/{held.id}", answer).status_code == 302
    assert fresh(held.call_id).state == "scheduled"
    assert "It was answered" in text(arno.get(f"/interrupts/{held.id}"))


def test_another_answer_comes_too_late_and_keeps_the_text(acme: cast.Acme, held: Interrupt) -> None:
    arno = operator(cast.a_person("arno", acme.workspace, "approver"))
    answer = {"answer": "approve", "grounds": "Yes.", "once": "a"}
    arno.post(f"/interrupts/{held.id}", answer)
    late = arno.post(
        f"/interrupts/{held.id}", {"answer": "reject", "grounds": "My own text.", "once": "b"}
    )
    assert late.status_code == 409
    assert "My own text." in text(late)


def test_a_neighbour_finds_no_hold(globex: cast.Globex, held: Interrupt) -> None:
    mallory = operator(globex.mallory_herself)
    assert mallory.get(f"/interrupts/{held.id}").status_code == 404
    assert mallory.post(f"/interrupts/{held.id}", {"answer": "approve"}).status_code == 404
