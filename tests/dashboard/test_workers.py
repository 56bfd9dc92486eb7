"""The page of workers: who is proved alive, what nobody serves, whether the sweeps run."""

import pytest
from django.db import connection

from dashboard import workers
from ledger import clock
from ledger import workers as ledger_workers
from recovery import watchdog
from tests import builders, cast
from tests.dashboard.watching import signed_in, text_of

pytestmark = pytest.mark.django_db


def test_a_worker_that_holds_its_lock_is_alive_with_what_it_holds(acme: cast.Acme) -> None:
    builders.a_worker("worker-7", slots=4)
    builders.a_call(acme, in_state="running")
    found = workers.read(clock.now())
    (worker,) = found.alive
    assert (worker.name, worker.state, worker.held, worker.slots) == ("worker-7", "alive", 1, 4)
    assert found.missing == {}


def test_a_worker_without_its_lock_is_not_proved_alive(acme: cast.Acme) -> None:
    holder = builders.a_worker("worker-7")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_unlock(%s, %s)", [ledger_workers.LOCK_CLASS, holder.number]
        )
    found = workers.read(clock.now())
    assert found.alive == []
    assert [each.state for each in found.workers] == ["not proved alive"]
    assert set(found.missing) == {"effects", "reads", "control"}


def test_a_lost_fence_is_counted_with_its_worker(acme: cast.Acme) -> None:
    builders.a_worker("worker-7")
    builders.a_call(acme, in_state="interrupted")
    assert [each.lost for each in workers.read(clock.now()).workers] == [1]


def test_the_page_says_when_nobody_sweeps_and_when_somebody_does(acme: cast.Acme) -> None:
    client = signed_in(acme.vera)
    assert "No watchdog has swept for a minute" in text_of(client.get("/workers"))
    watchdog.sweep()
    assert "No watchdog has swept for a minute" not in text_of(client.get("/workers"))


def test_an_installation_without_workers_says_how_to_start_them(acme: cast.Acme) -> None:
    page = text_of(signed_in(acme.vera).get("/workers"))
    assert "No worker has run in the last 24 hours" in page
    assert "what may change the outside waits until one does" in page


def test_the_live_part_is_not_sent_twice(acme: cast.Acme) -> None:
    client = signed_in(acme.vera)
    first = client.get("/parts/workers")
    assert client.get("/parts/workers", headers={"HX-PTag": first["HX-PTag"]}).status_code == 304


def test_the_page_costs_the_same_queries_for_one_worker_or_many(
    acme: cast.Acme, django_assert_max_num_queries: object
) -> None:
    client = signed_in(acme.vera)
    for size in (1, 8):
        for number in range(size):
            builders.a_worker(f"worker-{size}-{number}")
        with django_assert_max_num_queries(24):  # type: ignore[operator]
            client.get("/workers")
