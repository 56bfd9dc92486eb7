"""The overview: figures that lead to what they count, charts with their tables, parts alone."""

import csv
import io
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import DatabaseError
from django.http import QueryDict
from django.test import Client

from dashboard import counters, inbox, listing, oldest, reading
from dashboard.charts import CHARTS
from dashboard.charts.chart import Bars, Columns, Drawn
from dashboard.models import Deed
from ledger import clock, workers
from ledger.models import ToolCall
from recovery.models import Incident
from tests import builders, cast
from tests.recovery import deciding

pytestmark = pytest.mark.django_db

AT_ONCE = {"delivery_delay_s": 0}


def signed_in(person: object) -> Client:
    client = Client()
    client.force_login(person)  # type: ignore[arg-type]
    return client


def figures(acme: cast.Acme) -> dict[str, str]:
    now = clock.now()
    return {each.name: str(each.read(acme.workspace.id, now).figure) for each in counters.TILES}


def note(acme: cast.Acme, name: str) -> str:
    tile = next(each for each in counters.TILES if each.name == name)
    return tile.read(acme.workspace.id, clock.now()).note


def drawn(acme: cast.Acme, name: str) -> Drawn:
    return CHARTS[name].read(acme.workspace.id, clock.now())


def texts(shown: Drawn) -> list[list[str]]:
    return [[cell.text for cell in row] for row in shown.rows]


def a_repeat(acme: cast.Acme) -> None:
    """A side effect that happened, asked for again in the same session."""
    tool = builders.a_tool(acme, recovery_class="side_effect")
    session = builders.a_session(acme)
    first = builders.a_call(acme, "succeeded", tool=tool, session_id=session.id)
    assert first.effect == "happened"
    builders.answer_to(builders.a_submit(acme, tool, session_id=session.id))


def test_the_six_figures_count_what_an_operator_asks_for(acme: cast.Acme) -> None:
    for state in ("ambiguous", "running", "succeeded"):
        builders.a_call(acme, in_state=state)
    assert figures(acme) == {
        "needs-answer": "1", "overdue": "0", "running": "1", "budget-spent": "0",
        "repeats-prevented": "0", "workers": "1",
    }  # fmt: skip


@pytest.mark.corrupts
def test_an_overdue_call_is_counted_with_its_class(acme: cast.Acme) -> None:
    call = builders.a_call(acme)
    past = clock.now() - timedelta(minutes=1)
    ToolCall.objects.filter(id=call.id).update(schedule_to_start_at=past)
    assert figures(acme)["overdue"] == "1"
    assert note(acme, "overdue") == "side_effect 1"


def test_a_twin_is_a_repeat_that_was_prevented(acme: cast.Acme) -> None:
    a_repeat(acme)
    assert figures(acme)["repeats-prevented"] == "1"
    assert "running the tool again: 1;" in drawn(acme, "repeats").sentence
    assert texts(drawn(acme, "repeats"))[-1][1:3] == ["1", "1"]


def test_the_workers_that_live_are_counted_with_their_slots_and_what_nobody_serves(
    acme: cast.Acme,
) -> None:
    assert figures(acme)["workers"] == "0"
    assert note(acme, "workers") == "nobody serves effects, reads, control"
    holder = builders.a_worker(slots=4)
    builders.a_call(acme, "running")
    assert (figures(acme)["workers"], note(acme, "workers")) == ("1", "1 of 4 slots in use")
    workers.retire(holder)
    assert figures(acme)["workers"] == "0"


def test_another_workspace_counts_nothing_of_this_one(acme: cast.Acme, globex: cast.Globex) -> None:
    builders.a_call(acme, in_state="ambiguous")
    now = clock.now()
    own = [each for each in counters.TILES if each.name != "workers"]  # of the installation
    assert {str(each.read(globex.workspace.id, now).figure) for each in own} == {"0"}
    assert oldest.oldest(globex.workspace.id) == []
    assert all(chart.read(globex.workspace.id, now).rows == () for chart in CHARTS.values())


def test_the_age_of_an_open_question_stands_beside_its_review_deadline(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="ambiguous")
    shown = drawn(acme, "ageing")
    assert shown.sentence == "1 ambiguous, 0 past the review deadline."
    assert texts(shown)[0][:3] == ["side_effect", "1", "0"]
    assert texts(shown)[0][-1] == "4 h 00 m"


