"""Workers: a free lock proves death, unless the server itself has been away."""

import os
import signal
import subprocess
import sys

import psycopg
import pytest
from django.db import connection

from ledger import attempts, workers
from ledger.models import Worker
from ledger.vocabulary import CallState, FenceKind
from recovery import watchdog
from standalone.postgres import temporary_postgres
from tests import builders, waits
from tests.cast import Acme
from tests.refusals import sql

REGISTER = """
import django; django.setup()
from ledger import workers
from ledger.vocabulary import FenceKind
holder = workers.register(name="doomed", queues=["effects"], slots=1, fence_kind=FenceKind.KERNEL)
print(holder.id, flush=True)
input()
"""


def a_worker_elsewhere() -> "subprocess.Popen[str]":
    """A process of its own that registers a worker in this test's database."""
    values = connection.settings_dict
    host = values["HOST"]
    url = f"postgresql://{values['USER']}:{values['PASSWORD']}@"
    url += f"/{values['NAME']}?host={host}" if host.startswith("/") else f"{host}:{values['PORT']}"
    url += f"&port={values['PORT']}" if host.startswith("/") and values["PORT"] else ""
    url += "" if host.startswith("/") else f"/{values['NAME']}"
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "DATABASE_URL": url,
               "CLEARHOUSE_DATABASE_POOL": "false"}  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", REGISTER], env=environ, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.django_db
def test_a_worker_whose_lock_is_held_is_alive() -> None:
    holder = builders.a_worker()
    assert workers.dead() == []
    assert Worker.objects.get(id=holder.id).stopped_at is None


@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_with_its_process_is_seen_dead() -> None:
    process = a_worker_elsewhere()
    try:
        assert process.stdout is not None
        id_ = process.stdout.readline().strip()
        assert workers.dead() == []
        process.send_signal(signal.SIGKILL)
        dead = waits.until(workers.dead, what="the killed worker's lock to be free")
        assert [str(each) for each in dead] == [id_]
    finally:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.django_db(transaction=True)
def test_a_worker_whose_connection_was_cut_is_seen_dead_and_loses_its_calls(acme: Acme) -> None:
    call = builders.a_call(acme, in_state="running")
    idle = builders.a_call(acme, in_state="running", crossed=True)
    _cut_this_connection()
    waits.until(workers.dead, what="the lock of the cut connection to be free")
    assert watchdog.find_dead_workers() == 2
    assert builders.fresh(call).state is CallState.BACKING_OFF
    assert builders.fresh(idle).state is CallState.INTERRUPTED
    assert Worker.objects.get().stopped_as == "lost"
    assert workers.dead() == []


def _cut_this_connection() -> None:
    """Let another connection terminate ours; Django opens a new one for what follows."""
    pid = waits.backend_pid()
    parameters = connection.get_connection_params()
    wanted = {k: parameters[k] for k in ("host", "port", "user", "password") if k in parameters}
    with psycopg.connect(dbname=connection.settings_dict["NAME"], **wanted) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
    connection.close()


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_comes_back_is_alive_again() -> None:
    holder = builders.a_worker()
    _cut_this_connection()
    workers.bury(waits.until(workers.dead, what="the lock to be free"))
    workers.seen(holder)
    assert workers.dead() == []
    row = Worker.objects.get()
    assert (row.stopped_at, row.stopped_as) == (None, "")


@pytest.mark.django_db
def test_being_seen_does_not_take_the_lock_twice() -> None:
    holder = builders.a_worker()
    for _ in range(2):
        workers.seen(holder)
    workers.retire(holder)
    held = sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s "
               "AND objid = %s", workers.LOCK_CLASS, holder.number)  # fmt: skip
    assert held == [(0,)]


@pytest.mark.django_db
def test_a_worker_that_retired_is_not_dead() -> None:
    workers.retire(builders.a_worker())
    assert workers.dead() == []
    assert Worker.objects.get().stopped_as == "retired"


@pytest.mark.django_db
def test_a_free_lock_from_before_the_servers_start_proves_nothing() -> None:
    holder = builders.a_worker()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [workers.LOCK_CLASS, holder.number])
    assert workers.dead() == [holder.id]
    sql("UPDATE ledger_worker SET locked_at = pg_postmaster_start_time() - interval '1 minute'")
    assert workers.dead() == []


def test_a_restarted_server_has_lost_all_locks_and_started_later() -> None:
    with temporary_postgres() as server:
        with psycopg.connect(server.url(), autocommit=True) as link:
            link.execute("CREATE TABLE worker AS SELECT clock_timestamp() AS locked_at")
            link.execute("SELECT pg_advisory_lock(%s, 1)", [workers.LOCK_CLASS])
        server.restart("fast")
        with psycopg.connect(server.url()) as link:
            later, locks = link.execute(
                "SELECT locked_at < pg_postmaster_start_time(), (SELECT count(*) FROM pg_locks "
                "WHERE locktype = 'advisory') FROM worker"
            ).fetchone()  # type: ignore[misc]
    assert (later, locks) == (True, 0)


@pytest.mark.django_db
def test_a_worker_says_which_fence_its_attempts_carry(acme: Acme) -> None:
    holder = builders.a_worker(fence_kind=FenceKind.NONE)
    call = builders.a_call(acme)
    claim = builders.claimed(call, by=holder)
    rows = sql("SELECT fence_kind FROM ledger_attempt WHERE id = %s", claim.attempt_id)
    assert rows == [("none",)]
    assert attempts.renew(attempt_ids=[claim.attempt_id]) == {claim.attempt_id}
