"""The list of calls: its filters, its pages, its empty states, and the finder behind `/go/`."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils.html import escape

from dashboard import listing, standing
from dashboard.models import Profile
from dashboard.templatetags.console import breakable
from ledger import clock, ids
from ledger.api import pages
from ledger.models import ToolCall
from recovery import label_queries, takings
from tests import builders, cast
from tests.cast import as_decider
from tests.dashboard.test_call_page import client_of
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, found, incident_of

pytestmark = pytest.mark.django_db
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def shown(call: ToolCall) -> str:
    return ids.shown("call", call.id)


def listed(client: Client, query: str = "") -> list[str]:
    page = client.get(f"/calls{query}").content.decode()
    return re.findall(r'<tr role="row" id="(call_[0-9a-f]+)"', page)


def test_the_newest_call_comes_first_and_each_row_leads_to_its_page(acme: cast.Acme) -> None:
    calls = [builders.a_call(acme) for _ in range(3)]
    client = client_of(acme.vera)
    assert listed(client) == [shown(call) for call in reversed(calls)]
    assert f'href="/calls/{shown(calls[0])}"' in client.get("/calls").content.decode()


def test_each_filter_keeps_what_it_names(acme: cast.Acme) -> None:
    asked = builders.a_call(acme, "ambiguous")
    session = builders.a_session(acme)
    own = builders.a_call(acme, "running", "read_only", session_id=session.id, tool_call_id="t_1")
    client = client_of(acme.vera)
    kept = {
        query: listed(client, f"?{query}")
        for query in ("state=ambiguous", "effect=possible", "cause=worker_lost",
                      "no_settled_result=1", "class=side_effect", f"tool={asked.tool}")
    }  # fmt: skip
    assert set(map(tuple, kept.values())) == {(shown(asked),)}, kept
    kept = {
        query: listed(client, f"?{query}")
        for query in ("state=running", "class=read_only", f"session={session.id}", "q=t_1",
                      f"q={shown(own)}", "state=running,scheduled&agent=ada&policy=1")
    }  # fmt: skip
    assert set(map(tuple, kept.values())) == {(shown(own),)}, kept
    assert listed(client, "?agent=ben") == []


@pytest.mark.parametrize(
    ("query", "says"),
    [("state=broken", "has no value"), ("session=nonsense", "is no id of a session"),
     ("policy=x", "policy is a number from 1"), ("bulk=1", "is no id of a bulk run"),
     ("cursor=AAAA", "another list"), ("agent=a%00b", "without NUL"), ("q=%00", "without NUL"),
     ("taken=%00", "without NUL")],
)  # fmt: skip
def test_a_filter_that_says_nothing_known_is_refused_and_keeps_what_was_typed(
    acme: cast.Acme, query: str, says: str
) -> None:
    answer = client_of(acme.vera).get(f"/calls?{query}&tool=kept.tool")
    assert answer.status_code == 422
    assert escape(says) in answer.content.decode()
    assert "kept.tool" in answer.content.decode()


def test_pages_go_on_where_the_last_ended_although_new_calls_came(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE", 2)
    calls = [shown(builders.a_call(acme)) for _ in range(5)]
    client = client_of(acme.vera)
    page = client.get("/calls").content.decode()
    seen = listed(client)
    builders.a_call(acme)
    while older := re.search(r'href="/calls(\?[^"]*cursor=[^"]+)"', page):
        query = older[1].replace("&amp;", "&")
        seen += listed(client, query)
        page = client.get(f"/calls{query}").content.decode()
    assert seen == calls[::-1]


def test_a_filter_without_an_index_looks_at_a_window_and_says_so(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 2)
    old = builders.a_call(acme, "succeeded")
    for _ in range(3):
        builders.a_call(acme)
    client = client_of(acme.vera)
    page = client.get("/calls?state=succeeded").content.decode()
    assert listed(client, "?state=succeeded") == []
    assert "Only the newest" in page
    older = re.search(r'href="/calls(\?[^"]*cursor=[^"]+)"', page)
    assert older is not None
    assert listed(client, older[1].replace("&amp;", "&")) == [shown(old)]


def test_a_page_of_the_api_looks_at_a_window_and_the_next_goes_on(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 2)
    old = builders.a_call(acme, "succeeded")
    for _ in range(4):
        builders.a_call(acme)
    client = client_of(acme.vera)
    seen, cursors = [], [""]
    while (cursor := cursors[-1]) is not None:
        page = client.get(f"/api/v1/calls?state=succeeded&cursor={cursor}").json()
        seen += [call["id"] for call in page["items"]]
        cursors.append(page["next_cursor"])
    assert (seen, len(cursors) - 1) == ([shown(old)], 3)
    assert len(client.get("/api/v1/calls?state=scheduled").json()["items"]) == 4


def test_an_empty_list_names_the_filter_that_excludes_most(acme: cast.Acme) -> None:
    for _ in range(3):
        builders.a_call(acme)
    builders.a_call(acme, "succeeded")
    page = client_of(acme.vera).get("/calls?state=scheduled&agent=ben").content.decode()
    assert re.search(r"<bdi>Agent: ben</bdi></strong> excludes most: without it 3 match", page)
    assert 'href="/calls?state=scheduled">Drop it' in page


def test_one_filter_that_leaves_nothing_excludes_all(acme: cast.Acme) -> None:
    builders.a_call(acme)
    page = client_of(acme.vera).get("/calls?agent=ben").content.decode()
    assert "excludes all of them: without it 1 match" in page


def test_a_long_name_may_break_after_its_marks_and_stays_escaped() -> None:
    assert breakable("mail.send_all") == "mail.<wbr>send_<wbr>all"
    assert breakable("<b>.x") == "&lt;b&gt;.<wbr>x"


def test_each_label_is_a_filter(acme: cast.Acme) -> None:
    call = ambiguous(acme, **AT_ONCE)
    takings.take(incident_id=incident_of(call).id, by=as_decider(acme.olga))
    client = client_of(acme.vera)
    assert listed(client, "?taken=olga") == listed(client, "?taken=somebody") == [shown(call)]
    assert listed(client, "?taken=nobody") == []
    said = found(call, "happened", as_decider(acme.olga), kind="statement")
    decide(acme, call, "happened", evidence=(said.id,))
    other = shown(builders.a_call(acme, "succeeded"))
    assert listed(client, "?basis=operator%27s+word+only") == [shown(call)]
    assert listed(client, "?basis=tool+result") == [other]
    assert set(listed(client, "?saw=nothing+yet")) == {shown(call), other}
    assert listed(client, "?saw=real") == listed(client, "?read=yes") == []
    assert listed(client, "?taken=somebody") == [], "what is closed is nobody's work"


def test_a_filter_by_a_label_keeps_exactly_the_calls_that_carry_it(acme: cast.Acme) -> None:
    for state in ("running", "succeeded", "failed", "rejected", "cancelled", "expired"):
        builders.a_call(acme, state)
    client = client_of(acme.vera)
    labels = standing.of_many(list(ToolCall.objects.filter(workspace=acme.workspace.id)))
    for basis in label_queries.BASES:
        carry = {ids.shown("call", id_) for id_, each in labels.items() if each.basis == basis}
        assert set(listed(client, f"?{urlencode({'basis': basis})}")) == carry, basis


def test_a_span_of_time_is_meant_in_the_readers_zone(acme: cast.Acme) -> None:
    call = shown(builders.a_call(acme))
    now = clock.now().astimezone(ZoneInfo("Asia/Tokyo"))
    client = client_of(acme.vera)
    Profile.objects.update_or_create(person=acme.vera, defaults={"zone": "Asia/Tokyo"})
    minute = timedelta(minutes=1)
    before, after = (f"{at:%Y-%m-%dT%H:%M:%S}" for at in (now - minute, now + minute))
    assert listed(client, f"?from={before}&until={after}") == [call]
    assert listed(client, f"?from={after}") == listed(client, f"?until={before}") == []


def test_the_oldest_first_go_on_to_the_newer(
    acme: cast.Acme, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE", 2)
    calls = [shown(builders.a_call(acme)) for _ in range(3)]
    client = client_of(acme.vera)
    assert listed(client, "?sort=oldest") == calls[:2]
    page = client.get("/calls?sort=oldest").content.decode()
    newer = re.search(r'href="/calls(\?[^"]*cursor=[^"]+)" rel="next">Newer', page)
    assert newer is not None
    assert listed(client, newer[1].replace("&amp;", "&")) == calls[2:]


def test_the_columns_are_those_of_the_address(acme: cast.Acme) -> None:
    call = builders.a_call(acme, "ambiguous")
    page = client_of(acme.vera).get("/calls?columns=tool,cause").content.decode()
    assert re.findall(r'columnheader">([^<]+)<', page) == ["Call", "Tool", "Cause"]
    assert call.cause.replace("_", " ") in page
    assert 'name="columns" value="tool,cause"' in page, "the filter form carries them on"


def test_nothing_exists_and_nothing_matches_read_differently(
    acme: cast.Acme, globex: cast.Globex
) -> None:
    builders.a_call(acme)
    nothing = client_of(globex.mallory_herself).get("/calls").content.decode()
    assert "No call has been recorded yet" in nothing
    assert "Nothing matches" in client_of(acme.vera).get("/calls?agent=x").content.decode()


@pytest.mark.parametrize("number", [3, 12])
def test_the_list_costs_the_same_queries_at_every_size(
    acme: cast.Acme, number: int, django_assert_max_num_queries: Any
) -> None:
    for _ in range(number):
        builders.a_call(acme, "succeeded")
    client = client_of(acme.vera)
    with django_assert_max_num_queries(19):
        client.get("/calls")


def test_new_calls_wait_behind_their_number(acme: cast.Acme) -> None:
    first = builders.a_call(acme)
    client = client_of(acme.vera)
    asked = f"/parts/calls/newer?since={first.id.hex}"
    answer = client.get(asked)
    assert "new: show" not in answer.content.decode()
    assert client.get(asked, headers={"HX-PTag": answer["HX-PTag"]}).status_code == 304
    builders.a_call(acme)
    assert "1 new: show" in client.get(asked).content.decode()
    assert "new: show" not in client.get(f"{asked}&agent=ben").content.decode()
    assert client.get("/parts/calls/newer?since=x").status_code == 422


# The finder


@pytest.mark.parametrize(
    "name", ["id", "bare id", "tail", "provider's id", "idempotency key", "handle"]
)
def test_a_call_is_found_by_every_name_it_has(acme: cast.Acme, name: str) -> None:
    for _ in range(2):
        builders.a_call(acme)
    call = builders.a_call(acme, "running", "long_running", idempotency_key="order/1042",
                           tool_call_id="toolu_7")  # fmt: skip
    builders.cross(call)
    builders.park(call, "render-7741")
    names = {"id": shown(call), "bare id": str(call.id), "tail": call.id.hex[-9:],
             "provider's id": "toolu_7", "idempotency key": "order/1042",
             "handle": "render-7741"}  # fmt: skip
    answer = client_of(acme.vera).get("/go", {"q": f" {names[name]} "})
    assert (answer.status_code, answer["Location"]) == (302, f"/calls/{shown(call)}")
    assert client_of(acme.vera).get(f"/go/{names[name]}").status_code == 302


@pytest.mark.parametrize("name", [TRACE, TRACE.upper()])
def test_the_calls_of_a_trace_are_found_by_its_id(acme: cast.Acme, name: str) -> None:
    builders.a_call(acme, traceparent=SENT.replace("4bf9", "5bf9"))
    calls = [builders.a_call(acme, traceparent=SENT) for _ in range(2)]
    client = client_of(acme.vera)
    assert set(listed(client, f"?q={name}")) == {shown(call) for call in calls}
    page = client.get("/go", {"q": name}).content.decode()
    assert "2 go by" in page
    assert page.count("by trace") == 2


def test_a_part_of_a_traces_id_is_none(acme: cast.Acme) -> None:
    builders.a_call(acme, traceparent=SENT)
    client = client_of(acme.vera)
    for name in (TRACE[:-1], SENT[36:52], "%", "_" * 32):
        assert listed(client, f"?q={name}") == [], name
        assert client.get("/go", {"q": name}).status_code == 404


def test_several_matches_are_listed_with_the_name_they_go_by(acme: cast.Acme) -> None:
    for _ in range(2):
        builders.a_call(acme, tool_call_id="toolu_same")
    page = client_of(acme.vera).get("/go?q=toolu_same").content.decode()
    assert "2 go by" in page
    assert page.count("by provider&#x27;s id") == 2


@pytest.mark.parametrize("asked", ["nothing-like-it", "abcde", "%", "call_0", "<script>", "'; --"])
def test_what_matches_nothing_says_where_was_looked(acme: cast.Acme, asked: str) -> None:
    builders.a_call(acme)
    answer = client_of(acme.vera).get("/go", {"q": asked})
    assert answer.status_code == 404
    assert "Looked in" in answer.content.decode()
    assert "<script>" not in answer.content.decode()


def test_a_neighbours_call_is_not_found_by_any_name(acme: cast.Acme, globex: cast.Globex) -> None:
    names = {"idempotency_key": "order/1042", "tool_call_id": "toolu_7", "traceparent": SENT}
    call = builders.a_call(acme, **names)
    client = client_of(globex.mallory_herself)
    for name in (shown(call), call.id.hex[-8:], "order/1042", "toolu_7", TRACE, call.tool):
        assert client.get("/go", {"q": name}).status_code == 404


def test_the_finder_without_a_name_says_what_it_takes(acme: cast.Acme) -> None:
    answer = client_of(acme.vera).get("/go")
    assert answer.status_code == 200
    assert "Go to anything by its name" in answer.content.decode()


@pytest.mark.parametrize(
    ("asked", "address"),
    [("Inbox", "/inbox"), ("inbox", "/inbox"), ("Saved views", "/saved-views"),
     ("deadl", "/deadlines"), ("Bulk", "/bulk-runs")],
)  # fmt: skip
def test_the_box_goes_to_a_page_by_its_name(acme: cast.Acme, asked: str, address: str) -> None:
    assert client_of(acme.vera).get("/go", {"q": asked})["Location"] == address


def test_the_box_goes_to_a_saved_view_by_its_name(acme: cast.Acme) -> None:
    vera, olga = client_of(acme.vera), client_of(acme.olga)
    form = {"page": "calls", "query": "state=failed", "name": "What failed", "once": "a"}
    olga.post("/saved-views", form)
    assert olga.get("/go?q=what failed")["Location"] == "/calls?state=failed"
    assert olga.get("/go?q=what")["Location"] == "/calls?state=failed"
    assert vera.get("/go?q=what failed").status_code == 404, "it is not shared"
    assert '<option value="What failed">' in olga.get("/parts/places").content.decode()
    assert "What failed" not in vera.get("/parts/places").content.decode()
    assert '<option value="Inbox">' in vera.get("/parts/places").content.decode()


def test_a_tool_named_as_a_page_is_offered_beside_it(acme: cast.Acme) -> None:
    builders.a_tool(acme, "inbox")
    page = client_of(acme.vera).get("/go?q=inbox").content.decode()
    assert "2 go by" in page
    assert 'href="/inbox"' in page
    assert 'href="/tools/inbox"' in page