def test_opened_and_closed_by_the_hour_end_at_what_is_open_now(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="ambiguous")
    closed = deciding.ambiguous(acme, **AT_ONCE)
    deciding.decide(acme, closed, "happened")
    shown = drawn(acme, "flow")
    assert len(shown.rows) == 24
    assert texts(shown)[-1][1:] == ["2", "1", "1"]
    assert isinstance(shown.picture, Columns)
    assert shown.picture.line.count(",") == 24


def test_times_are_told_by_class_with_median_and_ninetieth_percentile(acme: cast.Acme) -> None:
    call = deciding.ambiguous(acme, **AT_ONCE)
    deciding.decide(acme, call, "happened")
    name, number, *lengths = texts(drawn(acme, "times"))[0]
    assert (name, number) == ("side_effect", "1")
    assert len(lengths) == 4
    assert "–" not in lengths


def test_the_budgets_nearest_to_spent_come_with_what_is_used_of_them(acme: cast.Acme) -> None:
    tool = builders.a_tool(acme, "put", "idempotent_write")
    session = builders.a_session(acme)
    for number in range(2):
        builders.a_call(acme, "backing_off", tool=tool, arguments={"path": str(number)},
                        session_id=session.id)  # fmt: skip
    found = texts(drawn(acme, "nearest"))
    assert [row[1:] for row in found] == [
        ["session", "2 of 60 repeats", "3 %"],
        ["tool", "2 of 100 repeats", "2 %"],
    ]
    assert drawn(acme, "nearest").rows[1][1].address == "/tools/put"


def listed(acme: cast.Acme, address: str) -> int:
    """How many the list at an address counts."""
    olga, (path, _, query) = cast.as_decider(acme.olga), address.partition("?")
    if path == "/calls":
        return listing.of(olga, listing.asked_of(QueryDict(query))).figure.number
    assert path == "/inbox"
    return inbox.of(olga, inbox.asked_of(QueryDict(query))).figure.number


def linked(shown: Drawn) -> list[tuple[str, str]]:
    """What a chart says and where that leads: bars and columns by their names, then cells."""
    picture = shown.picture
    drawn: Any = picture.bars if isinstance(picture, Bars) else picture and picture.columns
    said = [(each.spoken.partition(": ")[2], each.address) for each in drawn if each.address]
    return said + [(cell.text, cell.address) for row in shown.rows for cell in row if cell.address]


def test_the_ages_lead_to_the_incidents_of_that_age_and_class(acme: cast.Acme) -> None:
    for minutes, recovery_class in (
        (1, "side_effect"), (20, "side_effect"), (21, "long_running"), (61, "side_effect"),
        (300, "side_effect"), (301, "side_effect"),
    ):  # fmt: skip
        call = builders.a_call(acme, "ambiguous", recovery_class)
        at = clock.now() - timedelta(minutes=minutes)
        Incident.objects.filter(call=call).update(opened_at=at)
    found = linked(drawn(acme, "ageing"))
    assert [text for text, _ in found] == ["1", "2", "1", "2", "1", "1", "1", "1", "2"]
    assert [str(listed(acme, address)) for _, address in found] == [text for text, _ in found]


