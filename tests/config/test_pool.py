"""Only the web has a pool of connections, also where all programs are forks of one image."""

import os
import subprocess
import sys
from typing import Any

import pytest

from config import pool
from standalone.places import ROOT

BEGIN = """
import config.image
from django.db import connection
import os
os.environ["CLEARHOUSE_DATABASE_POOL"] = "{own}"
config.image.begin()
print(connection.pool is not None, connection.settings_dict["CONN_MAX_AGE"])
"""


def test_a_pool_and_connections_that_stay_exclude_each_other() -> None:
    settings: dict[str, Any] = {"OPTIONS": {"connect_timeout": 3}}

    assert pool.apply(settings, pooled=True)["CONN_MAX_AGE"] == 0
    assert settings["OPTIONS"] == {"connect_timeout": 3, "pool": pool.POOL}
    assert pool.apply(settings, pooled=False)["CONN_MAX_AGE"] is None
    assert settings["OPTIONS"] == {"connect_timeout": 3}


@pytest.mark.parametrize(
    ("image", "own", "found"), [("0", "1", "True 0"), ("1", "0", "False None")]
)
def test_a_fork_has_a_pool_where_its_own_environment_says_so(
    image: str, own: str, found: str
) -> None:
    said = subprocess.run(
        [sys.executable, "-c", BEGIN.format(own=own)],
        cwd=ROOT,
        env={**os.environ, "CLEARHOUSE_DATABASE_POOL": image},
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.strip() == found
