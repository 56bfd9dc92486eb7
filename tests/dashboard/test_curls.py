"""Copy as API call: the line asks the API for the rows of the page, and is safe in a shell."""

import html
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.test import Client

from config.api import api
from dashboard import curls, inbox, listing
from dashboard.models import Profile
from ledger import clock, ids, keys
from ledger.models import ToolCall
from recovery import asides, takings
from recovery.models import Incident, Sweep
from tests import builders, cast
from tests.cast import as_decider
from tests.dashboard.conversations import Story, a_story, drifted
from tests.dashboard.deciding import operator
from tests.dashboard.test_budgets_page import repeated
from tests.dashboard.test_bulk_pages import freeze
from tests.ledger.test_twins import Talk, abandon
from tests.recovery.deciding import AT_ONCE, ambiguous, decide, found, incident_of
from tests.recovery.test_disputes import dispute

pytestmark = pytest.mark.django_db

TOKYO = ZoneInfo("Asia/Tokyo")
ROW = re.compile(r' id="(?:row-)?((?:call|inc)_[0-9a-f]{32})"')


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    """Olga, whose zone is Tokyo's, beside one session of Ada's."""
    Profile.objects.update_or_create(person=acme.olga, defaults={"zone": "Asia/Tokyo"})
    builders.a_session(acme)
    return operator(acme.olga)


@dataclass(frozen=True)
class World:
    """Calls in many states, and people at work on some of them; `noon` lies between them."""

    client: Client
    story: Story
    taken: ToolCall
    noon: str
    bulk: str


@pytest.fixture
def world(acme: cast.Acme, olga: Client) -> World:
    """As Olga sees it."""
    person = as_decider(acme.olga)
    story = a_story(acme)
    drifted(story)
    for state in ("succeeded", "failed"):
        builders.a_call(acme, state)
    builders.a_call(acme, "scheduled", agent=acme.ben)
    decided = ambiguous(acme, **AT_ONCE)
    decide(acme, decided, "happened", evidence=(found(decided, "happened", person).id,))
    aside, disputed = ambiguous(acme), ambiguous(acme, delivery_delay_s=60)
    asides.set_aside(incident_id=incident_of(aside).id, minutes=60, by=person)
    omar = as_decider(cast.a_person("omar", acme.workspace, "operator"))
    dispute(decide(acme, disputed, "happened"), omar)
    noon = f"{clock.now().astimezone(TOKYO):%Y-%m-%d %H:%M:%S.%f}"
    decide(acme, ambiguous(acme, second_person="always"), "abandon")
    talk = Talk(acme, "side_effect", delivery_delay_s=0)
    abandon(acme, talk.ask("ambiguous"))
    talk.ask()
    twins = Talk(acme, "idempotent_write")
    twins.ask("succeeded")
    twins.ask()
    taken = ambiguous(acme)
    takings.take(incident_id=incident_of(taken).id, by=person)
    asides.assign(incident_id=incident_of(taken).id, to="olga", by=person)
    found(taken, "happened", person)
    Incident.objects.filter(id=incident_of(taken).id).update(
        escalation_level=1, opened_at=clock.now() - timedelta(hours=2)
    )
    run = freeze(olga, [taken]).rpartition("/")[2]
    late = builders.a_call(acme, "scheduled")
    ToolCall.objects.filter(id=late.id).update(
        schedule_to_start_at=clock.now() - timedelta(hours=1)
    )
    Sweep.objects.create(name="watchdog-1")
    return World(olga, story, taken, noon, run)


def copied(page: str) -> list[str]:
    """The lines that a page offers to copy, as a person reads them."""
    part = page.partition("<summary>Copy as API call</summary>")[2].partition("</details>")[0]
    return [html.unescape(each) for each in re.findall(r"<code>(.*?)</code></pre>", part, re.S)]