def test_what_calls_rest_on_leads_to_those_calls(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        builders.a_call(acme, "succeeded")
    deciding.decide(acme, deciding.ambiguous(acme, **AT_ONCE), "happened")
    for looked_at, figures in ((500, ["3", "1"]), (2, ["1", "1"])):
        monkeypatch.setattr(import_module("dashboard.charts.basis"), "LOOKED_AT", looked_at)
        found = linked(drawn(acme, "basis"))
        assert [text.split()[0] for text, _ in found] == figures * 2
        assert [str(listed(acme, address)) for _, address in found] == figures * 2


def test_repeats_of_a_day_lead_to_the_calls_that_were_answered_on_it(acme: cast.Acme) -> None:
    for _ in range(2):
        a_repeat(acme)
    found = linked(drawn(acme, "repeats"))
    assert [text for text, _ in found] == ["2 answered", "2"]
    assert [listed(acme, address) for _, address in found] == [2, 2]


def test_a_budget_leads_to_its_line_among_all_budgets(acme: cast.Acme) -> None:
    tool = builders.a_tool(acme, "put", "idempotent_write")
    turn = builders.a_turn(builders.a_session(acme))
    builders.a_call(acme, "backing_off", tool=tool, turn_id=turn.id, session_id=turn.session_id)
    shown = drawn(acme, "nearest")
    assert isinstance(shown.picture, Bars)
    assert len(shown.picture.bars) == 3
    page = signed_in(acme.olga).get("/budgets?all=1").content.decode()
    for bar in shown.picture.bars:
        address, _, place = bar.address.partition("#")
        assert address == "/budgets?all=1"
        line = page.partition(f'id="{place}"')[2].partition("</tr>")[0]
        assert bar.text.removesuffix(" repeats") in line
    assert all(row[1].address for row in shown.rows), "a turn has its place in its session"


def test_a_bar_is_a_link_with_a_spoken_name_and_its_picture_no_image_then(acme: cast.Acme) -> None:
    builders.a_call(acme, "ambiguous")
    client = signed_in(acme.olga)
    ageing = client.get("/parts/overview/ageing").content.decode()
    assert 'aria-label="under 15 min: 1"' in ageing
    assert 'role="group"' in ageing
    assert 'role="img"' in client.get("/parts/overview/flow").content.decode()


def test_the_oldest_incident_comes_first(acme: cast.Acme) -> None:
    calls = [builders.a_call(acme, in_state="ambiguous") for _ in range(7)]
    found = oldest.oldest(acme.workspace.id)
    assert found is not None
    assert [each.tool for each in found] == [call.tool for call in calls[:5]]


def test_a_part_that_cannot_be_read_fails_alone(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    builders.a_call(acme)
    true = reading.rows

    def rows(sql: str, parameters: dict[str, object]) -> object:
        return true("SELECT pg_sleep(9)" if "twin_of_id" in sql else sql, parameters)

    monkeypatch.setattr(reading, "LIMIT_MS", 50)
    monkeypatch.setattr(reading, "rows", rows)
    page = signed_in(acme.olga).get("/").content.decode()
    assert page.count("not read in time") == 1
    assert page.count("did not answer in two seconds") == 1
    assert "nothing is running" in page


def test_a_statement_that_takes_too_long_is_ended_and_leaves_the_connection_whole() -> None:
    with pytest.raises(DatabaseError), reading.bounded(limit_ms=20) as cursor:
        cursor.execute("SELECT pg_sleep(5)")
    assert reading.rows("SELECT 1", {}) == [(1,)]


def test_the_overview_costs_the_same_queries_at_any_size(
    acme: cast.Acme, django_assert_max_num_queries: object
) -> None:
    client = signed_in(acme.olga)
    for size in (1, 6):
        for _ in range(size):
            builders.a_call(acme, in_state="ambiguous")
        with django_assert_max_num_queries(90):  # type: ignore[operator]
            client.get("/")


def test_an_unchanged_part_is_not_sent_again(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="ambiguous")
    client = signed_in(acme.olga)
    for name in ("needs-answer", "ageing", "oldest"):
        first = client.get(f"/parts/overview/{name}")
        again = client.get(f"/parts/overview/{name}", headers={"HX-PTag": first["HX-PTag"]})
        assert (first.status_code, again.status_code) == (200, 304)


def test_the_numbers_of_a_chart_are_a_file(acme: cast.Acme) -> None:
    builders.a_call(acme, in_state="ambiguous")
    answer = signed_in(acme.vera).get("/overview/ageing.csv")
    lines = list(csv.reader(io.StringIO(answer.content.decode())))
    assert lines[0][0] == "Class"
    assert lines[1][:2] == ["side_effect", "1"]
    deed = Deed.objects.get()
    assert (deed.person_name, deed.deed, deed.target) == ("vera", "exported a chart", "ageing")
    assert deed.grounds == f"{len(lines) - 1} lines, no filter"


def test_a_name_that_is_no_part_is_not_found(acme: cast.Acme) -> None:
    client = signed_in(acme.olga)
    assert client.get("/parts/overview/none").status_code == 404
    assert client.get("/overview/none.csv").status_code == 404


def test_before_the_first_call_the_page_shows_the_line_that_records_one(acme: cast.Acme) -> None:
    page = signed_in(acme.olga).get("/").content.decode()
    assert "No call has been recorded yet" in page
    assert "/api/v1/calls" in page
