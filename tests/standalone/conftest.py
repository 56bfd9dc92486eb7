"""Short private folders: the addresses of unix sockets end at 107 bytes."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.standalone.running import RunningUp, running_up


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="clh-t-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def up(folder: Path) -> Iterator[RunningUp]:
    with running_up(folder / "state") as up:
        yield up
