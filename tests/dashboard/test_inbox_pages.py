"""The inbox: what waits for a person, in the order of its deadlines, and frozen while one reads."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from dashboard import inbox
from ledger import ids
from ledger.errors import FenceLost
from ledger.models import Interrupt, Session, ToolCall, Turn
from ledger.models.fields import ClockTimestamp
from recovery import aborts, ageing, asides, resolutions, takings
from recovery.models import Aside, Incident
from tests import builders, cast
from tests.builders import fresh
from tests.cast import as_decider
from tests.dashboard.deciding import address, operator, text
from tests.dashboard.watching import an_hour_ago
from tests.ledger.test_twins import Talk, abandon
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, incident_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    return operator(acme.olga)


def listed(acme: cast.Acme, **asked: Any) -> list[ToolCall]:
    """The calls of the inbox in its order."""
    asked = {name: str(value) for name, value in asked.items()}
    found = inbox.of(as_decider(acme.olga), inbox.asked_of(asked))
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


def test_where_more_are_open_than_are_read_the_most_urgent_are(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "READ_MAX", 3)
    old, aside, later, soon, escalated = (builders.a_call(acme, "ambiguous") for _ in range(5))
    for call, hours in ((old, 9), (aside, -9), (later, 3), (soon, 1), (escalated, 8)):
        reviewed(call, hours=hours)
    Incident.objects.filter(call=escalated).update(escalation_level=1)
    asides.set_aside(incident_id=incident_of(aside).id, minutes=60, by=as_decider(acme.olga))
    assert listed(acme) == [escalated, soon, later]
    assert listed(acme, sort="oldest") == [old, aside, later]
    assert listed(acme, sort="newest") == [escalated, soon, later]
    assert len(listed(acme, sort="tool")) == len(listed(acme, sort="session")) == 3


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
    assert f"by olga: {call.tool}" in text(page)
    assert address(call) in page.content.decode()


def test_each_filter_narrows_and_stands_in_the_address(acme: cast.Acme, olga: Client) -> None:
    side, write = ambiguous(acme), ambiguous(acme, "idempotent_write")
    assert listed(acme, **{"class": "side_effect"}) == [side]
    assert listed(acme, tool=write.tool) == [write]
    assert set(listed(acme, cause=str(side.cause))) == {side, write}
    assert listed(acme, kind="contradiction") == []
    assert listed(acme, age_min=1) == []
    page = text(olga.get("/inbox?class=read_only"))
    assert "The filter Class: read only excludes all of them: without it 2 match. Drop it" in page


@pytest.mark.parametrize(
    ("query", "says"),
    [("age_min=x", "from 1 to 999999"), ("age_min=-1", "from 1 to"), ("kind=none", "has no value"),
     ("saw=gossip", "has no value"), ("session=nonsense", "is no id of a session"),
     ("from=yesterday", "from is a date"), ("until=2027-02-30", "until is a date")],
)  # fmt: skip
def test_a_filter_that_says_nothing_known_is_refused_and_keeps_what_was_typed(
    acme: cast.Acme, olga: Client, query: str, says: str
) -> None:
    builders.a_call(acme, "ambiguous")
    answer = olga.get(f"/inbox?{query}&tool=kept.tool")
    assert answer.status_code == 422
    assert says in text(answer)
    assert "kept.tool" in answer.content.decode()


def test_words_that_are_no_order_and_no_column_count_as_none(acme: cast.Acme, olga: Client) -> None:
    call = builders.a_call(acme, "ambiguous")
    for query in ("kind=", "group=nonsense", "sort=nonsense", "columns=nonsense"):
        assert address(call) in olga.get(f"/inbox?{query}").content.decode(), query


def test_every_label_of_a_row_is_a_filter(acme: cast.Acme) -> None:
    call = ambiguous(acme)
    ambiguous(acme, "idempotent_write")
    for name, value in {
        "state": "ambiguous,paused", "effect": "possible", "class": "side_effect",
        "saw": "nothing yet", "cause": str(call.cause), "agent": "ada", "policy": 1,
        "from": "2020-01-01", "until": "2999-01-01 09:41", "kind": "recovery",
    }.items():  # fmt: skip
        assert call in listed(acme, **{name: value}), name
    for name, value in {
        "state": "paused", "effect": "happened", "saw": "real", "read": "yes", "basis": "probe",
        "agent": "ben", "policy": 9, "until": "2020-01-01", "from": "2999-01-01", "overdue": 1,
        "session": builders.a_session(acme).id,
    }.items():  # fmt: skip
        assert listed(acme, **{name: value}) == [], name


def test_who_has_taken_what_is_a_filter(acme: cast.Acme) -> None:
    hers, free = ambiguous(acme), ambiguous(acme)
    takings.take(incident_id=incident_of(hers).id, by=as_decider(acme.olga))
    assert listed(acme, taken="olga") == listed(acme, taken="somebody") == [hers]
    assert listed(acme, taken="nobody") == [free]
    assert listed(acme, taken="omar") == []


def test_what_is_set_aside_stands_last_and_is_no_next_one(acme: cast.Acme, olga: Client) -> None:
    first, second = ambiguous(acme), ambiguous(acme)
    reviewed(first, hours=-1)
    reviewed(second, hours=1)
    olga.post(address(first, "aside"), {"minutes": "60"})
    assert listed(acme) == [second, first], "nothing is hidden"
    assert listed(acme, aside="yes") == [first]
    assert listed(acme, aside="no") == [second]
    assert olga.get("/inbox/next")["Location"] == address(second)
    assert "set aside until" in text(olga.get("/inbox"))
    page = text(olga.get(address(first)))
    assert "Set aside by olga until" in page
    assert "Set aside by olga until" in page.partition("Steps of recovery")[2]
    olga.post(address(first, "aside/end"))
    assert listed(acme) == [first, second]


def test_whose_work_it_is_is_a_filter_and_a_column(acme: cast.Acme, olga: Client) -> None:
    hers, free = ambiguous(acme), ambiguous(acme)
    olga.post(address(hers, "assignment"), {"to": "olga"})
    assert listed(acme, assigned="olga") == listed(acme, assigned="somebody") == [hers]
    assert listed(acme, assigned="nobody") == [free]
    assert "for olga" in text(olga.get("/inbox"))
    assert "for olga" not in text(olga.get("/inbox?columns=assigned"))
    assert "Assigned to olga" in text(olga.get(address(hers)))


def select(client: Client, deed: str, *calls: ToolCall, **more: str) -> Any:
    named = [ids.shown("incident", incident_of(each).id) for each in calls]
    form = {"deed": deed, "incident": named, "back": "class=side_effect&evil=1", **more}
    return client.post("/inbox/selection", form)


def test_selected_rows_are_taken_and_set_aside_together(acme: cast.Acme, olga: Client) -> None:
    calls = [ambiguous(acme) for _ in range(3)]
    answer = select(olga, "take", *calls[:2])
    assert answer["Location"] == "/inbox?class=side_effect"
    assert set(listed(acme, taken="olga")) == set(calls[:2])
    assert "3 rows: taken" in text(olga.get(select(olga, "take", *calls)["Location"]))
    assert "2 rows: released." in text(olga.get(select(olga, "take", *calls[:2])["Location"]))
    assert listed(acme, taken="olga") == calls[2:]
    select(olga, "aside", *calls[1:], minutes="30")
    assert set(listed(acme, aside="yes")) == set(calls[1:])
    assert "No row was selected." in text(olga.get(select(olga, "take")["Location"]))


def test_selected_rows_are_decided_about_on_a_page_of_their_own(
    acme: cast.Acme, olga: Client
) -> None:
    call = ambiguous(acme)
    answer = select(olga, "decide", call)
    assert answer["Location"] == f"/bulk-runs/new?incident={address(call)[11:]}"


def test_a_viewer_sees_why_rows_are_not_taken_and_takes_none(acme: cast.Acme) -> None:
    call, vera = ambiguous(acme), operator(acme.vera)
    assert "Your roles do not include the right to state evidence" in text(vera.get("/inbox"))
    assert select(vera, "take", call).status_code == 403
    assert listed(acme, taken="somebody") == []


def test_the_order_is_the_one_of_the_address(acme: cast.Acme) -> None:
    first, second = ambiguous(acme), ambiguous(acme)
    reviewed(second, hours=-1)
    assert listed(acme) == [second, first]
    assert listed(acme, sort="oldest") == [first, second]
    assert listed(acme, sort="newest") == [second, first]
    assert listed(acme, sort="tool") == sorted([first, second], key=lambda each: each.tool)


def test_only_the_chosen_columns_are_drawn_and_go_with_every_link(
    acme: cast.Acme, olga: Client
) -> None:
    call = ambiguous(acme)
    page = olga.get("/inbox?column=age&column=cause&tool=" + call.tool)
    heads = re.findall(r'columnheader">([^<]+)<', page.content.decode())
    assert heads == ["Age", "Tool, session", "Cause"]
    again = f"/parts/inbox?tool={call.tool}&amp;columns=age,cause&amp;rows="
    assert again in page.content.decode()
    assert "may have happened" not in text(olga.get(again.replace("&amp;", "&")))


def test_all_that_match_is_a_second_press_on_the_rows_of_now(acme: cast.Acme, olga: Client) -> None:
    call, other = ambiguous(acme), ambiguous(acme)
    pressed = f"/bulk-runs/new?all=1&tool={call.tool}"
    assert pressed.replace("&", "&amp;") in olga.get(f"/inbox?tool={call.tool}").content.decode()
    page = olga.get(pressed).content.decode()
    assert ids.shown("incident", incident_of(call).id) in page
    assert ids.shown("incident", incident_of(other).id) not in page
    assert olga.get("/bulk-runs/new?all=1").status_code == 400


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


def test_from_a_row_one_goes_on_to_the_next_and_the_previous(acme: cast.Acme, olga: Client) -> None:
    first, second, third = calls = [ambiguous(acme) for _ in range(3)]
    for hours, call in enumerate(calls, start=1):
        reviewed(call, hours=hours)
    page = olga.get(address(second)).content.decode()
    at = address(second)[11:]
    assert f"/inbox/next?at={at}" in page
    assert olga.get(f"/inbox/next?at={at}")["Location"] == address(third)
    assert olga.get(f"/inbox/previous?at={at}")["Location"] == address(first)
    assert olga.get("/inbox/previous")["Location"] == address(third)
    around = olga.get(f"/inbox/next?at={address(third)[11:]}")["Location"]
    assert around == address(first), "after the last one it begins anew"
    takings.take(incident_id=incident_of(third).id, by=as_decider(acme.olga))
    assert olga.get(f"/inbox/next?at={at}")["Location"] == address(first)


def test_what_is_in_dispute_is_marked_and_filtered(acme: cast.Acme, olga: Client) -> None:
    call, other = ambiguous(acme, delivery_delay_s=60), ambiguous(acme)
    hers = decide(acme, call, "happened")
    omar = operator(cast.a_person("omar", acme.workspace, "operator"))
    form = {"answer": "did_not_happen:close", "grounds": "The bank has <none>.", "once": "a"}
    answer = omar.post(f"/resolutions/{ids.shown('resolution', hers.id)}/dispute", form)
    assert answer["Location"] == address(call)
    assert listed(acme, disputed=1) == [call] != [other]
    badge = '<use href="#mark-disputed"/></svg>in dispute</span>'
    assert badge in olga.get("/inbox?disputed=1").content.decode()
    page = text(olga.get(address(call)))
    assert "In dispute: a third person or an admin decides" in page
    assert "you are one of them" in page, "each answer says why it is off"


def part(calls: list[ToolCall], query: str = "") -> str:
    rows = ",".join(ids.shown("incident", incident_of(each).id) for each in calls)
    return f"/parts/inbox?{query}&rows={rows}&as_of=2020-01-01"


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


def test_what_the_machine_closed_is_said_of_the_machine(acme: cast.Acme, olga: Client) -> None:
    call = ambiguous(acme, delivery_delay_s=60)
    decided = decide(acme, call, "happened")
    resolutions.take_back(resolution_id=decided.id, grounds="No.", by=as_decider(acme.olga))
    with pytest.raises(FenceLost):
        builders.settle(call, {"id": 7})
    builders.fire()
    page = olga.get(part([call])).content.decode()
    assert "closed by the machine: late result" in page
    assert "olga" not in page


def test_what_came_since_is_counted_and_not_drawn(acme: cast.Acme, olga: Client) -> None:
    old, new = ambiguous(acme), ambiguous(acme)
    page = olga.get(part([old])).content.decode()
    assert "1 new" in page
    assert address(new) not in page


@pytest.fixture
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows a page."""
    monkeypatch.setattr(inbox, "PAGE", 2)


