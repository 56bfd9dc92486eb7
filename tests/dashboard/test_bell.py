"""The stream that rings for open consoles, over the web as it runs."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from uuid import UUID

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction

from dashboard import logins
from dashboard.bell import Bell, moved
from dashboard.views import bell
from ledger import feed
from ledger.vocabulary import IncidentKind
from recovery import incidents
from tests import builders, cast, waits
from tests.api import callers, served
from tests.api.callers import Caller
from tests.api.served import Served

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT_S = 30
PATH = "/parts/bell"


@pytest.fixture(scope="module")
def _web(
    django_db_setup: None, django_db_blocker: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with django_db_blocker.unblock(), served.served(tmp_path_factory.mktemp("web")) as web:  # type: ignore[attr-defined]
        yield web


@pytest.fixture
def web(_web: Served, transactional_db: None) -> Iterator[Served]:
    yield _web
    served.until_quiet()


@pytest.fixture
def olga(web: Served, acme: cast.Acme) -> Iterator[Caller]:
    caller = callers.logged_in(web.address, "olga")
    yield caller
    caller.close()


class Listener:
    """One open stream, read event by event."""

    def __init__(self, caller: Caller) -> None:
        self.stream = caller.http.stream("GET", PATH, timeout=LIMIT_S)
        self.answer = self.stream.__enter__()
        assert self.answer.status_code == 200, self.answer.read()
        self._lines = self.answer.iter_lines()
        assert next(self._lines) == "retry: 2000"

    def event(self) -> str:
        """The next event; the second heartbeat without one is too late."""
        beats = 0
        for line in self._lines:
            if line.startswith("event: "):
                return line.removeprefix("event: ")
            beats += line == ": heartbeat"
            assert beats < 2, "nothing rings"
        raise AssertionError("the stream ended")

    def close(self) -> None:
        self.stream.__exit__(None, None, None)


@pytest.fixture
def listener(olga: Caller) -> Iterator[Listener]:
    found = Listener(olga)
    yield found
    found.close()


def test_a_settled_call_rings(acme: cast.Acme, listener: Listener) -> None:
    assert listener.answer.headers["Content-Type"] == "text/event-stream"
    builders.a_call(acme, "succeeded")
    assert listener.event() == "ring"


def test_an_incident_on_a_session_rings(acme: cast.Acme, listener: Listener) -> None:
    session = builders.a_session(acme)
    with transaction.atomic():
        incidents.report_of_session(
            session, IncidentKind.HAND_OFF, subject="one", facts={}, grounds="Nobody took it."
        )
    assert listener.event() == "ring"


def test_it_says_nothing_but_that_it_rings(acme: cast.Acme, listener: Listener) -> None:
    builders.a_call(acme, "ambiguous")
    assert listener.event() == "ring"
    assert next(listener._lines) == "data: {}"


async def events(whose: bell.Listener) -> list[str]:
    """What the stream says until it ends."""
    blocks = [block async for block in bell._ringing(whose)]
    return [line.removeprefix("event: ") for block in blocks
            for line in block.decode().splitlines() if line.startswith("event: ")]  # fmt: skip


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that beats twice a second, and asks for its login at each beat."""
    monkeypatch.setattr(bell, "HEARTBEAT_S", 0.5)
    monkeypatch.setattr(bell, "LOGIN_EVERY_S", 0.0)


def test_another_workspace_does_not_ring(acme: cast.Acme, globex: cast.Globex) -> None:
    since = feed.now()
    theirs = builders.a_call(globex, "succeeded")
    asked = [acme.workspace.id, globex.workspace.id]

    rung, at = moved(asked, [theirs.id], since)
    assert rung == {globex.workspace.id}
    assert moved(asked[:1], [theirs.id], since)[0] == set()
    assert moved(asked, [], at)[0] == set()


async def spacing_with(listeners: int, workspace: UUID) -> float:
    found = Bell()
    async with AsyncExitStack() as stack:
        for _ in range(listeners):
            await stack.enter_async_context(found.listener(workspace))
        return found.spacing_s()


def test_the_more_consoles_listen_the_farther_apart_are_the_rings(acme: cast.Acme) -> None:
    spaced = {n: asyncio.run(spacing_with(n, acme.workspace.id)) for n in (1, 4, 40)}
    assert spaced == {1: 1.0, 4: 1.0, 40: 10.0}


@pytest.mark.parametrize("how", ["all ended", "signed out", "no role"])
def test_an_ended_login_ends_the_stream(
    acme: cast.Acme, olga: Caller, hasty: None, how: str
) -> None:
    login = olga.http.cookies[settings.SESSION_COOKIE_NAME]
    whose = bell.Listener(acme.olga.id, acme.workspace.id, login)
    assert bell._lasts(whose)
    if how == "all ended":
        logins.end_all(acme.olga)
    elif how == "signed out":
        Session.objects.all().delete()
    else:
        acme.olga.memberships.all().delete()
    assert asyncio.run(events(whose))[-1] == "end"


def test_without_a_login_there_is_no_stream(web: Served, acme: cast.Acme, olga: Caller) -> None:
    olga.http.cookies.clear()
    assert olga.http.get(PATH).headers["Location"].startswith("/login")


def test_streams_of_a_person_are_bounded_and_given_back_when_their_browsers_are_gone(
    web: Served, olga: Caller
) -> None:
    cookies = "; ".join(f"{name}={value}" for name, value in olga.http.cookies.items())
    asked = f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\n\r\n"
    lines = []
    for _ in range(8):
        line = socket.create_connection(("127.0.0.1", web.port), timeout=LIMIT_S)
        line.sendall(asked.encode())
        assert b"200 OK" in line.recv(4096)
        lines.append(line)
    refused = olga.http.get(PATH)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    for line in lines:
        line.close()

    def is_free() -> bool:
        with olga.http.stream("GET", PATH, timeout=LIMIT_S) as answer:
            return answer.status_code == 200

    waits.until(is_free, what="the streams to be given back", limit_s=LIMIT_S)