def address_in(line: str) -> str:
    """The one address that a shell would ask for; of a list that no key may read, the line."""
    if line.startswith("http"):
        return line.removeprefix(settings.ENVIRONMENT.public_url)
    program, quiet, header, authorization, address = shlex.split(line)
    assert (program, quiet, header) == ("curl", "-sS", "-H")
    assert authorization == "Authorization: Bearer $CLEARHOUSE_API_KEY"
    root = settings.ENVIRONMENT.public_url
    assert address.startswith(f"{root}/api/v1/"), address
    return address.removeprefix(root)


def answered(client: Client, lines: list[str]) -> list[dict[str, Any]]:
    """What the API says to the lines, asked with a login."""
    items = []
    for line in lines:
        answer = client.get(address_in(line))
        assert answer.status_code == 200, answer.content
        assert answer.json()["next_cursor"] is None
        items += answer.json()["items"]
    return items


# The same rows

CALLS: dict[str, Callable[[World], tuple[Any, ...]]] = {
    "state": lambda world: ("ambiguous", "succeeded,failed", "paused"),
    "effect": lambda world: ("possible", "happened"),
    "class": lambda world: ("read_only", "side_effect"),
    "tool": lambda world: ("lookup_order", f"{world.taken.tool},send_invoice"),
    "saw": lambda world: ("nothing yet", "real", "notice"),
    "read": lambda world: ("yes", "not_yet"),
    "basis": lambda world: ("operator with evidence", "tool result", "policy"),
    "cause": lambda world: ("worker_lost", "validation"),
    "agent": lambda world: ("ada", "ben"),
    "session": lambda world: (ids.shown("session", world.story.session.id),),
    "policy": lambda world: ("1",),
    "from": lambda world: (world.noon, "2020-01-01"),
    "until": lambda world: (world.noon, "2999-01-01 09:41"),
    "taken": lambda world: ("olga", "nobody", "somebody"),
    "no_settled_result": lambda world: ("1",),
    "overdue": lambda world: ("yes",),
    "q": lambda world: ("toolu_2", ids.shown("call", world.taken.id), "invoice"),
    "bulk": lambda world: (world.bulk,),
    "repeats": lambda world: ("7",),
}


def test_by_every_filter_the_copied_call_lists_the_calls_of_the_page(world: World) -> None:
    found: dict[str, set[str]] = {each.name: set() for each in listing.CALLS.filters}
    for name, kept in found.items():
        for value in CALLS[name](world):
            for more in ({}, {"sort": "oldest", "columns": "tool"}):
                page = world.client.get("/calls", {name: value} | more).content.decode()
                rows = ROW.findall(page)
                said = [each["id"] for each in answered(world.client, copied(page))]
                assert said == rows, (name, value)
                kept |= set(rows)
    assert [name for name, kept in found.items() if not kept] == []


INBOX: dict[str, Callable[[World], tuple[Any, ...]]] = {
    "kind": lambda world: ("recovery", "hold", "stale_binding", "hold,recovery"),
    "state": lambda world: ("ambiguous", "paused", "ambiguous,paused"),
    "effect": lambda world: ("possible", "not_begun", "none"),
    "class": lambda world: ("side_effect",),
    "tool": lambda world: (world.taken.tool, "send_invoice"),
    "saw": lambda world: ("nothing yet", "notice"),
    "read": lambda world: ("yes", "not_yet"),
    "basis": lambda world: ("probe",),
    "cause": lambda world: ("worker_lost",),
    "agent": lambda world: ("ada", "ben"),
    "session": lambda world: (ids.shown("session", world.story.session.id),),
    "policy": lambda world: ("1", "2"),
    "from": lambda world: (world.noon,),
    "until": lambda world: (world.noon,),
    "age_min": lambda world: ("60",),
    "taken": lambda world: ("olga", "nobody", "somebody"),
    "assigned": lambda world: ("olga", "nobody", "somebody"),
    "disputed": lambda world: ("1",),
    "aside": lambda world: ("yes", "no"),
    "overdue": lambda world: ("1",),
    "bulk": lambda world: (world.bulk,),
}


def waiting(client: Client, lines: list[str]) -> set[str]:
    """Incidents by their ids, and holds by those of their calls, as rows of the inbox go."""
    return {each.get("id") or each["call"] for each in answered(client, lines)}