def polled(olga: Client, page: Any) -> str:
    """What the live part of this page says is new, a moment later."""
    found = re.search(r'hx-get="(/parts/inbox[^"]+)"', page.content.decode())
    assert found is not None
    part = olga.get(found[1].replace("&amp;", "&")).content.decode()
    return part.partition("<table")[0]


def next_page(olga: Client, page: Any, query: str = "") -> Any:
    found = re.search(r'href="\?([^"]*cursor=[^"]+)"', page.content.decode())
    assert found is not None, "there is a next page"
    return olga.get("/inbox?" + found[1].replace("&amp;", "&"))


@pytest.mark.usefixtures("short_pages")
def test_what_stands_on_other_pages_is_not_new(acme: cast.Acme, olga: Client) -> None:
    old = [ambiguous(acme) for _ in range(3)]
    first = olga.get("/inbox")
    second = next_page(olga, first)
    for page in (first, second):
        assert "Nothing new" in text(page)
        assert "Nothing new" in polled(olga, page)
    late = ambiguous(acme)
    for page in (first, second):
        assert "1 new" in polled(olga, page)
    again = next_page(olga, first)
    assert "1 new" in text(again), "a page of an older list is of that list"
    assert address(late) not in again.content.decode()
    assert address(old[2]) in again.content.decode()


