"""The self-check: database, workers, watchdog, overdue deadlines, broker (R149)."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from ledger import dispatch, workers

SILENT_S = 60.0
SWEEPS = 10
"""After how many sweeps that did not act on a deadline somebody is late."""


def late_before(now: datetime) -> datetime:
    """The instant before which a deadline that has not been acted on is overdue.

    One that has just passed waits for the next sweep and is nobody's failure.
    """
    return now - timedelta(seconds=SWEEPS * settings.ENVIRONMENT.sweep_s)


def check() -> dict[str, Any]:
    """What holds now; `ready` when calls can be recorded, executed and recovered."""
    try:
        found = _read()
    except (DatabaseError, InterfaceError) as error:
        return {"ready": False, "database": f"away ({type(error).__name__})"}
    queues = set(found["queues"])
    sweep_s = found["sweep_age_s"]
    watched = sweep_s is not None and sweep_s < SILENT_S
    return {
        "ready": {"effects", "reads", "control"} <= queues and watched,
        "database": "there",
        "broker": "there" if dispatch.is_there() else "away",
        "queues_with_workers": sorted(queues),
        "seconds_since_last_sweep": sweep_s,
        "overdue_calls": found["overdue"],
    }


def _read() -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT coalesce(array_agg(DISTINCT q), '{}') FROM ledger_worker w, "  # noqa: S608 a constant of the ledger
            f"unnest(w.queues) q WHERE w.stopped_at IS NULL AND {workers.MAY_LIVE}), "
            "(SELECT extract(epoch FROM clock_timestamp() - max(swept_at))::float8 "
            "FROM recovery_sweep), "
            "(SELECT count(*) FROM ledger_toolcall WHERE settled_at IS NULL "
            "AND due_at < clock_timestamp() - %s * interval '1 second')",
            [workers.LOCK_CLASS, SWEEPS * settings.ENVIRONMENT.sweep_s],
        )
        queues, sweep_age_s, overdue = cursor.fetchone()
        return {"queues": queues, "sweep_age_s": sweep_age_s, "overdue": overdue}