def test_by_every_filter_the_copied_calls_list_the_rows_of_the_inbox(world: World) -> None:
    found: dict[str, set[str]] = {each.name: set() for each in inbox.INBOX.filters}
    for name, kept in found.items():
        for value in INBOX[name](world):
            page = world.client.get("/inbox", {name: value}).content.decode()
            rows = set(ROW.findall(page))
            assert waiting(world.client, copied(page)) == rows, (name, value)
            kept |= rows
    assert [name for name, kept in found.items() if not kept] == ["basis"], "nothing is settled"


def test_without_a_filter_the_copied_calls_list_all_of_the_page(world: World) -> None:
    for path in ("/calls", "/inbox"):
        page = world.client.get(path).content.decode()
        assert waiting(world.client, copied(page)) == set(ROW.findall(page)) != set(), path


def test_several_filters_stand_together_in_the_copied_call(world: World) -> None:
    asked = {"state": "ambiguous", "class": "side_effect", "taken": "nobody", "from": "2020-01-01"}
    for path in ("/calls", "/inbox"):
        page = world.client.get(path, asked).content.decode()
        assert waiting(world.client, copied(page)) == set(ROW.findall(page)) != set(), path


def test_the_copied_call_lists_the_sessions_of_the_page(world: World) -> None:
    for query in ("", "show=open", "show=unresolved", "show=drift", "q=month", "agent=ada&q=c"):
        page = world.client.get(f"/sessions?{query}").content.decode()
        rows = re.findall(r'id="row-([0-9a-f]{32})"', page)
        listed = [each["id"].removeprefix("ses_") for each in answered(world.client, copied(page))]
        assert listed == rows != [], query


WITHOUT_FILTERS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "/tools": (r'class="called"><a href="/tools/([^"]+)"', lambda each: each["name"]),
    "/bulk-runs": (r'href="/bulk-runs/(bulk_[0-9a-f]{32})"', lambda each: each["id"]),
    "/approvals": (r'<tr role="row" id="(res_[0-9a-f]{32})-', lambda each: each["id"]),
    "/deadlines": (
        r'<tr role="row" id="wait-([\w-]+)"',
        lambda each: f"{each['deadline']}-{uuid_in(each)}",
    ),
    "/drills": (r'href="/drills/reports/([^"]+)"', lambda each: each["name"]),
    "/workers": (
        r'(?:id="worker-|role="rowheader"><bdi>)([\w-]+)',
        lambda each: each.get("watchdog") or str(uuid_in(each)),
    ),
}
"""What names a row of each page, and the same of an item of the API."""


def uuid_in(item: dict[str, Any]) -> UUID:
    return UUID(item["id"][-32:])


def two_drills(folder: Path) -> None:
    for name in ("20260101T000000Z-tests", "20260102T000000Z-chaos"):
        (folder / "drills" / name).mkdir(parents=True)
        (folder / "drills" / name / "report.json").write_text('{"passed": true, "seconds": 1.5}')


@pytest.mark.parametrize("path", WITHOUT_FILTERS)
def test_the_copied_call_lists_the_rows_of_the_page(
    world: World, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENVIRONMENT, "data", tmp_path)
    two_drills(tmp_path)
    page = world.client.get(path).content.decode()
    row, named = WITHOUT_FILTERS[path]
    listed = [named(each) for each in answered(world.client, copied(page))]
    assert listed == re.findall(row, page) != []


