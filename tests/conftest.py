"""The test bed: a real PostgreSQL, a real broker, and the ledger's invariants after each test.

`CLEARHOUSE_TEST_DATABASE_URL` (or `DATABASE_URL`) names a server to use; without one a
throw-away server is started, when the first test wants a database, or before the workers of
xdist are. Each run and each worker has a database of its own, made by the migrations, without a
pool. The broker is the one of `REDIS_URL`, or one that `broker` starts; a test that does not ask
for it finds nobody at that address.

A test that touched the database ends with every invariant asked; `corrupts` exempts it.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django
import pytest
from django.conf import settings
from django.db import connection, connections
from django.test import TransactionTestCase
from xdist.scheduler import LoadFileScheduling

from config.celery import app as celery_app
from config.environment import database_settings
from standalone.ports import free_port
from standalone.postgres import temporary_postgres
from standalone.valkey import Valkey

BROKER_PASSWORD = "throw-away"
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

_until_the_end = ExitStack()


# Addresses


def _database_url() -> str:
    return os.environ.get("CLEARHOUSE_TEST_DATABASE_URL") or os.environ.get("DATABASE_URL", "")


def _start_postgres() -> str:
    return _until_the_end.enter_context(temporary_postgres()).url()


def _use_database(url: str) -> None:
    values = database_settings(url) | {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": False}
    run = os.environ.setdefault("CLEARHOUSE_TEST_RUN", str(os.getpid()))
    for known in (settings.DATABASES["default"], connections["default"].settings_dict):
        known.update(values)
        known["OPTIONS"].pop("pool", None)
        known["TEST"] = {**known.get("TEST", {}), "NAME": f"test_clearhouse_{run}"}


def _own_broker_url() -> str:
    return f"redis://:{BROKER_PASSWORD}@127.0.0.1:{free_port()}/0"


def _broker_url() -> str:
    """The given broker, one database for each worker; else an address to start one at."""
    given = os.environ.get("REDIS_URL")
    if not given:
        return _own_broker_url()
    return f"{given.rsplit('/', 1)[0]}/{int(WORKER.removeprefix('gw') or 0) % 16}"


def _use_broker(url: str) -> None:
    settings.ENVIRONMENT.redis_url = url
    celery_app.conf.broker_url = url


STARTS_BROKER = not os.environ.get("REDIS_URL")
_use_broker(_broker_url())
if _database_url():
    _use_database(_database_url())
django.setup()
# Programs that a test starts, and the workers of xdist, make their own choice.
os.environ.pop("DJANGO_SETTINGS_MODULE", None)

from ledger import dispatch  # noqa: E402
from ledger.workers import Holder  # noqa: E402
from tests import builders, cast  # noqa: E402
from tests.clearing import cleaning, clear, forget  # noqa: E402
from tests.planning import planned_once  # noqa: E402


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """One server for all workers; it belongs to the controller, which outlives them."""
    os.environ.setdefault("CLEARHOUSE_TEST_RUN", str(os.getpid()))
    if not _database_url():
        os.environ["CLEARHOUSE_TEST_DATABASE_URL"] = _start_postgres()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """One worker for a file: what its tests share is made once."""
    return LoadFileScheduling(config, log)


LONG_FIRST = ("tests/standalone/", "tests/properties/", "tests/browser/", "tests/executors/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files begin first; a long one that begins last is waited for by idle cores."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG_FIRST))


def pytest_unconfigure() -> None:
    _until_the_end.close()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
) -> None:
    if not _database_url():
        _use_database(_start_postgres())


# Between tests


# Django's flush would empty the published machine too, and fill it again for every test.
TransactionTestCase._fixture_teardown = lambda self: clear()  # type: ignore[method-assign]
# Nor is a connection closed that still works: a new one plans every statement anew.
TransactionTestCase._should_reload_connections = (  # type: ignore[method-assign]
    lambda self: not connection.is_usable()
)


PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(autouse=True)
def _no_orphans_are_adopted() -> Iterator[None]:
    """A launched attempt makes its process adopt orphans; the next test's shall go to init."""
    yield
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _wants_database(request: pytest.FixtureRequest) -> bool:
    named = {"db", "transactional_db", "live_server", "_django_db_helper"}
    marked = request.node.get_closest_marker("django_db") is not None
    return marked or bool(named & set(request.fixturenames))


@pytest.fixture(scope="session")
def _cleaner(django_db_setup: None) -> Iterator[None]:
    with cleaning():
        yield


@pytest.fixture(autouse=True)
def _the_ledger_holds(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ask every invariant at the end, before the test's transaction is rolled back."""
    if not _wants_database(request):
        yield
        return
    request.getfixturevalue("_cleaner")
    request.getfixturevalue("_django_db_helper")
    forget()
    yield
    if request.node.get_closest_marker("corrupts") is None:
        _verify()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock_all()")


def _verify() -> None:
    if find_spec("ledger.verification") is None:
        return
    if connection.in_atomic_block:
        connection.check_constraints()
    with connection.execute_wrapper(planned_once):
        violations = import_module("ledger.verification").verify(liveness=False)
    assert not violations, "\n".join(f"{v.number}: {v.sentence} {v.row}" for v in violations)


# The broker


@pytest.fixture(scope="session")
def _broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not STARTS_BROKER:
        yield settings.ENVIRONMENT.redis_url
        return
    url = settings.ENVIRONMENT.redis_url
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    folder = Path(tmp_path_factory.mktemp("broker"))
    with Valkey(folder, password=BROKER_PASSWORD, durable=False, port=port) as server:
        assert server.url == url, "another program took the broker's port"
        yield url


@pytest.fixture
def broker(_broker: str) -> Iterator[str]:
    """A broker that answers, empty; its URL."""
    dispatch._redis.cache_clear()
    dispatch._redis().flushdb()
    dispatch._silent_until = 0.0
    yield _broker
    dispatch._redis().flushdb()


@pytest.fixture
def dead_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An address at which no broker answers; its URL."""
    monkeypatch.setattr(settings.ENVIRONMENT, "redis_url", _own_broker_url())
    dispatch._redis.cache_clear()
    dispatch._silent_until = 0.0
    yield settings.ENVIRONMENT.redis_url
    dispatch._redis.cache_clear()
    dispatch._silent_until = 0.0


# The cast


@pytest.fixture
def acme(db: None) -> cast.Acme:
    return cast.found_acme()


@pytest.fixture
def globex(db: None) -> cast.Globex:
    return cast.found_globex()


@pytest.fixture
def worker(db: None) -> Holder:
    """A registered worker; its lock is held by this test's connection."""
    return builders.a_worker()
