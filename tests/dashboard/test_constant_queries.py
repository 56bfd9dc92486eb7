"""Queries per page are constant: many rows cost no more statements than few (issue 5)."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ledger import ids, offers, sessions
from ledger.models import Delivery
from ledger.vocabulary import DeliveryMode
from tests import builders, cast
from tests.dashboard import conversations
from tests.recovery import deciding

pytestmark = pytest.mark.django_db

FEW, MANY = 2, 8
PAGES = (
    "/", "/inbox", "/parts/inbox", "/calls", "/calls?state=ambiguous", "/calls?state=succeeded",
    "/sessions", "/tools", "/budgets?all=1", "/workers", "/deadlines", "/audit", "/approvals",
    "/bulk-runs", "/parts/alerts", "/settings/people", "/settings/keys",
    "/api/v1/calls", "/api/v1/incidents", "/api/v1/tools", "/api/v1/policies", "/api/v1/sessions",
    "/api/v1/holds", "/api/v1/bulk-resolutions", "/api/v1/calls?basis=probe&saw=real&taken=nobody",
    "/api/v1/incidents?needs_answer=true&agent=ada", "/api/v1/approvals", "/api/v1/deadlines",
    "/api/v1/workers",
)  # fmt: skip


@pytest.fixture
def olga(acme: cast.Acme) -> Client:
    client = Client()
    client.force_login(acme.olga)
    return client


def some_of_everything(acme: cast.Acme, number: int) -> None:
    """So many tools, sessions with a story, decided calls, people and workers more."""
    for _ in range(number):
        for state in ("succeeded", "ambiguous", "scheduled", "parked"):
            recovery_class = "long_running" if state == "parked" else "side_effect"
            session = builders.a_session(acme)
            builders.a_call(acme, state, recovery_class, session_id=session.id)
        asked = deciding.ambiguous(acme, second_person="always")
        deciding.decide(acme, asked, "happened")
        name = ids.new().hex
        cast.a_person(name, acme.workspace, "viewer")
        builders.a_worker(name)


def queries_of(client: Client, path: str) -> int:
    client.get(path)  # what a process remembers is read once
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def test_a_page_of_many_rows_asks_as_often_as_one_of_few(acme: cast.Acme, olga: Client) -> None:
    some_of_everything(acme, FEW)
    few = {path: queries_of(olga, path) for path in PAGES}
    some_of_everything(acme, MANY)
    assert {path: queries_of(olga, path) for path in PAGES} == few


def a_long_turn(acme: cast.Acme, calls: int) -> str:
    """A session with so many settled calls, each read; its id as it is shown."""
    session = builders.a_session(acme)
    turn = builders.a_turn(session)
    tool = builders.a_tool(acme, recovery_class="read_only").name
    for number in range(calls):
        call_id = conversations.recorded(turn, tool, id_=f"toolu_{number}", model_step=number)
        conversations.walked(call_id, "succeeded")
    made = offers.offer(conversations.place_of(turn), mode=DeliveryMode.APPEND_BOTH)
    assert made.offer is not None
    assert Delivery.objects.filter(offer=made.offer).count() == calls
    sessions.close_turn(turn=turn, closed_as="answered")
    return ids.shown("session", session.id)


OF_A_SESSION = ("", "/rendering", "/cuts")


def test_a_long_session_asks_as_often_as_a_short_one(acme: cast.Acme, olga: Client) -> None:
    short, long = (
        {part: queries_of(olga, f"/sessions/{session}{part}") for part in OF_A_SESSION}
        for session in (a_long_turn(acme, FEW), a_long_turn(acme, MANY))
    )
    assert long == short