def test_a_line_names_the_key_only_where_a_key_may_ask(
    acme: cast.Acme, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENVIRONMENT, "data", tmp_path)
    two_drills(tmp_path)
    key = keys.issue(agent=acme.ada, scopes=keys.SCOPES)
    for path in WITHOUT_FILTERS:
        for line in copied(world.client.get(path).content.decode()):
            answer = Client().get(address_in(line), headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == (200 if line.startswith("curl ") else 403), line


def test_the_copied_call_lists_the_budgets_of_the_page(acme: cast.Acme, world: World) -> None:
    put = builders.a_tool(acme, "put", "idempotent_write", retry={"attempts": 2})
    turn = builders.a_turn(builders.a_session(acme))
    call = repeated(acme, put, session_id=turn.session_id, turn_id=turn.id)
    builders.past(call, "backoff")
    builders.fire()
    builders.claimed(builders.fresh(call))
    for query, of in (("", 1), ("?all=1", 3)):
        page = world.client.get(f"/budgets{query}").content.decode()
        (line,) = copied(page)
        assert line.startswith("http"), "no key may read this list"
        listed = [(each["scope"], each["id"]) for each in answered(world.client, [line])]
        assert listed == re.findall(r'id="budget-(\w+?)-([\w.]+)"', page)
        assert len(listed) >= of


def test_the_copied_call_lists_the_deeds_of_the_audit(world: World) -> None:
    for query in ("", "actor=olga", "target=call_", "from=2020-01-01&to=2999-12-31"):
        page = world.client.get(f"/audit?{query}").content.decode()
        deeds = [html.unescape(each) for each in
                 re.findall(r'class="did"><bdi>(.*?)</bdi>', page)]  # fmt: skip
        listed = answered(world.client, copied(page))
        assert [each["deed"] for each in listed] == deeds != [], query


# Nothing vanishes, nothing escapes


def asked_of(path: str) -> set[str]:
    """The parameters of a list, by the API's own description."""
    operation = api.get_openapi_schema()["paths"][f"/api/v1/{path}"]["get"]
    return {each["name"] for each in operation["parameters"]}


def test_the_api_has_every_filter_of_the_console() -> None:
    assert {each.name for each in listing.CALLS.filters} <= asked_of("calls")
    of_incidents = {curls.RENAMED.get(each.name, each.name) for each in inbox.INBOX.filters}
    assert of_incidents <= asked_of("incidents")
    assert curls.HOLDS.keys() <= asked_of("holds")


def test_where_no_hold_can_match_only_incidents_are_asked_for(olga: Client) -> None:
    page = olga.get("/inbox?cause=worker_lost").content.decode()
    assert [urlsplit(address_in(each)).path for each in copied(page)] == ["/api/v1/incidents"]
    assert curls.NO_HOLDS in page


def test_a_moment_of_the_readers_zone_is_copied_in_utc(olga: Client) -> None:
    page = olga.get("/calls?from=2027-03-02T09:41").content.decode()
    (line,) = copied(page)
    assert dict(parse_qsl(urlsplit(address_in(line)).query)) == {"from": "2027-03-02T00:41:00Z"}


HOSTILE = (
    "'; rm -rf ~ #", "$(id)`id`", 'a" -o /etc/passwd "', "a&limit=1", "a\nb", "\\", "{a,b}[1-9]",
    "%27", "</code><script>alert(1)</script>", "\u202egnp", "ü+ =;", "-K evil",
)  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
def test_what_stands_in_an_address_stays_one_word_of_the_shell(olga: Client, value: str) -> None:
    for path in ("/calls", "/inbox", "/sessions"):
        name = "q" if path != "/inbox" else "agent"
        page = olga.get(path, {name: value}).content.decode()
        assert copied(page)
        for line in copied(page):
            asked = dict(parse_qsl(urlsplit(address_in(line)).query))
            assert asked[name] == value.strip(), line
            assert line.isascii()
            assert not set("{}[]\n`") & set(line)
        assert "<script>alert(1)" not in page


def test_the_host_is_the_installations_and_not_the_askers(olga: Client) -> None:
    page = olga.get("/calls", headers={"Host": "localhost"}).content.decode()
    assert copied(page)[0].endswith(f" {settings.ENVIRONMENT.public_url}/api/v1/calls")


def test_where_a_filter_is_refused_nothing_is_offered(olga: Client) -> None:
    for path in ("/calls?from=yesterday", "/inbox?policy=x"):
        assert copied(olga.get(path).content.decode()) == [], path
