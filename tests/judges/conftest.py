"""The court, where the judges are installed.

They are not: every judgement is skipped with one reason, or fails with it where
`CLEARHOUSE_REQUIRE_JUDGES=1` says that they must be there.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from standalone import judges
from tests.judges.court import Court

NONE_FOUND = "no outside judges; `python3 manage.py verify` installs them"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker of xdist asks them all: a panel takes seconds to import its judges."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("judges"))


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
