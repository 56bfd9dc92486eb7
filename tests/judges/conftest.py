"""The court, where the judges are installed.

They are not: every judgement is skipped with one reason, or fails with it where
`CLEARHOUSE_REQUIRE_JUDGES=1` says that they must be there.
"""

import os
from collections.abc import Iterator

import pytest

from standalone import judges
from tests.judges.court import Court

NONE_FOUND = "no outside judges; `python3 manage.py verify` installs them"


@pytest.fixture(scope="session")
def court() -> Iterator[Court]:
    """The outside judges, ready to be asked."""
    python = judges.find()
    if python is None:
        (pytest.fail if os.environ.get(judges.REQUIRED) == "1" else pytest.skip)(NONE_FOUND)
    assert python is not None
    court = Court(python)
    yield court
    court.close()
