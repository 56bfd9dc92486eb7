"""The API as it is served: one web for each worker of xdist, and the cast as its callers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ledger.models import Agent, Tool
from recovery import watchdog
from tests import builders, cast
from tests.api import callers, served
from tests.api.callers import Caller
from tests.api.served import Served

# A call that nobody executes may wait for as long as a test of a slow machine takes.
PATIENT = {"timeouts": {"schedule_to_start_s": 3600, "schedule_to_close_s": 86400}}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here commits: another program reads what it writes."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture(scope="session")
def _web(
    django_db_setup: None, django_db_blocker: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    # Tests send wrong keys as fast as they can.
    quota = {"CLEARHOUSE_QUOTA_REFUSED_KEYS": "10000"}
    with (
        django_db_blocker.unblock(),  # type: ignore[attr-defined]
        served.served(tmp_path_factory.mktemp("web"), **quota) as web,
    ):
        yield web


@pytest.fixture
def web(_web: Served, transactional_db: None) -> Iterator[Served]:
    """The running web; what it writes behind its answers is written when the test ends.

    No watchdog runs, so its rings are made up for before the invariants are asked.
    """
    yield _web
    served.until_quiet()
    watchdog.ring_again(limit=1000)


@pytest.fixture
def open_callers(web: Served) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def agent(web: Served, open_callers: ExitStack) -> Callable[..., Caller]:
    """`agent(acme.ada, "calls:read")`: a caller with a key of these scopes."""

    def call(who: Agent, *scopes: str) -> Caller:
        caller = callers.an_agents(web.address, who, *scopes)
        open_callers.callback(caller.close)
        return caller

    return call


@pytest.fixture
def person(web: Served, open_callers: ExitStack) -> Callable[..., Caller]:
    """`person("olga")`: a caller with a login."""

    def call(name: str, *, token: bool = True) -> Caller:
        caller = callers.logged_in(web.address, name, token=token)
        open_callers.callback(caller.close)
        return caller

    return call


@pytest.fixture
def ada(acme: cast.Acme, agent: Callable[..., Caller]) -> Caller:
    """Acme's agent by its key."""
    return agent(acme.ada)


@pytest.fixture
def mallory(globex: cast.Globex, agent: Callable[..., Caller]) -> Caller:
    """The neighbour's agent by its key."""
    return agent(globex.mallory)


@pytest.fixture
def alma(acme: cast.Acme, person: Callable[..., Caller]) -> Caller:
    """Acme's admin by her login."""
    cast.a_person("alma", acme.workspace, "admin")
    return person("alma")


@pytest.fixture
def lookup(acme: cast.Acme) -> Tool:
    """`sandbox.lookup` of Acme, which takes any arguments."""
    return builders.a_tool(acme, "sandbox.lookup", "read_only", **PATIENT)
