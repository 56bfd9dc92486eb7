"""Bulk runs on pages: frozen, looked at, started, stopped, taken back; never everything."""

import csv
import io
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dashboard.models import Deed
from ledger import ids
from ledger.models import Evidence, Membership, ToolCall
from ledger.models.fields import ClockTimestamp
from recovery import bulk
from recovery.models import BulkRow, BulkRun, Resolution
from tests import builders, cast
from tests.builders import fresh
from tests.cast import as_decider
from tests.dashboard.deciding import operator, text
from tests.recovery.deciding import ambiguous, decide, delay_over, found, incident_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    return operator(acme.olga)


def looked_at(acme: cast.Acme, number: int = 2) -> list[ToolCall]:
    """Ambiguous calls, each with evidence of its own."""
    calls = [ambiguous(acme) for _ in range(number)]
    for call in calls:
        found(call, "happened", as_decider(acme.olga))
    return calls


def selected(calls: list[ToolCall], answer: str = "happened", **more: Any) -> dict[str, Any]:
    return {
        "incident": [ids.shown("incident", incident_of(each).id) for each in calls],
        "answer": answer, "grounds": "The export has them.", "once": "drawn",
    } | more  # fmt: skip


def freeze(client: Client, calls: list[ToolCall], answer: str = "happened") -> str:
    """Freeze a run; its address."""
    made = client.post("/bulk-runs", selected(calls, answer))
    assert made.status_code == 302, text(made)
    return str(made["Location"])


def test_a_selection_becomes_a_form_with_one_deed(acme: cast.Acme, olga: Client) -> None:
    calls = looked_at(acme)
    page = text(olga.get("/bulk-runs/new", selected(calls)))
    assert "Decide about 2 incidents" in page
    assert "attach" not in page, "a handle is one call's"


def test_nothing_selected_means_nothing_and_never_everything(acme: cast.Acme, olga: Client) -> None:
    looked_at(acme)
    assert "A run never means everything." in text(olga.get("/bulk-runs/new"))
    refused = olga.post("/bulk-runs", {"answer": "happened", "grounds": "All.", "once": "x"})
    assert refused.status_code == 400
    assert BulkRun.objects.count() == 0


def test_freezing_shows_row_by_row_what_would_run_and_why_not(
    acme: cast.Acme, olga: Client
) -> None:
    [ready, waiting], blind = looked_at(acme), ambiguous(acme)
    decide(acme, waiting, "happened")
    page = text(olga.get(freeze(olga, [ready, waiting, blind])))
    assert "1 of 3 rows will be decided" in page
    assert "Already decided 1" in page
    assert "Needs evidence of its own 1" in page
    assert "A person checked this call: its effect happened." in page
    assert Resolution.objects.count() == 1


def test_a_match_file_gives_each_row_its_document_and_names_who_drops_out(
    acme: cast.Acme, olga: Client
) -> None:
    named, absent, twice = (ambiguous(acme) for _ in range(3))
    body = f"id,note\n{named.marker},<b>x</b>\n{twice.marker},1\n{twice.marker},2\n"
    form = selected([named, absent, twice]) | {"column": "id", "export": upload(body)}
    page = text(olga.get(olga.post("/bulk-runs", form)["Location"]))
    assert "1 of 3 rows will be decided" in page
    assert "Not in the match file 1" in page
    assert "An id occurs twice 1" in page
    piece = Evidence.objects.get()
    assert (piece.call_id, piece.kind) == (named.id, "document")


def test_a_match_file_without_the_column_names_those_that_it_has(
    acme: cast.Acme, olga: Client
) -> None:
    form = selected([ambiguous(acme)]) | {"column": "ref", "export": upload("id,note\nx,y\n")}
    refused = olga.post("/bulk-runs", form)
    assert refused.status_code == 422
    assert "It has: id, note." in text(refused)
    assert "The export has them." in refused.content.decode(), "what was typed stays"
    assert not BulkRun.objects.exists()


def upload(body: str) -> SimpleUploadedFile:
    return SimpleUploadedFile("export.csv", body.encode(), content_type="text/csv")


def test_the_typical_text_comes_first_and_every_other_one_follows(
    acme: cast.Acme, olga: Client
) -> None:
    calls = looked_at(acme, 3)
    page = text(olga.get(freeze(olga, calls)))
    assert "3 rows: a typical one, the largest" in page
    assert "Different for others" not in page
    run = BulkRun.objects.get()
    BulkRow.objects.filter(run=run, place=2).update(told="Another text.")
    page = text(olga.get(f"/bulk-runs/{ids.shown('bulk_run', run.id)}"))
    typical, _, others = page.partition("Different for others")
    assert "2 rows: a typical one" in typical
    assert "Another text." in others