@pytest.mark.usefixtures("short_pages")
def test_what_the_filters_leave_out_is_not_new(acme: cast.Acme, olga: Client) -> None:
    ambiguous(acme)
    page = olga.get("/inbox?class=side_effect")
    ambiguous(acme, "idempotent_write")
    assert "Nothing new" in polled(olga, page)


def brought_back(acme: cast.Acme, incident: Incident) -> None:
    asides.bring_back(incident_id=incident.id, by=as_decider(acme.olga))


def is_over(acme: cast.Acme, incident: Incident) -> None:
    Aside.objects.filter(incident=incident).update(until=ClockTimestamp())


def escalated(acme: cast.Acme, incident: Incident) -> None:
    assert incident.call is not None
    ageing.deadline(fresh(incident.call), Incident.objects.get(id=incident.id))


@pytest.mark.usefixtures("short_pages")
def test_what_the_machine_gives_up_is_new(acme: cast.Acme, olga: Client) -> None:
    ambiguous(acme)
    incident = incident_of(builders.a_call(acme, "interrupted"))
    page = olga.get("/inbox")
    assert "Nothing new" in polled(olga, page)
    aborts.stop(workspace_id=acme.workspace.id, incident_id=incident.id, by_id="1",
                by_name="olga", grounds="Its provider says that it is down.")  # fmt: skip
    assert "1 new" in polled(olga, page)


