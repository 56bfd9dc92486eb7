"""The pool of connections of the web's threads.

Workers and the watchdog hold one connection each, so that no pool thread exists before a fork
(reliability, section 6).
"""

from typing import Any

POOL = {
    "min_size": 2,
    "max_size": 16,
    "timeout": 3,
    "max_waiting": 64,
    "max_lifetime": 1800,
    "max_idle": 300,
}


def apply(settings: dict[str, Any], *, pooled: bool) -> dict[str, Any]:
    """Django's settings of one database with the pool, or without. Changes and returns them."""
    settings["CONN_MAX_AGE"] = 0 if pooled else None
    if pooled:
        settings["OPTIONS"]["pool"] = POOL
    else:
        settings["OPTIONS"].pop("pool", None)
    return settings


def follow_environment() -> None:
    """Take CLEARHOUSE_DATABASE_POOL as it stands now; before the first connection only."""
    from django.db import connections

    from config.environment import Environment

    apply(connections.settings["default"], pooled=Environment().database_pool)