def test_a_double_press_freezes_one_run(acme: cast.Acme, olga: Client) -> None:
    calls = looked_at(acme)
    assert freeze(olga, calls) == freeze(olga, calls)
    assert BulkRun.objects.count() == 1


def test_a_run_is_started_reports_each_row_and_is_taken_back(acme: cast.Acme, olga: Client) -> None:
    calls = looked_at(acme)
    address = freeze(olga, calls)
    assert "Will run 2" in text(olga.get(address))
    assert olga.post(f"{address}/run", {"once": "r"}).status_code == 302
    bulk.run_due()
    page = text(olga.get(address))
    assert "In this run 2" in page
    assert "Will run" not in page
    assert "2 of 2 decided · 2 done" in page
    assert "2 rows can still be taken back." in page
    back = olga.post(f"{address}/taking-back", {"once": "t"}, follow=True)
    assert "Taken back: 2. Too late: 0." in text(back)
    assert {str(fresh(each).state) for each in calls} == {"ambiguous"}


def test_a_row_whose_file_moved_is_reported(acme: cast.Acme, olga: Client) -> None:
    calls = looked_at(acme)
    address = freeze(olga, calls)
    found(calls[0], "unknown", as_decider(acme.olga))
    olga.post(f"{address}/run", {"once": "r"})
    bulk.run_due()
    page = text(olga.get(address))
    assert "1 done · 1 changed meanwhile" in page


def test_a_stopped_run_leaves_the_rest_as_it_is(acme: cast.Acme, olga: Client) -> None:
    address = freeze(olga, looked_at(acme))
    olga.post(f"{address}/run", {"once": "r"})
    assert olga.post(f"{address}/stop", {"once": "s"}).status_code == 302
    bulk.run_due()
    page = text(olga.get(address))
    assert "Stopped: 0 of 2 decided · 2 skipped" in page
    assert "waits" not in page


def test_the_list_of_runs_counts_no_skipped_row_as_decided(acme: cast.Acme, olga: Client) -> None:
    address = freeze(olga, looked_at(acme, 3))
    olga.post(f"{address}/run", {"once": "r"})
    bulk.run_due(limit=1)
    olga.post(f"{address}/stop", {"once": "s"})
    page = olga.get("/bulk-runs").content.decode()
    assert 'data-of="Decided" class="number">1<' in page


def test_rows_of_a_list_that_grew_too_old_wait_for_nothing(acme: cast.Acme, olga: Client) -> None:
    address = freeze(olga, looked_at(acme))
    BulkRun.objects.update(expires_at=ClockTimestamp())
    page = text(olga.get(address))
    assert "In this run 2" in page
    assert page.count("never begun") == 2
    assert "waits" not in page


def test_failed_rows_are_tried_again_as_a_list_of_their_own(acme: cast.Acme, olga: Client) -> None:
    calls = looked_at(acme)
    address = freeze(olga, calls)
    assert "Try the failed rows again" not in text(olga.get(address))
    olga.post(f"{address}/run", {"once": "r"})
    Membership.objects.filter(person=acme.olga).update(role="viewer")
    bulk.run_due()
    Membership.objects.filter(person=acme.olga).update(role="operator")
    page = text(olga.get(address))
    assert "0 of 2" not in page
    assert "2 failed" in page
    assert "2 rows failed; trying again freezes a new list of them first." in page

    made = [olga.post(f"{address}/again", {"once": "a"}) for _ in range(2)]
    assert made[0]["Location"] == made[1]["Location"] != address
    new = text(olga.get(made[0]["Location"]))
    assert "2 of 2 rows will be decided" in new
    assert "The export has them." in new
    assert BulkRun.objects.count() == 2


def test_where_nothing_failed_trying_again_says_so(acme: cast.Acme, olga: Client) -> None:
    address = freeze(olga, looked_at(acme, 1))
    refused = olga.post(f"{address}/again", {"once": "a"})
    assert refused.status_code == 422
    assert "No row of this run has failed" in text(refused)
    assert operator(acme.vera).post(f"{address}/again", {"once": "v"}).status_code == 403


def test_a_page_says_how_fast_it_goes(acme: cast.Acme, olga: Client) -> None:
    address = freeze(olga, looked_at(acme, 1))
    said = "At most 10 rows of one tool are decided in 1 s."
    assert said in text(olga.get(address))
    olga.post(f"{address}/run", {"once": "r"})
    assert said in text(olga.get(address))
    bulk.run_due()
    assert said not in text(olga.get(address))