@pytest.mark.usefixtures("short_pages")
@pytest.mark.parametrize("comes_back", [brought_back, is_over, escalated])
def test_what_comes_back_from_being_set_aside_is_new(
    acme: cast.Acme, olga: Client, comes_back: Callable[[cast.Acme, Incident], None]
) -> None:
    incident = incident_of(ambiguous(acme))
    asides.set_aside(incident_id=incident.id, minutes=60, by=as_decider(acme.olga))
    for _ in range(2):
        ambiguous(acme)
    page = olga.get("/inbox")
    assert "Nothing new" in polled(olga, page)
    comes_back(acme, incident)
    assert "1 new" in polled(olga, page)
    assert "Nothing new" in polled(olga, olga.get("/inbox"))


@pytest.mark.usefixtures("short_pages")
@pytest.mark.parametrize("sort", ["", "oldest", "newest", "tool", "session"])
def test_a_page_begins_where_the_one_before_ended_though_its_last_row_is_resolved(
    acme: cast.Acme, olga: Client, sort: str
) -> None:
    for _ in range(5):
        ambiguous(acme, **AT_ONCE)
    whole = [each.id for each in calls_of(acme, sort)]
    first = olga.get(f"/inbox?sort={sort}")
    decide(acme, ToolCall.objects.get(id=whole[1]), "happened")
    second = next_page(olga, first).content.decode()
    assert [id_ for id_ in whole if ids.shown("call", id_)[-8:] in second] == whole[2:4]
    third = next_page(olga, next_page(olga, first)).content.decode()
    assert [id_ for id_ in whole if ids.shown("call", id_)[-8:] in third] == whole[4:]


