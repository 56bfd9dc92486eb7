"""A real sandbox for each test file, and the environment that leads tools to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.world import World, a_world


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("sandbox")) as world:
        yield world


@pytest.fixture
def world(shared_world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A sandbox that tests of one file share: it must not be killed."""
    _lead_to(shared_world.data, monkeypatch)
    return shared_world


@pytest.fixture
def own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A sandbox of this test alone, to be killed and started again."""
    _lead_to(tmp_path, monkeypatch)
    with a_world(tmp_path) as world:
        yield world


def _lead_to(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARHOUSE_DATA", str(data))
    monkeypatch.delenv("CLEARHOUSE_SANDBOX_SMTP_PORT", raising=False)
    monkeypatch.delenv("CLEARHOUSE_SANDBOX_HTTP_PORT", raising=False)