def test_the_results_are_a_file_without_formulas_and_the_audit_names_who_took_it(
    acme: cast.Acme, olga: Client
) -> None:
    ready, blind = looked_at(acme, 1)[0], ambiguous(acme)
    address = freeze(olga, [ready, blind])
    olga.post(f"{address}/run", {"once": "r"})
    bulk.run_due()
    BulkRow.objects.filter(call=blind.id).update(detail="=HYPERLINK(1) password=hunter2hunter2")
    answer = operator(acme.vera).post(f"{address}/export")
    [first, second] = csv.DictReader(io.StringIO(answer.getvalue().decode()))
    assert first["incident"] == ids.shown("incident", incident_of(ready).id)
    assert (first["call"], first["tool"]) == (ids.shown("call", ready.id), ready.tool)
    assert (first["eligibility"], first["outcome"]) == ("will run", "done")
    assert (first["decision"], second["outcome"]) == ("pending", "")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", first["decided_at"])
    assert second["why"].startswith("'=HYPERLINK(1)")
    assert "hunter2" not in second["why"]
    assert "no-store" in answer["Cache-Control"]

    deed = Deed.objects.get()
    run = address.rpartition("/")[2]
    assert (deed.person_name, deed.deed, deed.target) == ("vera", "exported a bulk run", run)
    assert "exported a bulk run" in text(olga.get("/audit"))
    assert olga.get(f"{address}/export").status_code == 405


def test_a_run_leads_to_its_calls_and_to_what_of_it_is_still_open(
    acme: cast.Acme, olga: Client
) -> None:
    [mine, moved], other = looked_at(acme), ambiguous(acme)
    address = freeze(olga, [mine, moved])
    found(moved, "unknown", as_decider(acme.olga))
    olga.post(f"{address}/run", {"once": "r"})
    bulk.run_due()
    delay_over(mine)
    page = olga.get(address).content.decode()
    run = address.rpartition("/")[2]
    for at, calls in ((f"/calls?bulk={run}", [mine, moved]), (f"/inbox?bulk={run}", [moved])):
        assert f'href="{at}"' in page
        listed = olga.get(at).content.decode()
        for call in (mine, moved, other):
            assert (call.tool in listed) is (call in calls), (at, call.tool)
        assert f"Bulk run: {run}" in text(olga.get(at)), "a chip drops it"


def test_a_part_is_sent_again_only_when_it_moved(acme: cast.Acme, olga: Client) -> None:
    address = freeze(olga, looked_at(acme))
    tag = olga.get(f"/parts{address}")["HX-PTag"]
    assert olga.get(f"/parts{address}", headers={"HX-PTag": tag}).status_code == 304
    olga.post(f"{address}/run", {"once": "r"})
    assert olga.get(f"/parts{address}", headers={"HX-PTag": tag}).status_code == 200


def test_the_runs_are_listed_at_a_constant_cost(
    acme: cast.Acme, olga: Client, django_assert_max_num_queries: Any
) -> None:
    assert "No bulk run was ever made here" in text(olga.get("/bulk-runs"))
    calls = looked_at(acme)
    for number in range(4):
        form = selected(calls, once=f"drawn {number}")
        assert olga.post("/bulk-runs", form).status_code == 302
    with django_assert_max_num_queries(14):
        page = text(olga.get("/bulk-runs"))
    assert page.count("frozen, not started") == 4


def test_a_viewer_freezes_nothing_and_a_neighbour_finds_nothing(
    acme: cast.Acme, globex: cast.Globex, olga: Client
) -> None:
    calls = looked_at(acme)
    assert operator(acme.vera).post("/bulk-runs", selected(calls)).status_code == 403
    mallory = operator(globex.mallory_herself)
    assert mallory.post("/bulk-runs", selected(calls)).status_code == 404
    address = freeze(olga, calls)
    assert mallory.get(address).status_code == 404
    for deed in ("run", "again", "export"):
        assert mallory.post(f"{address}/{deed}", {"once": "m"}).status_code == 404


def of_a_session(named: str) -> dict[str, str]:
    return {"session": named, "answer": "abandon", "grounds": "One reason.", "once": "drawn"}


def test_a_session_that_is_none_is_refused_in_the_form(olga: Client) -> None:
    answer = olga.post("/bulk-runs", of_a_session("abc"))
    assert answer.status_code == 422
    assert "is no id of a session" in text(answer)
    assert not BulkRun.objects.exists()


def test_a_session_keeps_its_own_incidents(olga: Client, acme: cast.Acme) -> None:
    ambiguous(acme)
    session = builders.a_session(acme)
    own = ambiguous(acme, turn=builders.a_turn(session))
    answer = olga.post("/bulk-runs", of_a_session(ids.shown("session", session.id)))
    assert answer.status_code == 302, text(answer)
    assert [row.call_id for row in BulkRow.objects.all()] == [own.id]
