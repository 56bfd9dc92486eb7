"""The self-check counts who lives, not who was heard of a while ago."""

from datetime import timedelta

import pytest
from django.conf import settings

from ledger import clock
from ledger.models import Worker
from recovery import health, watchdog
from tests import builders
from tests.refusals import sql

pytestmark = pytest.mark.django_db


def test_a_worker_that_holds_its_lock_counts_however_long_it_was_silent() -> None:
    holder = builders.a_worker()
    watchdog.sweep()
    sql("UPDATE ledger_worker SET seen_at = clock_timestamp() - interval '1 hour' WHERE id = %s",
        holder.id)  # fmt: skip

    found = health.check()

    assert found["queues_with_workers"] == ["control", "effects", "reads"]
    assert found["ready"]


def test_a_worker_that_lost_its_lock_does_not_count_though_it_was_seen_just_now() -> None:
    holder = builders.a_worker()
    watchdog.sweep()
    # A test's connection may hold the lock of an earlier test's worker of this number too.
    sql("SELECT pg_advisory_unlock_all()")

    found = health.check()

    assert Worker.objects.get(id=holder.id).stopped_at is None
    assert (found["queues_with_workers"], found["ready"]) == ([], False)


def test_a_deadline_is_overdue_after_ten_sweeps() -> None:
    now = clock.now()
    assert now - health.late_before(now) == timedelta(seconds=10 * settings.ENVIRONMENT.sweep_s)