def calls_of(acme: cast.Acme, sort: str) -> list[ToolCall]:
    """All calls of the inbox, page by page."""
    asked, found, cursor = inbox.asked_of({"sort": sort}), [], ""
    while True:
        page = inbox.of(as_decider(acme.olga), asked, cursor=cursor)
        found += [each.call for each in page.rows if each.call]
        if not page.more:
            return found
        cursor = page.more


@pytest.mark.usefixtures("short_pages")
def test_a_page_of_which_nothing_is_left_leads_back(acme: cast.Acme, olga: Client) -> None:
    calls = [ambiguous(acme, **AT_ONCE) for _ in range(3)]
    first = olga.get("/inbox?class=side_effect")
    decide(acme, calls[2], "happened")
    page = next_page(olga, first)
    assert "There are no more of them" in text(page)
    assert "/inbox?class=side_effect" in page.content.decode()


@pytest.mark.usefixtures("short_pages")
def test_a_cursor_of_another_list_is_refused(acme: cast.Acme, olga: Client) -> None:
    for _ in range(3):
        ambiguous(acme)
    cursor = inbox.of(as_decider(acme.olga), inbox.asked_of({})).more
    assert olga.get(f"/inbox?cursor={cursor}").status_code == 200
    for query in (f"sort=oldest&cursor={cursor}", f"class=side_effect&cursor={cursor}", "cursor=x"):
        answer = olga.get(f"/inbox?{query}")
        assert answer.status_code == 422, query
        assert "belongs to another list" in text(answer)


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


def test_from_a_hold_one_goes_on_to_what_else_needs_an_answer(
    acme: cast.Acme, olga: Client, held: Interrupt
) -> None:
    page = olga.get(f"/interrupts/{held.id}").content.decode()
    on = f"/inbox/next?at={ids.shown('call', held.call_id)}"
    assert f'href="{on}" data-key="n"' in page
    before = ToolCall.objects.get(tool_call_id="t1")
    assert olga.get(on)["Location"] == address(before)


def test_a_hold_is_kept_by_the_filters_that_can_be_about_it(acme: cast.Acme) -> None:
    talk = Talk(acme, "side_effect", delivery_delay_s=0)
    abandon(acme, talk.ask("ambiguous"))
    call = talk.ask()
    for name, value in {
        "kind": "hold", "state": "paused", "taken": "nobody", "tool": call.tool, "aside": "no",
        "session": call.session_id, "from": "2020-01-01",
    }.items():  # fmt: skip
        assert call in listed(acme, **{name: value}), name
    for name, value in {"kind": "recovery", "taken": "olga", "cause": "worker_lost",
                        "assigned": "somebody", "aside": "yes", "overdue": 1}.items():  # fmt: skip
        assert call not in listed(acme, **{name: value}), name


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


def test_a_repeat_of_a_side_effect_is_let_run_by_typing_after_a_fresh_login(
    acme: cast.Acme,
) -> None:
    talk = Talk(acme, "side_effect", delivery_delay_s=0)
    abandon(acme, talk.ask("ambiguous"))
    call = talk.ask()
    hold = Interrupt.objects.get(call=call)
    where = f"/interrupts/{hold.id}"
    arno = operator(cast.a_person("arno", acme.workspace, "approver"))
    confirm = f"{call.tool} 1"
    assert f"To let it run, type {confirm}" in text(arno.get(where))
    answer = {"answer": "approve", "grounds": "My own text.", "once": "a"}
    bare = arno.post(where, answer)
    assert (bare.status_code, "My own text." in text(bare)) == (422, True)
    an_hour_ago(arno)
    assert "Your login is older than 15 minutes" in text(arno.get(where))
    stale = arno.post(where, answer | {"confirm": confirm})
    assert stale.status_code == 403
    assert "/login/again?next=" in stale.content.decode()
    assert "My own text." in text(stale)
    assert fresh(call).state == "paused"
    arno.post("/login/again", {"password": cast.PASSWORD, "next": where})
    assert arno.post(where, answer | {"confirm": confirm}).status_code == 302
    assert fresh(call).state == "scheduled"


def test_a_hold_behind_another_call_asks_for_no_typing(acme: cast.Acme, held: Interrupt) -> None:
    arno = operator(cast.a_person("arno", acme.workspace, "approver"))
    assert 'id="confirm"' not in arno.get(f"/interrupts/{held.id}").content.decode()


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
