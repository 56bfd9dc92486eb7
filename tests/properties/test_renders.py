"""Any prefix of a session, cut anywhere, renders valid for every provider (R91)."""

import os
from pathlib import Path
from random import Random

import pytest

from tests.properties.conversing import Conversing

HISTORIES = int(os.environ.get("CLEARHOUSE_TEST_HISTORIES", "0")) or 3
STEPS = 30


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_any_prefix_of_a_session_renders_valid_for_every_provider(
    tmp_path: Path, seed: int
) -> None:
    history, chance = Conversing(tmp_path), Random(seed)
    try:
        for _ in range(STEPS):
            history.goes_on(chance)
    finally:
        history.ends()
